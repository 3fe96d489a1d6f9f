-- Stands before state.sql: takes the own name and tries the gate.  From now on the server ends this
-- session when it is silent for three seconds, so that a client that is stopped does not keep the gate.
-- A missing table is noticed before that: a session lock that is taken twice is to be released twice.
-- The last answer: {own name, gate}.
SELECT 1 FROM {keys}, {locks} WHERE FALSE;
SELECT set_config('idle_session_timeout', '3s', false);
SELECT {take_own}, {take_gate};
