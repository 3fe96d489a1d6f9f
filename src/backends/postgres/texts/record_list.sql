-- The records of the names that begin so.
-- The answer: as that of record_read.sql.
SELECT {now_ms}, name, period, {written_ms}, left(record, 16001)
  FROM {records} WHERE method = {of} AND starts_with(name, {prefix})
