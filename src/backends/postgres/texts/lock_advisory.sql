-- As lock_row.sql, of an advisory lock that other programs take, too.
-- The last answer: one row.
BEGIN;
SELECT set_config('lock_timeout', {patience}, false), {take_row}, {row_silence};
COMMIT;
SELECT {strength}({advisory})
