-- Extends a lease that is not over, or sets it to end earlier.  If the record is not one that the client
-- knows, this comes late, after a later renewal, or after the end of the job: it extends only.  The server
-- is asked twice whether it takes writes, since it may be demoted in between.
-- The last answer: {done, writable all the time, role, why} of the own row, {session that has its row locked}.
SET @dlock_writable = {writable};
UPDATE {locks}
   SET expires_at = CASE WHEN {is_known} THEN {expiry} ELSE GREATEST(expires_at, {expiry}) END,
       record = CASE WHEN {is_known} THEN {record} ELSE record END
 WHERE owner = {owner} AND role = 'holder' AND {is_ours} AND @dlock_writable;
SET @dlock_done = ROW_COUNT();
SELECT @dlock_done, @dlock_writable AND {writable}, role, why, {row_session}
  FROM (SELECT 1) AS one LEFT JOIN {locks} ON owner = {owner}
