-- Stands before state.sql: takes the own name and tries the gate.  From now on the server ends this
-- session when it is silent for three seconds, so that a client that is stopped does not keep the gate.
-- The answer: {own name, gate}.
SET SESSION wait_timeout = {waiter_silence};
SELECT {take_own}, {take_gate};
