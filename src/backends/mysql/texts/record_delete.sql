-- Deletes a record if its text is the one that was read.
-- The last answer: {done, writable}.
DELETE FROM {records}
 WHERE method = {of} AND name = {name} AND period = {period} AND record = {version} AND {writable};
SET @dlock_done = ROW_COUNT();
SELECT @dlock_done, {writable};
