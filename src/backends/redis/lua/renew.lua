-- Extends the lock, or shortens it, if it is still ours.  Never takes it again.
--   KEYS[5]  why we have lost it, if somebody said
--   ARGV[5]  ttl, ms       ARGV[6] record, with the fence and how long it was held
--   ARGV[7]  this server's number in the client's list; '' where this is the only server
--   ARGV[8]  our number as a slots holder, or ''
-- Returns {1, ms}        ours; what was left of it, -1: somebody had made it endless
--         {0, why, what} lost; why: of a force-release, or ''; what stands at the lock: its type, or
--                        'number': another holder has our number here.  The lock is extended all the
--                        same, so that the number is ours once that holder has gone
--         {2, number}    ours, but under another number: it is listed twice
local ttl, record, node, number = ARGV[5], ARGV[6], ARGV[7], ARGV[8]

-- A server that is out of memory takes no record, but it may keep the lock.
local function keep(command, ...)
  local kept = redis.pcall(command, ...)
  return type(kept) ~= 'table' or not kept.err
end

if mode == 'x' then
  if redis.pcall('GET', lock) == id then
    local twin = twin_of(node)
    if twin then return {2, twin} end
    local left = redis.call('PTTL', lock)
    redis.call('PEXPIRE', lock, ttl)
    if not keep('SET', owner, record, 'PX', ttl) then redis.call('PEXPIRE', owner, ttl) end
    if left > tonumber(ttl) then ends_in(tonumber(ttl)) end
    redis.call('EXISTS', lock)  -- if this connection is told of changes: of those from now on
    return {1, left}
  end
else
  local now = now_ms()
  local expires = redis.pcall('ZSCORE', lock, id)
  if type(expires) == 'string' and tonumber(expires) > now and held_mode() then
    local twin = twin_of(node)
    if twin then return {2, twin} end
    -- First, since a server that is out of memory takes a ZADD only after another write.
    local left = redis.call('PTTL', lock)
    redis.call('PEXPIRE', lock, whole(math.max(left, tonumber(ttl))))
    redis.call('ZADD', lock, 'XX', whole(now + ttl), id)
    keep('HSET', owner, id, record)
    redis.call('PEXPIRE', owner, redis.call('PTTL', lock))
    local has_number = take_number(number, now)
    if tonumber(expires) > now + ttl then settle(now) end
    if not has_number then return {0, '', 'number'} end
    return {1, left}
  end
end
return {0, redis.call('GET', KEYS[5]) or '', redis.call('TYPE', lock).ok}
