-- One record.
-- The answer: {now in ms, name, period, written at in ms, text}; NULLs if there is none.
SELECT {now_ms}, name, period, {written_ms}, left(record, 16001)
  FROM (SELECT 1) AS one LEFT JOIN {records} ON method = {of} AND name = {name} AND period = {period}
