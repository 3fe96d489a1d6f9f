-- What a client decides on.  The version is read first: if it is the same when the lock is taken, so
-- are the holders, but for those that have gone and those that have renewed.
-- Answers: {writable, version (NULL: no row of the key), role of the own row, there are waiters}, the holders.
SELECT {writable}, (SELECT version FROM {keys} WHERE method = {method} AND name = {key}),
  (SELECT role FROM {locks} WHERE owner = {owner}),
  EXISTS (SELECT 1 FROM {locks} WHERE method = {method} AND name = {key} AND role = 'waiter');
SELECT {columns} FROM {locks} WHERE method = {method} AND name = {key} AND {is_in_way} ORDER BY role, since, owner
