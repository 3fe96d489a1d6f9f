-- Gives up what W has got up to round r, and leaves the queue for good if this is the end of W.
--   KEYS[5]  our record as a waiter     KEYS[6]  there if W has been given up
--   KEYS[7]  why W:r has lost the lock, if somebody said
--   ARGV[6]  '1': W will not ask again
--   ARGV[7]  '1': and something that it has asked was not answered.  It may come later, and shall get
--            nothing.  How much later nobody knows, but TCP gives up sooner than this lasts
--   ARGV[8]  '1': offer the lock to nobody, since W asks again at once
-- Returns {1}       W:r had the lock
--         {0, why}  it had not; why: of a force-release, or ''
local final, void, quiet = ARGV[6] == '1', ARGV[7] == '1', ARGV[8] == '1'
local was_queued = false
if final then
  was_queued = try('ZREM', queue, entry) == 1
  redis.call('DEL', KEYS[5])
  if void then redis.call('SET', KEYS[6], '', 'PX', kVoid) end
end
local its_mode = held()
local ours = round_held(its_mode)
local has_it = ours and ours <= round
local left = redis.call('PTTL', lock)
local its_record = has_it and not final and record_of(its_mode, W .. ':' .. whole(ours)) or ''
if has_it then take(its_mode, W) end
-- A server that has lost its data looks as before: else the holder would not get the lock back there.
if string.match(its_record, kFirst .. ',"fence":(%d+)}$') == whole(count()) and redis.call('EXISTS', lock) == 0 then
  redis.call('DEL', counter)
end
if (has_it or was_queued) and not quiet then offer() end
if has_it and its_mode ~= 'x' then tell_end(left) end
if ours == round then return {1} end
return {0, redis.call('GET', KEYS[7]) or ''}
