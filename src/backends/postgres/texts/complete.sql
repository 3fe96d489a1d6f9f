-- Releases the lock and writes the done-mark, in one transaction.  The mark is locked first, so that
-- the row of the holder is not locked while the client waits for the mark; and that is a write, so that a
-- synchronous standby is waited for also if all this is said again.
-- The last answer: as that of renew.sql.
BEGIN;
SELECT period FROM {records} WHERE method = {method} AND name = {key} AND period = {period} FOR UPDATE;
WITH ours AS (DELETE FROM {locks} WHERE owner = {owner} AND role = 'holder' AND {is_ours} RETURNING owner)
INSERT INTO {records} (method, name, period, written_at, record)
SELECT {method}, {key}, {period}, {now}, {mark} FROM ours
    ON CONFLICT (method, name, period) DO UPDATE SET written_at = excluded.written_at, record = excluded.record;
COMMIT;
SELECT EXISTS (SELECT 1 FROM {records} WHERE method = {method} AND name = {key} AND period = {period}
     AND position({id_in_mark} IN record) > 0)::int, {writable}, role, why, NULL, {release_own}
  FROM (SELECT 1) AS one LEFT JOIN {locks} ON owner = {owner}
