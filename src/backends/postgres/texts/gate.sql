-- Stands before state.sql: waits for the gate.  An error that is caught is not in the server's log.  The
-- time limit is for this wait alone.
-- The last answer: {0, gate}.
SELECT set_config('dlock.gate', '0', false);
DO $$BEGIN
  PERFORM set_config('lock_timeout', '{gate_millis}ms', true);
  PERFORM pg_advisory_lock({gate});
  PERFORM set_config('lock_timeout', '0', true);
  PERFORM set_config('dlock.gate', '1', false);
EXCEPTION WHEN lock_not_available THEN
END$$;
SELECT 0, current_setting('dlock.gate');
