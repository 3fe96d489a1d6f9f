-- Stands before other texts: waits until the session of a holder has ended or has released its name.
-- It does not keep the name meanwhile: the holder may want it back.
-- The last answer: {the name is free}.
BEGIN;
DO $$BEGIN
  PERFORM set_config('lock_timeout', '{millis}ms', true);
  PERFORM pg_advisory_xact_lock_shared({holder});
  PERFORM set_config('lock_timeout', '0', true);
EXCEPTION WHEN lock_not_available THEN
END$$;
COMMIT;
SELECT {holder_is_gone}::int;
