-- The row that counts the grants.  It begins with the time, so that fencing numbers grow although an
-- earlier row was deleted.
INSERT INTO {keys} (method, name, version) VALUES ({method}, {key}, {now_ms}) ON CONFLICT DO NOTHING
