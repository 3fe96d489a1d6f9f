-- Makes a session that of a holder whose lease goes on.  If it has the gate, it needs it no more.
-- The last answer: {name}.
SELECT set_config('idle_session_timeout', '{silence}s', false);
SELECT CASE WHEN EXISTS (SELECT 1 FROM {session_locks} WHERE pid = pg_backend_pid() AND {session_lock} = {own})
    THEN 1 ELSE pg_try_advisory_lock({own})::int END,
  (SELECT pg_advisory_unlock({gate}) FROM {session_locks} WHERE pid = pg_backend_pid() AND {session_lock} = {gate})
