-- Writes nothing, but fails if no record may be written.
-- The last answer: what a crash of the server may undo the latest records by; NULL: nothing.
INSERT INTO {records} (method, name, period, written_at, record)
SELECT {of}, {name}, '', {now}, '' WHERE FALSE;
SELECT {risk}
