-- Stands before another text: finds rows that nobody uses, of those that follow {random}, and keys that
-- were not granted for a week, of those that follow {from}.  It locks nothing.
-- Answers: {owner}, {name}.
SELECT owner FROM (SELECT owner, method, role, since, expires_at FROM {locks}
   WHERE owner > {random} ORDER BY owner LIMIT 16) AS some
 WHERE method = {method} AND (role = 'waiter' OR expires_at IS NOT NULL)
   AND COALESCE(expires_at, since) < {now} - INTERVAL 1 HOUR AND {is_gone};
SELECT name FROM (SELECT name, version FROM {keys} WHERE method = {method} AND name > {from} ORDER BY name LIMIT 16) AS some
 WHERE version < {now_ms} - 604800000;
