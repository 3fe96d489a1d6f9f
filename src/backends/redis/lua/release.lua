-- Gives the lock up if it is ours, leaves the queue if we are in it, and calls the next.
--   KEYS[5]  our record as a waiter
--   KEYS[6]  why we have lost it, if somebody said
--   ARGV[4]  '1': we may be in the queue
-- Returns {1}       it was ours
--         {0, why}  it was not; why: of a force-release, or ''
if ARGV[4] == '1' then
  redis.call('ZREM', queue, letter(mode) .. ':' .. id)
  redis.call('DEL', KEYS[5])
end
if remove(id, KEYS[5]) then return {1} end
if ARGV[4] == '1' then settle_queue() end
return {0, redis.call('GET', KEYS[6]) or ''}
