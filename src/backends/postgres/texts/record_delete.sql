-- Deletes a record if its text is the one that was read.
-- The answer: {done, writable}.
WITH done AS (DELETE FROM {records}
 WHERE method = {of} AND name = {name} AND period = {period} AND record = {version} RETURNING 1)
SELECT count(*), {writable} FROM done;
