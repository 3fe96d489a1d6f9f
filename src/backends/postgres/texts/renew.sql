-- Extends a lease that is not over, or sets it to end earlier.  If the record is not one that the client
-- knows, this comes late, after a later renewal, or after the end of the job: it extends only.  The row is
-- read by a statement of its own, which sees what the first one has waited for.
-- The last answer: {done, writable, role, why} of the own row, {its row is locked}.
WITH done AS (UPDATE {locks}
   SET expires_at = CASE WHEN {is_known} THEN {expiry} ELSE GREATEST(expires_at, {expiry}) END,
       record = CASE WHEN {is_known} THEN {record} ELSE record END
   WHERE owner = {owner} AND role = 'holder' AND {is_ours} RETURNING 1)
SELECT set_config('dlock.done', count(*)::text, false) FROM done;
SELECT current_setting('dlock.done'), {writable}, role, why, {has_row_session}
  FROM (SELECT 1) AS one LEFT JOIN {locks} ON owner = {owner}
