-- The records of the names that begin so.
-- The answer: as that of record_read.sql.
SELECT {now_ms}, name, period, {written_ms}, LEFT(record, 16001)
  FROM {records} WHERE method = {of} AND LEFT(name, {length}) = {prefix}
