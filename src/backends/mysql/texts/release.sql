-- Releases the lock.  The own name is released after the commit: that wakes the owner of the gate.
-- The last answer: as that of renew.sql.
SET @dlock_writable = {writable};
DELETE FROM {locks} WHERE owner = {owner} AND role = 'holder' AND @dlock_writable;
SET @dlock_done = ROW_COUNT();
SELECT @dlock_done, @dlock_writable AND {writable}, role, why, NULL, {release_own}
  FROM (SELECT 1) AS one LEFT JOIN {locks} ON owner = {owner}
