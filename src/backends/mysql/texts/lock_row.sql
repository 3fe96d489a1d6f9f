-- Locks the row of the key that other programs may lock, too; by a session of its own, until that ends.
-- It waits for one of them no longer than {patience}.  The server ends the session after {silence}.
-- The last answer: the row.
SET SESSION {row_silence}, innodb_lock_wait_timeout = {patience};
SELECT {take_row};
INSERT IGNORE INTO {rows} (name)
SELECT {key} FROM DUAL WHERE {writable} AND NOT EXISTS (SELECT 1 FROM {rows} WHERE name = {key});
START TRANSACTION;
SELECT name FROM {rows} WHERE name = {key} {strength}
