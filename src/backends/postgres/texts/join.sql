-- The row of a waiter, which `dlock show` prints.
-- The last answer: how many wait.
INSERT INTO {locks} (owner, method, name, role, mode, slots, slot, fence, since, expires_at, record)
VALUES ({owner}, {method}, {key}, 'waiter', {mode}, {slots}, 0, 0, {now}, NULL, {record}) ON CONFLICT DO NOTHING;
SELECT count(*) FROM {locks} WHERE method = {method} AND name = {key} AND role = 'waiter'
