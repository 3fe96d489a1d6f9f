-- Extends the grant W:r, or shortens it, unless this comes after a later renewal.  Never acquires the
-- lock again.
--   KEYS[5]  why W:r has lost the lock, if somebody said
--   ARGV[6]  ttl, ms       ARGV[7] record, with the token and how long it was held
--   ARGV[8]  this server's number in the client's list; '' where it is the only one
-- Returns {1, ms}          ours; what was left of it, -1: somebody had made it endless
--         {0, why, 'none'} lost, and the lock is free, has room, or is left from an earlier round of W;
--                          why: of a force-release, or ''
--         {0, why, 'held'} lost, and another has it
--         {2, number}      ours, but under another number: it is listed twice
local ttl, record, node = tonumber(ARGV[6]), ARGV[7], ARGV[8]

-- A server that is out of memory takes no record, but it may keep the lock.
local function keep(...)
  local kept = redis.pcall(...)
  return type(kept) ~= 'table' or not kept.err
end

local its_mode = held()
local ours = round_held(its_mode)
if ours ~= round then
  local is_left = ours and ours < round
  local is_free = its_mode == 'none' or is_left or not ours and has_room(its_mode, mode)
  return {0, redis.call('GET', KEYS[5]) or '', is_free and 'none' or 'held'}
end
local duplicate = duplicate_of(its_mode, ours, node)
if duplicate then return {2, duplicate} end
local left = redis.call('PTTL', lock)
local function held_ms(text) return tonumber(string.match(text, '"held_ms":(%d+)')) or 0 end
local is_late = held_ms(record) < held_ms(record_of(its_mode, W .. ':' .. whole(round)))
if its_mode == 'x' then
  if is_late then ttl = math.max(ttl, left) end
  redis.call('PEXPIRE', lock, whole(ttl))
  if is_late or not keep('SET', owner, record, 'PX', whole(ttl)) then redis.call('PEXPIRE', owner, whole(ttl)) end
  redis.call('EXISTS', lock)  -- this connection is told of changes of what it has read: of those from now on
else
  -- First, since a server that is out of memory takes a ZADD only after another write.
  redis.call('PEXPIRE', lock, whole(math.max(left, ttl)))
  local ends = now + ttl
  if is_late then ends = math.max(ends, redis.call('ZSCORE', lock, W)) end
  redis.call('ZADD', lock, 'XX', whole(ends), W)
  if not is_late then keep('HSET', owner, W, record) end
  end_with_last()
end
if left >= 0 then tell_end(left) end
return {1, left}
