-- Gives the lock up if it is ours, leaves the queue if we are in it, and calls the next.
--   KEYS[5]  our record as a waiter
--   KEYS[6]  why we have lost it, if somebody said; also a mark that this id is given up
--   ARGV[5]  '1': we may be in the queue
--   ARGV[6]  '1': something that we asked was not answered.  It may come later, and shall find the mark;
--            what is here of ours may be of an earlier request.  How much later nobody knows, but TCP
--            gives up sooner than this
-- Returns {1}       it was ours
--         {0, why}  it was not; why: of a force-release, or ''
if ARGV[5] == '1' then
  redis.call('ZREM', queue, letter(mode) .. ':' .. id)
  redis.call('DEL', KEYS[5])
end
local was_ours = remove(id, KEYS[5])
if ARGV[5] == '1' and not was_ours then settle_queue() end
if ARGV[6] == '1' then redis.call('SET', KEYS[6], '', 'NX', 'PX', 1200000) end
if was_ours then return {1} end
return {0, redis.call('GET', KEYS[6]) or ''}
