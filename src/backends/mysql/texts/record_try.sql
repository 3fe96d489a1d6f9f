-- Writes nothing, but fails if no record may be written.
-- The last answer: what a crash of the server may undo the latest records by; NULL: nothing.
REPLACE INTO {records} (method, name, period, written_at, record)
SELECT {of}, {name}, '', {now}, '' FROM DUAL WHERE FALSE;
SELECT {risk}
