-- Breaks one grant, and keeps the reason for the holder.  If it is said again, it finds what it has done.
-- The last answer: {done, writable, session of the holder if that is another one, session that has its row locked}.
BEGIN;
WITH done AS (UPDATE {locks} SET role = 'broken', why = {why}, expires_at = {reason_expiry}
   WHERE owner = {owner} AND method = {method} AND name = {key}
     AND (role = 'holder' AND {is_there} OR role = 'broken' AND why = {why}) RETURNING 1)
SELECT set_config('dlock.done', count(*)::text, false) FROM done;
COMMIT;
SELECT current_setting('dlock.done'), {writable}, {other_session}, {row_session}
