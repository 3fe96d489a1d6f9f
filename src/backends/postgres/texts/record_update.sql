-- Writes a record if its text is the one that was read.
-- The answer: {done, writable}.
WITH done AS (UPDATE {records} SET written_at = {now}, record = {text}
 WHERE method = {of} AND name = {name} AND period = {period} AND record = {version} RETURNING 1)
SELECT count(*), {writable} FROM done
