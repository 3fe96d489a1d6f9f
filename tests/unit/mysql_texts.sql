-- attempt, mysql-table, exclusive
SET @dlock_marked = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') AND (IS_USED_LOCK(:session_mark) = CONNECTION_ID() OR GET_LOCK(:session_mark, 0) = 1) AND (IS_USED_LOCK(:holder_mark) = CONNECTION_ID() OR GET_LOCK(:holder_mark, 0) = 1), @dlock_fit = ((SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6b657973') + (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6c6f636b73') = 2), @dlock_version = NULL, @dlock_fence = NULL, @dlock_may = 0, @dlock_won = 0;
START TRANSACTION;
SELECT version INTO @dlock_version FROM dlock_keys WHERE method = 1 AND name = :key FOR UPDATE;
SET @dlock_fence = GREATEST(@dlock_version + 1, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)), @dlock_may = @dlock_version IS NOT NULL AND @dlock_marked;
DELETE FROM dlock_locks WHERE method = 1 AND name = :key AND (kind = 2 AND expires_at <= UTC_TIMESTAMP(6) OR kind = 0 AND expires_at <= UTC_TIMESTAMP(6) AND IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NULL) AND @dlock_fit AND @dlock_may = 1;
INSERT INTO dlock_locks (method, name, kind, sole, slot, owner, mode, slots, fence, since, expires_at, record) SELECT 1, :key, 0, 1, 0, :owner, 0, 1, @dlock_fence, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 30000000 MICROSECOND, :record FROM DUAL WHERE @dlock_fit AND @dlock_may = 1 AND NOT (EXISTS (SELECT 1 FROM dlock_locks WHERE method = 1 AND name = :key AND kind = 0) OR EXISTS (SELECT 1 FROM dlock_locks WHERE method = 1 AND name = :key AND kind = 1 AND id < 7 AND IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL)) AND EXISTS (SELECT 1 FROM dlock_locks WHERE id = 7 AND kind = 1);
SET @dlock_won = IF(ROW_COUNT() = 1, LAST_INSERT_ID(), 0);
DELETE FROM dlock_locks WHERE id = 7 AND kind = 1 AND @dlock_won > 0;
UPDATE dlock_keys SET version = @dlock_fence WHERE method = 1 AND name = :key AND @dlock_won > 0;
SET SESSION wait_timeout = IF(@dlock_won > 0, 30, 28800);
SELECT @dlock_fit, @dlock_version IS NOT NULL, @dlock_won, @dlock_fence, (SELECT slot FROM dlock_locks WHERE id = @dlock_won);
SELECT id, kind, name, owner, mode, slots, fence, TIMESTAMPDIFF(MICROSECOND, since, UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), IF(kind = 1, IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))), IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1)))), slot, IF(kind = 0, record, ''), expires_at FROM dlock_locks WHERE method = 1 AND name = :key ORDER BY id;
COMMIT;
DO IF(@dlock_won > 0, RELEASE_LOCK(:waiter_mark), 0);
SELECT CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')

-- attempt, mysql-table, shared
SET @dlock_marked = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') AND (IS_USED_LOCK(:session_mark) = CONNECTION_ID() OR GET_LOCK(:session_mark, 0) = 1) AND (IS_USED_LOCK(:holder_mark) = CONNECTION_ID() OR GET_LOCK(:holder_mark, 0) = 1), @dlock_fit = ((SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6b657973') + (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6c6f636b73') = 2), @dlock_version = NULL, @dlock_fence = NULL, @dlock_may = 0, @dlock_won = 0;
START TRANSACTION;
SELECT version INTO @dlock_version FROM dlock_keys WHERE method = 1 AND name = :key FOR UPDATE;
SET @dlock_fence = GREATEST(@dlock_version + 1, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)), @dlock_may = @dlock_version IS NOT NULL AND @dlock_marked;
DELETE FROM dlock_locks WHERE method = 1 AND name = :key AND (kind = 2 AND expires_at <= UTC_TIMESTAMP(6) OR kind = 0 AND expires_at <= UTC_TIMESTAMP(6) AND IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NULL) AND @dlock_fit AND @dlock_may = 1;
INSERT INTO dlock_locks (method, name, kind, sole, slot, owner, mode, slots, fence, since, expires_at, record) SELECT 1, :key, 0, NULL, 0, :owner, 1, 1, @dlock_fence, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 30000000 MICROSECOND, :record FROM DUAL WHERE @dlock_fit AND @dlock_may = 1 AND NOT (EXISTS (SELECT 1 FROM dlock_locks WHERE method = 1 AND name = :key AND kind = 0 AND mode <> 1) OR EXISTS (SELECT 1 FROM dlock_locks WHERE method = 1 AND name = :key AND kind = 1 AND id < 7 AND IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL AND mode <> 1)) AND EXISTS (SELECT 1 FROM dlock_locks WHERE id = 7 AND kind = 1);
SET @dlock_won = IF(ROW_COUNT() = 1, LAST_INSERT_ID(), 0);
DELETE FROM dlock_locks WHERE id = 7 AND kind = 1 AND @dlock_won > 0;
UPDATE dlock_keys SET version = @dlock_fence WHERE method = 1 AND name = :key AND @dlock_won > 0;
SET SESSION wait_timeout = IF(@dlock_won > 0, 30, 28800);
SELECT @dlock_fit, @dlock_version IS NOT NULL, @dlock_won, @dlock_fence, (SELECT slot FROM dlock_locks WHERE id = @dlock_won);
SELECT id, kind, name, owner, mode, slots, fence, TIMESTAMPDIFF(MICROSECOND, since, UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), IF(kind = 1, IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))), IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1)))), slot, IF(kind = 0, record, ''), expires_at FROM dlock_locks WHERE method = 1 AND name = :key ORDER BY id;
COMMIT;
DO IF(@dlock_won > 0, RELEASE_LOCK(:waiter_mark), 0);
SELECT CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')

-- attempt, mysql-table, slots
SET @dlock_marked = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') AND (IS_USED_LOCK(:session_mark) = CONNECTION_ID() OR GET_LOCK(:session_mark, 0) = 1) AND (IS_USED_LOCK(:holder_mark) = CONNECTION_ID() OR GET_LOCK(:holder_mark, 0) = 1), @dlock_fit = ((SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6b657973') + (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6c6f636b73') = 2), @dlock_version = NULL, @dlock_fence = NULL, @dlock_may = 0, @dlock_won = 0;
START TRANSACTION;
SELECT version INTO @dlock_version FROM dlock_keys WHERE method = 1 AND name = :key FOR UPDATE;
SET @dlock_fence = GREATEST(@dlock_version + 1, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)), @dlock_may = @dlock_version IS NOT NULL AND @dlock_marked;
DELETE FROM dlock_locks WHERE method = 1 AND name = :key AND (kind = 2 AND expires_at <= UTC_TIMESTAMP(6) OR kind = 0 AND expires_at <= UTC_TIMESTAMP(6) AND IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NULL) AND @dlock_fit AND @dlock_may = 1;
INSERT INTO dlock_locks (method, name, kind, sole, slot, owner, mode, slots, fence, since, expires_at, record) SELECT 1, :key, 0, NULL, (SELECT MIN(n) FROM (SELECT n FROM (SELECT 1 AS n, 0 AS taken UNION ALL SELECT slot + 1, 0 FROM dlock_locks WHERE method = 1 AND name = :key AND kind = 0 UNION ALL SELECT slot, 1 FROM dlock_locks WHERE method = 1 AND name = :key AND kind = 0) AS candidates GROUP BY n HAVING SUM(taken) = 0) AS untaken), :owner, 2, 3, @dlock_fence, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 30000000 MICROSECOND, :record FROM DUAL WHERE @dlock_fit AND @dlock_may = 1 AND NOT (EXISTS (SELECT 1 FROM dlock_locks WHERE method = 1 AND name = :key AND kind = 0 AND (mode <> 2 OR slots <> 3)) OR (SELECT COUNT(*) FROM dlock_locks WHERE method = 1 AND name = :key AND kind = 0) + (SELECT COUNT(*) FROM dlock_locks WHERE method = 1 AND name = :key AND kind = 1 AND id < 7 AND IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL) >= 3) AND EXISTS (SELECT 1 FROM dlock_locks WHERE id = 7 AND kind = 1);
SET @dlock_won = IF(ROW_COUNT() = 1, LAST_INSERT_ID(), 0);
DELETE FROM dlock_locks WHERE id = 7 AND kind = 1 AND @dlock_won > 0;
UPDATE dlock_keys SET version = @dlock_fence WHERE method = 1 AND name = :key AND @dlock_won > 0;
SET SESSION wait_timeout = IF(@dlock_won > 0, 30, 28800);
SELECT @dlock_fit, @dlock_version IS NOT NULL, @dlock_won, @dlock_fence, (SELECT slot FROM dlock_locks WHERE id = @dlock_won);
SELECT id, kind, name, owner, mode, slots, fence, TIMESTAMPDIFF(MICROSECOND, since, UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), IF(kind = 1, IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))), IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1)))), slot, IF(kind = 0, record, ''), expires_at FROM dlock_locks WHERE method = 1 AND name = :key ORDER BY id;
COMMIT;
DO IF(@dlock_won > 0, RELEASE_LOCK(:waiter_mark), 0);
SELECT CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')

-- renew, mysql-table
SET @dlock_writable = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
UPDATE dlock_locks SET expires_at = UTC_TIMESTAMP(6) + INTERVAL 30000000 MICROSECOND WHERE id = 9 AND method = 1 AND name = :key AND owner = :owner AND kind = 0 AND (expires_at > UTC_TIMESTAMP(6) OR IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) = CONNECTION_ID()) AND @dlock_writable;
SELECT @dlock_writable AND CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
SELECT kind, why FROM dlock_locks WHERE id = 9 AND method = 1 AND name = :key AND owner = :owner

-- change, mysql-table
SET @dlock_writable = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
UPDATE dlock_locks SET record = X'3a6e65775f7265636f7264', expires_at = UTC_TIMESTAMP(6) + INTERVAL 30000000 MICROSECOND WHERE id = 9 AND method = 1 AND name = :key AND owner = :owner AND kind = 0 AND (expires_at > UTC_TIMESTAMP(6) OR IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) = CONNECTION_ID()) AND @dlock_writable;
SELECT @dlock_writable AND CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
SELECT kind, why FROM dlock_locks WHERE id = 9 AND method = 1 AND name = :key AND owner = :owner

-- release, mysql-table
SET @dlock_writable = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
DELETE FROM dlock_locks WHERE id = 9 AND method = 1 AND name = :key AND owner = :owner AND kind = 0 AND (expires_at > UTC_TIMESTAMP(6) OR IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) = CONNECTION_ID()) AND @dlock_writable;
SELECT @dlock_writable AND CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
SELECT kind, why FROM dlock_locks WHERE id = 9 AND method = 1 AND name = :key AND owner = :owner;
DO RELEASE_LOCK(:holder_mark), RELEASE_LOCK(:session_mark)

-- break_grant, mysql-table
UPDATE dlock_locks SET kind = 2, sole = NULL, why = X'776879', expires_at = UTC_TIMESTAMP(6) + INTERVAL 3600000000 MICROSECOND WHERE method = 1 AND name = :key AND owner = :owner AND (kind = 0 AND (expires_at IS NULL OR NOT expires_at <= UTC_TIMESTAMP(6) OR IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL) OR kind = 2 AND why = X'776879');
SELECT IS_USED_LOCK(:session_mark), IS_USED_LOCK(:row_mark)

-- attempt, mysql-version, exclusive
SET @dlock_marked = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') AND (IS_USED_LOCK(:session_mark) = CONNECTION_ID() OR GET_LOCK(:session_mark, 0) = 1) AND (IS_USED_LOCK(:holder_mark) = CONNECTION_ID() OR GET_LOCK(:holder_mark, 0) = 1), @dlock_fit = ((SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6b657973') + (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6c6f636b73') = 2), @dlock_version = NULL, @dlock_fence = NULL, @dlock_may = 0, @dlock_won = 0;
SELECT version INTO @dlock_version FROM dlock_keys WHERE method = 3 AND name = :key;
SET @dlock_fence = GREATEST(@dlock_version + 1, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000));
START TRANSACTION;
UPDATE dlock_keys SET version = @dlock_fence WHERE method = 3 AND name = :key AND version = @dlock_version AND @dlock_fit AND @dlock_marked AND NOT (EXISTS (SELECT 1 FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 0 AND (expires_at IS NULL OR NOT expires_at <= UTC_TIMESTAMP(6) OR IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL)) OR EXISTS (SELECT 1 FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 1 AND id < 7 AND IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL));
SET @dlock_may = ROW_COUNT();
DELETE FROM dlock_locks WHERE method = 3 AND name = :key AND (kind = 2 AND expires_at <= UTC_TIMESTAMP(6) OR kind = 0 AND expires_at <= UTC_TIMESTAMP(6) AND IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NULL) AND @dlock_fit AND @dlock_may = 1;
INSERT INTO dlock_locks (method, name, kind, sole, slot, owner, mode, slots, fence, since, expires_at, record) SELECT 3, :key, 0, 1, 0, :owner, 0, 1, @dlock_fence, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 30000000 MICROSECOND, :record FROM DUAL WHERE @dlock_fit AND @dlock_may = 1 AND NOT (EXISTS (SELECT 1 FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 0) OR EXISTS (SELECT 1 FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 1 AND id < 7 AND IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL)) AND EXISTS (SELECT 1 FROM dlock_locks WHERE id = 7 AND kind = 1);
SET @dlock_won = IF(ROW_COUNT() = 1, LAST_INSERT_ID(), 0);
DELETE FROM dlock_locks WHERE id = 7 AND kind = 1 AND @dlock_won > 0;
SET SESSION wait_timeout = IF(@dlock_won > 0, 30, 28800);
SELECT @dlock_fit, @dlock_version IS NOT NULL, @dlock_won, @dlock_fence, (SELECT slot FROM dlock_locks WHERE id = @dlock_won);
SELECT id, kind, name, owner, mode, slots, fence, TIMESTAMPDIFF(MICROSECOND, since, UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), IF(kind = 1, IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))), IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1)))), slot, IF(kind = 0, record, ''), expires_at FROM dlock_locks WHERE method = 3 AND name = :key ORDER BY id;
COMMIT;
DO IF(@dlock_won > 0, RELEASE_LOCK(:waiter_mark), 0);
SELECT CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')

-- attempt, mysql-version, shared
SET @dlock_marked = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') AND (IS_USED_LOCK(:session_mark) = CONNECTION_ID() OR GET_LOCK(:session_mark, 0) = 1) AND (IS_USED_LOCK(:holder_mark) = CONNECTION_ID() OR GET_LOCK(:holder_mark, 0) = 1), @dlock_fit = ((SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6b657973') + (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6c6f636b73') = 2), @dlock_version = NULL, @dlock_fence = NULL, @dlock_may = 0, @dlock_won = 0;
SELECT version INTO @dlock_version FROM dlock_keys WHERE method = 3 AND name = :key;
SET @dlock_fence = GREATEST(@dlock_version + 1, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000));
START TRANSACTION;
UPDATE dlock_keys SET version = @dlock_fence WHERE method = 3 AND name = :key AND version = @dlock_version AND @dlock_fit AND @dlock_marked AND NOT (EXISTS (SELECT 1 FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 0 AND (expires_at IS NULL OR NOT expires_at <= UTC_TIMESTAMP(6) OR IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL) AND mode <> 1) OR EXISTS (SELECT 1 FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 1 AND id < 7 AND IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL AND mode <> 1));
SET @dlock_may = ROW_COUNT();
DELETE FROM dlock_locks WHERE method = 3 AND name = :key AND (kind = 2 AND expires_at <= UTC_TIMESTAMP(6) OR kind = 0 AND expires_at <= UTC_TIMESTAMP(6) AND IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NULL) AND @dlock_fit AND @dlock_may = 1;
INSERT INTO dlock_locks (method, name, kind, sole, slot, owner, mode, slots, fence, since, expires_at, record) SELECT 3, :key, 0, NULL, 0, :owner, 1, 1, @dlock_fence, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 30000000 MICROSECOND, :record FROM DUAL WHERE @dlock_fit AND @dlock_may = 1 AND NOT (EXISTS (SELECT 1 FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 0 AND mode <> 1) OR EXISTS (SELECT 1 FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 1 AND id < 7 AND IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL AND mode <> 1)) AND EXISTS (SELECT 1 FROM dlock_locks WHERE id = 7 AND kind = 1);
SET @dlock_won = IF(ROW_COUNT() = 1, LAST_INSERT_ID(), 0);
DELETE FROM dlock_locks WHERE id = 7 AND kind = 1 AND @dlock_won > 0;
SET SESSION wait_timeout = IF(@dlock_won > 0, 30, 28800);
SELECT @dlock_fit, @dlock_version IS NOT NULL, @dlock_won, @dlock_fence, (SELECT slot FROM dlock_locks WHERE id = @dlock_won);
SELECT id, kind, name, owner, mode, slots, fence, TIMESTAMPDIFF(MICROSECOND, since, UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), IF(kind = 1, IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))), IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1)))), slot, IF(kind = 0, record, ''), expires_at FROM dlock_locks WHERE method = 3 AND name = :key ORDER BY id;
COMMIT;
DO IF(@dlock_won > 0, RELEASE_LOCK(:waiter_mark), 0);
SELECT CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')

-- attempt, mysql-version, slots
SET @dlock_marked = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') AND (IS_USED_LOCK(:session_mark) = CONNECTION_ID() OR GET_LOCK(:session_mark, 0) = 1) AND (IS_USED_LOCK(:holder_mark) = CONNECTION_ID() OR GET_LOCK(:holder_mark, 0) = 1), @dlock_fit = ((SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6b657973') + (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6c6f636b73') = 2), @dlock_version = NULL, @dlock_fence = NULL, @dlock_may = 0, @dlock_won = 0;
SELECT version INTO @dlock_version FROM dlock_keys WHERE method = 3 AND name = :key;
SET @dlock_fence = GREATEST(@dlock_version + 1, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000));
START TRANSACTION;
UPDATE dlock_keys SET version = @dlock_fence WHERE method = 3 AND name = :key AND version = @dlock_version AND @dlock_fit AND @dlock_marked AND NOT (EXISTS (SELECT 1 FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 0 AND (expires_at IS NULL OR NOT expires_at <= UTC_TIMESTAMP(6) OR IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL) AND (mode <> 2 OR slots <> 3)) OR (SELECT COUNT(*) FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 0 AND (expires_at IS NULL OR NOT expires_at <= UTC_TIMESTAMP(6) OR IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL)) + (SELECT COUNT(*) FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 1 AND id < 7 AND IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL) >= 3);
SET @dlock_may = ROW_COUNT();
DELETE FROM dlock_locks WHERE method = 3 AND name = :key AND (kind = 2 AND expires_at <= UTC_TIMESTAMP(6) OR kind = 0 AND expires_at <= UTC_TIMESTAMP(6) AND IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NULL) AND @dlock_fit AND @dlock_may = 1;
INSERT INTO dlock_locks (method, name, kind, sole, slot, owner, mode, slots, fence, since, expires_at, record) SELECT 3, :key, 0, NULL, (SELECT MIN(n) FROM (SELECT n FROM (SELECT 1 AS n, 0 AS taken UNION ALL SELECT slot + 1, 0 FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 0 UNION ALL SELECT slot, 1 FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 0) AS candidates GROUP BY n HAVING SUM(taken) = 0) AS untaken), :owner, 2, 3, @dlock_fence, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 30000000 MICROSECOND, :record FROM DUAL WHERE @dlock_fit AND @dlock_may = 1 AND NOT (EXISTS (SELECT 1 FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 0 AND (mode <> 2 OR slots <> 3)) OR (SELECT COUNT(*) FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 0) + (SELECT COUNT(*) FROM dlock_locks WHERE method = 3 AND name = :key AND kind = 1 AND id < 7 AND IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL) >= 3) AND EXISTS (SELECT 1 FROM dlock_locks WHERE id = 7 AND kind = 1);
SET @dlock_won = IF(ROW_COUNT() = 1, LAST_INSERT_ID(), 0);
DELETE FROM dlock_locks WHERE id = 7 AND kind = 1 AND @dlock_won > 0;
SET SESSION wait_timeout = IF(@dlock_won > 0, 30, 28800);
SELECT @dlock_fit, @dlock_version IS NOT NULL, @dlock_won, @dlock_fence, (SELECT slot FROM dlock_locks WHERE id = @dlock_won);
SELECT id, kind, name, owner, mode, slots, fence, TIMESTAMPDIFF(MICROSECOND, since, UTC_TIMESTAMP(6)), TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at), IF(kind = 1, IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))), IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1)))), slot, IF(kind = 0, record, ''), expires_at FROM dlock_locks WHERE method = 3 AND name = :key ORDER BY id;
COMMIT;
DO IF(@dlock_won > 0, RELEASE_LOCK(:waiter_mark), 0);
SELECT CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')

-- renew, mysql-version
SET @dlock_writable = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
UPDATE dlock_locks SET expires_at = UTC_TIMESTAMP(6) + INTERVAL 30000000 MICROSECOND WHERE id = 9 AND method = 3 AND name = :key AND owner = :owner AND kind = 0 AND (expires_at > UTC_TIMESTAMP(6) OR IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) = CONNECTION_ID()) AND @dlock_writable;
SELECT @dlock_writable AND CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
SELECT kind, why FROM dlock_locks WHERE id = 9 AND method = 3 AND name = :key AND owner = :owner

-- change, mysql-version
SET @dlock_writable = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
UPDATE dlock_locks SET record = X'3a6e65775f7265636f7264', expires_at = UTC_TIMESTAMP(6) + INTERVAL 30000000 MICROSECOND WHERE id = 9 AND method = 3 AND name = :key AND owner = :owner AND kind = 0 AND (expires_at > UTC_TIMESTAMP(6) OR IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) = CONNECTION_ID()) AND @dlock_writable;
SELECT @dlock_writable AND CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
SELECT kind, why FROM dlock_locks WHERE id = 9 AND method = 3 AND name = :key AND owner = :owner

-- release, mysql-version
SET @dlock_writable = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
DELETE FROM dlock_locks WHERE id = 9 AND method = 3 AND name = :key AND owner = :owner AND kind = 0 AND (expires_at > UTC_TIMESTAMP(6) OR IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) = CONNECTION_ID()) AND @dlock_writable;
SELECT @dlock_writable AND CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
SELECT kind, why FROM dlock_locks WHERE id = 9 AND method = 3 AND name = :key AND owner = :owner;
DO RELEASE_LOCK(:holder_mark), RELEASE_LOCK(:session_mark)

-- break_grant, mysql-version
UPDATE dlock_locks SET kind = 2, sole = NULL, why = X'776879', expires_at = UTC_TIMESTAMP(6) + INTERVAL 3600000000 MICROSECOND WHERE method = 3 AND name = :key AND owner = :owner AND (kind = 0 AND (expires_at IS NULL OR NOT expires_at <= UTC_TIMESTAMP(6) OR IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NOT NULL) OR kind = 2 AND why = X'776879');
SELECT IS_USED_LOCK(:session_mark), IS_USED_LOCK(:row_mark)

-- join
SET @dlock_marked = (IS_USED_LOCK(:session_mark) = CONNECTION_ID() OR GET_LOCK(:session_mark, 0) = 1) AND (IS_USED_LOCK(:waiter_mark) = CONNECTION_ID() OR GET_LOCK(:waiter_mark, 0) = 1);
INSERT INTO dlock_locks (method, name, kind, sole, slot, owner, mode, slots, fence, since, expires_at, record) SELECT 1, :key, 1, NULL, 0, :owner, 0, 1, 0, UTC_TIMESTAMP(6), NULL, :record FROM DUAL WHERE @dlock_marked

-- forget_unused
SELECT CAST(MIN(id) + IF(RAND() < 0.5, 0, RAND()) * (MAX(id) - MIN(id)) AS UNSIGNED), MAX(id) INTO @dlock_from, @dlock_to FROM dlock_locks;
SELECT id INTO @dlock_to FROM dlock_locks WHERE id >= @dlock_from ORDER BY id LIMIT 15, 1;
DELETE lock_row FROM (SELECT id FROM dlock_locks WHERE id BETWEEN @dlock_from AND @dlock_to AND since < UTC_TIMESTAMP(6) - INTERVAL 7 DAY AND (kind = 1 AND IS_USED_LOCK(CONCAT('dlock.w.', CONVERT(LEFT(owner, 56) USING latin1))) IS NULL OR expires_at < UTC_TIMESTAMP(6) AND IS_USED_LOCK(CONCAT('dlock.h.', CONVERT(LEFT(owner, 56) USING latin1))) IS NULL) LIMIT 16 FOR UPDATE SKIP LOCKED) AS unused STRAIGHT_JOIN dlock_locks AS lock_row ON lock_row.id = unused.id;
SET @dlock_unused = NULL, @dlock_part = RAND();
SET @dlock_method = IF(@dlock_unused IS NULL, 1, @dlock_method);
SELECT name INTO @dlock_unused FROM (SELECT method, name, version FROM dlock_keys WHERE method = @dlock_method AND name > :key ORDER BY method, name LIMIT 16) AS one WHERE @dlock_unused IS NULL AND NOT (method = 1 AND name = :key) AND version < (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000) - 604800000 AND NOT EXISTS (SELECT 1 FROM dlock_locks AS lock_row WHERE lock_row.method = @dlock_method AND lock_row.name = one.name) LIMIT 1;
SET @dlock_method = IF(@dlock_unused IS NULL, 1, @dlock_method);
SELECT name INTO @dlock_unused FROM (SELECT method, name, version FROM dlock_keys WHERE method = @dlock_method AND name > X'' ORDER BY method, name LIMIT 16) AS one WHERE @dlock_unused IS NULL AND NOT (method = 1 AND name = :key) AND version < (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000) - 604800000 AND NOT EXISTS (SELECT 1 FROM dlock_locks AS lock_row WHERE lock_row.method = @dlock_method AND lock_row.name = one.name) LIMIT 1;
SET @dlock_method = IF(@dlock_unused IS NULL, CAST(FLOOR(1 + RAND() * 3) AS UNSIGNED), @dlock_method);
SELECT name INTO @dlock_unused FROM (SELECT method, name, version FROM dlock_keys WHERE method = @dlock_method AND name > LEFT(:key, FLOOR(@dlock_part * LENGTH(:key))) ORDER BY method, name LIMIT 16) AS one WHERE @dlock_unused IS NULL AND NOT (method = 1 AND name = :key) AND version < (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000) - 604800000 AND NOT EXISTS (SELECT 1 FROM dlock_locks AS lock_row WHERE lock_row.method = @dlock_method AND lock_row.name = one.name) LIMIT 1;
DELETE key_row FROM (SELECT method, name FROM dlock_keys WHERE method = @dlock_method AND name = @dlock_unused AND version < (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000) - 604800000 LIMIT 16 FOR UPDATE SKIP LOCKED) AS unused STRAIGHT_JOIN dlock_keys AS key_row ON key_row.method = unused.method AND key_row.name = unused.name;


-- attempt, on a cluster
SET @dlock_marked = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF') AND TRUE AND TRUE, @dlock_fit = ((SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6b657973') + (SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND engine = 'InnoDB' AND table_name = X'646c6f636b5f6c6f636b73') = 2), @dlock_version = NULL, @dlock_fence = NULL, @dlock_may = 0, @dlock_won = 0;
START TRANSACTION;
SELECT version INTO @dlock_version FROM dlock_keys WHERE method = 1 AND name = :key FOR UPDATE;
SET @dlock_fence = GREATEST(@dlock_version + 1, (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000)), @dlock_may = @dlock_version IS NOT NULL AND @dlock_marked;
DELETE FROM dlock_locks WHERE method = 1 AND name = :key AND (kind = 2 AND expires_at <= UTC_TIMESTAMP(6) OR kind = 0 AND :is_over AND IF(:is_over, NULL, 0) IS NULL) AND @dlock_fit AND @dlock_may = 1;
INSERT INTO dlock_locks (method, name, kind, sole, slot, owner, mode, slots, fence, since, expires_at, record) SELECT 1, :key, 0, 1, 0, :owner, 0, 1, @dlock_fence, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 30000000 MICROSECOND, :record FROM DUAL WHERE @dlock_fit AND @dlock_may = 1 AND NOT (EXISTS (SELECT 1 FROM dlock_locks WHERE method = 1 AND name = :key AND kind = 0) OR EXISTS (SELECT 1 FROM dlock_locks WHERE method = 1 AND name = :key AND kind = 1 AND id < 7 AND IF(:is_over, NULL, 0) IS NOT NULL)) AND EXISTS (SELECT 1 FROM dlock_locks WHERE id = 7 AND kind = 1);
SET @dlock_won = IF(ROW_COUNT() = 1, LAST_INSERT_ID(), 0);
DELETE FROM dlock_locks WHERE id = 7 AND kind = 1 AND @dlock_won > 0;
UPDATE dlock_keys SET version = @dlock_fence WHERE method = 1 AND name = :key AND @dlock_won > 0;
SET SESSION wait_timeout = IF(@dlock_won > 0, 30, 28800);
SELECT @dlock_fit, @dlock_version IS NOT NULL, @dlock_won, @dlock_fence, (SELECT slot FROM dlock_locks WHERE id = @dlock_won);
SELECT id, kind, name, owner, mode, slots, fence, TIMESTAMPDIFF(MICROSECOND, since, UTC_TIMESTAMP(6)), IF(:is_over, 0, TIMESTAMPDIFF(MICROSECOND, UTC_TIMESTAMP(6), expires_at)), IF(kind = 1, IF(:is_over, NULL, 0), IF(:is_over, NULL, 0)), slot, IF(kind = 0, record, ''), expires_at FROM dlock_locks WHERE method = 1 AND name = :key ORDER BY id;
COMMIT;
DO IF(@dlock_won > 0, 0, 0);
SELECT CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF')

-- join, on a cluster
SET @dlock_marked = TRUE AND TRUE;
INSERT INTO dlock_locks (method, name, kind, sole, slot, owner, mode, slots, fence, since, expires_at, record) SELECT 1, :key, 1, NULL, 0, :owner, 0, 1, 0, UTC_TIMESTAMP(6), UTC_TIMESTAMP(6) + INTERVAL 10000000 MICROSECOND, :record FROM DUAL WHERE @dlock_marked

-- renew, on a cluster
SET @dlock_writable = CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
UPDATE dlock_locks SET expires_at = UTC_TIMESTAMP(6) + INTERVAL 30000000 MICROSECOND WHERE id = 9 AND method = 1 AND name = :key AND owner = :owner AND kind = 0 AND (expires_at > UTC_TIMESTAMP(6) OR TRUE) AND @dlock_writable;
SELECT @dlock_writable AND CAST(@@GLOBAL.read_only AS CHAR) IN ('0', 'OFF');
SELECT kind, why FROM dlock_locks WHERE id = 9 AND method = 1 AND name = :key AND owner = :owner

