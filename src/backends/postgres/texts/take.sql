-- Takes the lock if no other client has taken it since the look, and each lease that is taken over is
-- the one that was over then.  Else no row is added.  The gate is released after the commit.
-- The last answer: {won (NULL: there is no row), writable, fencing number, gate released, time limit}.
BEGIN;
WITH grown AS (UPDATE {keys} SET version = GREATEST(version + 1, {now_ms})
   WHERE method = {method} AND name = {key} AND version = {version} RETURNING version),
 gone AS (DELETE FROM {locks} WHERE EXISTS (SELECT 1 FROM grown) AND role = 'holder' AND ({is_over}) RETURNING owner)
INSERT INTO {locks} (owner, method, name, role, mode, slots, slot, fence, since, expires_at, record)
SELECT {owner}, {method}, {key}, 'holder', {mode}, {slots}, {slot}, version, {now}, {expiry}, {record}
  FROM grown WHERE (SELECT count(*) FROM gone) = {count_over}
    ON CONFLICT (owner) DO UPDATE SET role = 'holder', slot = excluded.slot, fence = excluded.fence,
       since = excluded.since, expires_at = excluded.expires_at, record = excluded.record;
COMMIT;
SELECT (role = 'holder')::int, {writable}, fence, CASE WHEN role = 'holder' THEN {release_gate} END,
  CASE WHEN role = 'holder' THEN set_config('idle_session_timeout', '{silence}s', false) END
  FROM (SELECT 1) AS one LEFT JOIN {locks} ON owner = {owner}
