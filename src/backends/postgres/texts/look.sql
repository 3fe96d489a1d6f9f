-- Stands before state.sql: takes the own name and tries the gate.  From now on the server ends this
-- session when it is silent for three seconds, so that a client that is stopped does not keep the gate.
-- That, and that no table is missing, is sure before a session lock is taken: no rollback takes that back.
-- The last answer: {own name, gate}.
BEGIN;
SELECT set_config('idle_session_timeout', '3s', false) FROM (SELECT 1) AS one
  LEFT JOIN {keys} ON FALSE LEFT JOIN {locks} ON FALSE;
COMMIT;
SELECT {take_own}, {take_gate};
