-- Makes a session that of a holder whose lease goes on.  If it has the gate, it needs it no more.
-- The last answer: {name}.
SET SESSION wait_timeout = {silence};
SELECT {take_own}, {release_gate}
