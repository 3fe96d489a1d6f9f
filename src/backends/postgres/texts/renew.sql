-- Extends a lease that is not over.
-- The answer: {done, writable, role, why} of the own row, {its row is locked}.
WITH done AS (UPDATE {locks} SET expires_at = {expiry}{new_record}
   WHERE owner = {owner} AND role = 'holder' AND {is_ours} RETURNING 1)
SELECT (SELECT count(*) FROM done), {writable}, role, why, {has_row_session}
  FROM (SELECT 1) AS one LEFT JOIN {locks} ON owner = {owner}
