-- Takes the lock if no other client has taken it since the look, and each lease that is taken over is
-- the one that was over then.  Else no row is added.  The gate is released after the commit.
-- The last answer: {won, writable, fencing number}.
START TRANSACTION;
UPDATE {keys} SET version = LAST_INSERT_ID(GREATEST(version + 1, {now_ms}))
 WHERE method = {method} AND name = {key} AND version = {version} AND {writable};
SET @dlock_won = ROW_COUNT() = 1, @dlock_fence = LAST_INSERT_ID();
DELETE FROM {locks} WHERE @dlock_won AND role = 'holder' AND ({is_over});
SET @dlock_won = @dlock_won AND ROW_COUNT() = {count_over};
DELETE FROM {locks} WHERE @dlock_won AND owner = {owner};
INSERT INTO {locks} (owner, method, name, role, sole, mode, slots, slot, fence, since, expires_at, record)
SELECT {owner}, {method}, {key}, 'holder', {sole}, {mode}, {slots}, {slot}, @dlock_fence, {now}, {expiry}, {record}
  FROM DUAL WHERE @dlock_won;
SET SESSION wait_timeout = IF(@dlock_won, {silence}, {waiter_silence});
COMMIT;
SELECT @dlock_won, {writable}, @dlock_fence, IF(@dlock_won, {release_gate}, 0)
