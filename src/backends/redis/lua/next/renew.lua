-- Extends the grant W:r, or shortens it.  Never acquires the lock again.
--   KEYS[5]  why W:r has lost the lock, if somebody said
--   ARGV[6]  ttl, ms       ARGV[7] record, with the token and how long it was held
--   ARGV[8]  this server's number in the client's list; '' where it is the only one
--   ARGV[9]  '1': never shorten it
-- Returns {1, ms}          ours; what was left of it, -1: somebody had made it endless
--         {0, why, 'none'} lost, and the lock is free, or has room; why: of a force-release, or ''
--         {0, why, 'held'} lost, and another has it
--         {2, number}      ours, but under another number: it is listed twice
local ttl, record, node, longer = tonumber(ARGV[6]), ARGV[7], ARGV[8], ARGV[9] == '1'

-- A server that is out of memory takes no record, but it may keep the lock.
local function keep(...)
  local kept = redis.pcall(...)
  return type(kept) ~= 'table' or not kept.err
end

local its_mode = held()
local ours = round_held(its_mode)
if ours ~= round then
  local is_free = its_mode == 'none' or not ours and has_room(its_mode, mode)
  return {0, redis.call('GET', KEYS[5]) or '', is_free and 'none' or 'held'}
end
local twin = twin_of(its_mode, ours, node)
if twin then return {2, twin} end
local left = redis.call('PTTL', lock)
if its_mode == 'x' then
  local ms = longer and math.max(ttl, left) or ttl
  redis.call('PEXPIRE', lock, whole(ms))
  if not keep('SET', owner, record, 'PX', whole(ms)) then redis.call('PEXPIRE', owner, whole(ms)) end
  redis.call('EXISTS', lock)  -- this connection is told of changes of what it has read: of those from now on
else
  local before = redis.call('ZSCORE', lock, W) - now
  local ms = longer and math.max(ttl, before) or ttl
  -- First, since a server that is out of memory takes a ZADD only after another write.
  redis.call('PEXPIRE', lock, whole(math.max(left, ms)))
  redis.call('ZADD', lock, 'XX', whole(now + ms), W)
  keep('HSET', owner, W, record)
  end_with_last()
end
if left >= 0 then tell_end(left) end
return {1, left}
