-- The row of a waiter, which `dlock show` prints; or tells once more that the waiter is there.
-- The last answer: how many wait.
INSERT INTO {locks} (owner, method, name, role, sole, mode, slots, slot, fence, since, expires_at, record)
VALUES ({owner}, {method}, {key}, 'waiter', NULL, {mode}, {slots}, 0, 0, {now}, {waiter_expiry}, {record})
    ON DUPLICATE KEY UPDATE expires_at = IF(role = 'waiter', {waiter_expiry}, expires_at);
SELECT COUNT(*) FROM {locks} WHERE method = {method} AND name = {key} AND role = 'waiter'
