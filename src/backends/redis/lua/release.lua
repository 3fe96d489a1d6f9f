-- Gives the lock up if it is ours, leaves the queue if we are in it, and calls the next.
--   KEYS[5]  our record as a waiter
--   KEYS[6]  why we have lost it, if somebody said; also a mark that this id is given up
--   ARGV[5]  '1': we may be in the queue
--   ARGV[6]  '1': our attempt was not answered.  If nothing of it is here it may come later, and shall
--            find the mark.  How much later nobody knows, but TCP gives up sooner than this
-- Returns {1}       it was ours
--         {0, why}  it was not; why: of a force-release, or ''
local was_queued
if ARGV[5] == '1' then
  was_queued = redis.call('ZREM', queue, letter(mode) .. ':' .. id) == 1
  redis.call('DEL', KEYS[5])
end
if remove(id, KEYS[5]) then return {1} end
if ARGV[5] == '1' then settle_queue() end
if ARGV[6] == '1' and not was_queued then redis.call('SET', KEYS[6], '', 'NX', 'PX', 1200000) end
return {0, redis.call('GET', KEYS[6]) or ''}
