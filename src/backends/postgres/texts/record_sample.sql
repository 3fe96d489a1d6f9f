-- Some records, in the order of their names.
-- The answer: as that of record_read.sql.
SELECT {now_ms}, name, period, {written_ms}, left(record, 16001)
  FROM {records} WHERE method = {of} AND name >= {from} ORDER BY method, name, period LIMIT 16;
