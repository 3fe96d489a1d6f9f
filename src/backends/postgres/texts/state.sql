-- What a client decides on.  The version is read first: if it is the same when the lock is taken, so
-- are the holders, but for those that have gone and those that have renewed.
-- Answers: {writable, version (NULL: no row of the key), role of the own row, there are rows of waiters before
-- it}, the holders.
SELECT {writable}, (SELECT version FROM {keys} WHERE method = {method} AND name = {key}),
  (SELECT role FROM {locks} WHERE owner = {owner}),
  EXISTS (SELECT 1 FROM {locks} WHERE method = {method} AND name = {key} AND role = 'waiter'
    AND since < COALESCE((SELECT since FROM {locks} WHERE owner = {owner}), 'infinity'))::int;
SELECT {columns} FROM {locks} WHERE method = {method} AND name = {key} AND role = 'holder' ORDER BY since, owner
