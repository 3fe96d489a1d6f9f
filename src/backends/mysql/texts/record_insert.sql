-- Writes a record if there is none.
-- The last answer: {done, writable}.
INSERT IGNORE INTO {records} (method, name, period, written_at, record)
SELECT {of}, {name}, {period}, {now}, {text} FROM DUAL WHERE {writable};
SET @dlock_done = ROW_COUNT();
SELECT @dlock_done, {writable}
