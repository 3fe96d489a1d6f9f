-- Breaks the lock of one holder, of dlock or of another program.  Of what another program has put there it
-- deletes only what look.lua has shown.
--   KEYS[5]  where a holder of ours finds the reason     KEYS[6]  there if W has been given up
--   ARGV[6]  the holder as it was shown: W:r, W of an offer, or what another program wrote; W and r are
--            '' and 0 then       ARGV[7] the reason
-- Returns 1, or 0: it holds nothing any more
local id, reason = ARGV[6], ARGV[7]
local left = redis.call('PTTL', lock)
local its_mode = held()
local kind = redis.call('TYPE', lock).ok

local function take_string()
  if redis.call('GETRANGE', lock, 0, 511) ~= id then return 0 end
  redis.call('DEL', lock, owner)
  return 1
end

-- Symfony's: member -> when it expires, ms.
local function take_member()
  local expires = redis.call('ZSCORE', lock, id)
  if not expires or id == '__write__' then return 0 end
  local ahead = redis.call('ZRANGEBYSCORE', lock, '(' .. whole(now), '+inf', 'LIMIT', 0, 1)
  if ahead[1] and tonumber(expires) <= now then return 0 end
  redis.call('ZREM', lock, id, '__write__')
  local last = tonumber(redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2])
  if last and left >= 0 and last > now and last < 1e13 then
    redis.call('PEXPIREAT', lock, whole(last))
  end
  return 1
end

-- Redisson's: field -> hold count, and perhaps 'mode'.  Its waiters sleep until they hear a message
-- (LockPubSub: '0' wakes one, '1' all), or until the time is over that the lock had left.
local function take_field()
  if id == 'mode' or redis.call('HEXISTS', lock, id) == 0 then return 0 end
  local kept_for = redis.call('HGET', lock, 'mode')
  redis.call('HDEL', lock, id)
  local cursor, others = '0', false
  repeat
    local fields
    cursor, fields = unpack(redis.call('HSCAN', lock, cursor, 'COUNT', 10))
    for i = 1, #fields, 2 do others = others or fields[i] ~= 'mode' end
  until cursor == '0' or others
  local was_writer = kept_for == 'write' and string.sub(id, -6) == ':write'
  if not others then
    redis.call('DEL', lock)
  elseif was_writer then  -- it reads, too
    redis.call('HSET', lock, 'mode', 'read')
  end
  local is_redisson = string.find(id, '^%x+%-%x+%-%x+%-%x+%-%x+:%-?%d+')
  if is_redisson and (was_writer or not others) then
    local name = string.find(lock, '{', 1, true) and lock or '{' .. lock .. '}'
    local channel = kept_for and 'redisson_rwlock:' or 'redisson_lock__channel:'
    redis.pcall('PUBLISH', channel .. name, was_writer and '1' or '0')
  end
  return 1
end

local function take_foreign()
  if kind == 'string' then return take_string() end
  if kind == 'zset' then return take_member() end
  if kind == 'hash' then return take_field() end
  return 0
end

local function take_ours()
  local is_there
  if its_mode == 'x' then
    is_there = string_id() == id
  else
    is_there = round_held(its_mode) == round
  end
  if is_there then take(its_mode, W) end
  return is_there and 1 or 0
end

local taken = 0
if its_mode == 'other' or its_mode == 'x' and record_of('x', string_id()) == '' then
  taken = take_foreign()
elseif its_mode ~= 'none' then
  taken = take_ours()
end
-- Also where it has nothing: else a server that is given a lease again would bring it back.
if round > 0 then
  redis.call('DEL', KEYS[5])  -- a server that is out of memory takes a SET only after another write
  redis.call('SET', KEYS[5], reason, 'PX', whole(taken == 1 and math.max(left, 0) + 60000 or kVoid))
  redis.call('SET', KEYS[6], '', 'PX', kVoid)
  try('ZREM', queue, 'x:' .. W, 's:' .. W, 'n:' .. W)
end
if taken == 0 then return 0 end
if W ~= '' then tell(W, round > 0 and 'revoked' or 'go') end
offer()
if its_mode ~= 'x' and its_mode ~= 'other' then tell_end(left) end
return 1
