-- Releases the lock.  The own name is released after the commit: that wakes the owner of the gate.
-- The last answer: as that of renew.sql.
BEGIN;
WITH done AS (DELETE FROM {locks} WHERE owner = {owner} AND role = 'holder' RETURNING 1)
SELECT set_config('dlock.done', count(*)::text, false) FROM done;
COMMIT;
SELECT current_setting('dlock.done'), {writable}, role, why, NULL, {release_own}
  FROM (SELECT 1) AS one LEFT JOIN {locks} ON owner = {owner}
