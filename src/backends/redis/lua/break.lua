-- Takes the lock from the holder ARGV[1], whoever took it.  Of what another program has put there
-- it takes only what look.lua has shown.
--   KEYS[5]  the record that it may still have as a waiter
--   KEYS[6]  where a holder of ours finds the reason
--   ARGV[5]  the reason
-- Returns 1, or 0: it holds nothing any more
local kind = redis.call('TYPE', lock).ok
local left = redis.call('PTTL', lock)

local function take_string()
  if redis.call('GETRANGE', lock, 0, 511) ~= id then return 0 end
  redis.call('DEL', lock, owner)
  call_next()
  return 1
end

-- Symfony's: member -> when it expires, ms.
local function take_member()
  local expires = redis.call('ZSCORE', lock, id)
  if not expires or id == '__write__' then return 0 end
  local now = now_ms()
  local ahead = redis.call('ZRANGEBYSCORE', lock, '(' .. whole(now), '+inf', 'LIMIT', 0, 1)
  if ahead[1] and tonumber(expires) <= now then return 0 end
  redis.call('ZREM', lock, id, '__write__')
  local last = tonumber(redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2])
  if not last then
    call_next()
  elseif left >= 0 and last > now and last < 1e13 then
    redis.call('PEXPIREAT', lock, whole(last))
  end
  return 1
end

-- Redisson's: field -> hold count, and perhaps 'mode'.  Its waiters sleep until they hear a message
-- (LockPubSub: '0' wakes one, '1' all), or until the time is over that the lock had left.
local function take_field()
  if id == 'mode' or redis.call('HEXISTS', lock, id) == 0 then return 0 end
  local its_mode = redis.call('HGET', lock, 'mode')
  redis.call('HDEL', lock, id)
  local cursor, others = '0', false
  repeat
    local fields
    cursor, fields = unpack(redis.call('HSCAN', lock, cursor, 'COUNT', 10))
    for i = 1, #fields, 2 do others = others or fields[i] ~= 'mode' end
  until cursor == '0' or others
  local was_writer = its_mode == 'write' and string.sub(id, -6) == ':write'
  if not others then
    redis.call('DEL', lock)
  elseif was_writer then  -- it reads, too
    redis.call('HSET', lock, 'mode', 'read')
  end
  local is_redisson = string.find(id, '^%x+%-%x+%-%x+%-%x+%-%x+:%-?%d+')
  if is_redisson and (was_writer or not others) then
    local name = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
    local channel = its_mode and 'redisson_rwlock:' or 'redisson_lock__channel:'
    redis.pcall('PUBLISH', channel .. name, was_writer and '1' or '0')
  end
  if not others then call_next() end
  return 1
end

local function is_ours()
  if kind == 'zset' then return held_mode() end
  local record = redis.pcall('GET', owner)
  return kind == 'string' and type(record) == 'string' and
         string.find(record, '"id":"' .. id .. '"', 1, true)
end

if not is_ours() then
  if kind == 'string' then return take_string() end
  if kind == 'zset' then return take_member() end
  if kind == 'hash' then return take_field() end
  return 0
end
if not remove(id, KEYS[5]) then return 0 end
redis.call('SET', KEYS[6], ARGV[5], 'PX', whole(math.max(left, 0) + 60000))
redis.pcall('PUBLISH', channels .. id, 'revoked')
return 1
