-- Locks the row of the key that other programs may lock, too; by a session of its own, until that ends.
-- It waits for one of them no longer than {patience}.  The server ends the session after {silence}.
-- The last answer: the row.
BEGIN;
SELECT set_config('lock_timeout', {patience}, false), {take_row}, {row_silence};
INSERT INTO {rows} (name) SELECT {key} WHERE NOT EXISTS (SELECT 1 FROM {rows} WHERE name = {key}) ON CONFLICT DO NOTHING;
COMMIT;
BEGIN;
SELECT name FROM {rows} WHERE name = {key} {strength}
