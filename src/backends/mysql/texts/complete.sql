-- Releases the lock and writes the done-mark, in one transaction.  The mark is locked first, so that
-- the row of the holder is not locked while the client waits for the mark.
-- The last answer: as that of renew.sql.
SET @dlock_writable = {writable};
START TRANSACTION;
SELECT period FROM {records} WHERE method = {method} AND name = {key} AND period = {period} FOR UPDATE;
SET @dlock_ours = NULL;
SELECT owner INTO @dlock_ours FROM {locks}
 WHERE owner = {owner} AND role = 'holder' AND {is_ours} AND @dlock_writable FOR UPDATE;
DELETE FROM {locks} WHERE owner = @dlock_ours;
REPLACE INTO {records} (method, name, period, written_at, record)
SELECT {method}, {key}, {period}, {now}, {mark} FROM DUAL WHERE @dlock_ours IS NOT NULL;
SET @dlock_done = (SELECT COUNT(*) FROM {records}
 WHERE method = {method} AND name = {key} AND period = {period} AND LOCATE({id_in_mark}, record) > 0);
COMMIT;
SELECT @dlock_done, @dlock_writable AND {writable}, role, why, NULL, {release_own}
  FROM (SELECT 1) AS one LEFT JOIN {locks} ON owner = {owner}
