-- Stands before other texts: waits until the session of a holder has ended or has released its name.
-- The last answer: {the name is free}.
DO $$BEGIN
  PERFORM set_config('lock_timeout', '{millis}ms', true);
  PERFORM pg_advisory_xact_lock_shared({holder});
  PERFORM set_config('lock_timeout', '0', true);
EXCEPTION WHEN lock_not_available THEN
END$$;
SELECT pg_try_advisory_xact_lock_shared({holder})::int;
