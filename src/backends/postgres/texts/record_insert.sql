-- Writes a record if there is none.
-- The answer: {done, writable}.
WITH done AS (INSERT INTO {records} (method, name, period, written_at, record)
  VALUES ({of}, {name}, {period}, {now}, {text}) ON CONFLICT DO NOTHING RETURNING 1)
SELECT count(*), {writable} FROM done
