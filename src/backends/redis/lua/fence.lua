-- Writes a fencing token that was agreed on with other servers, if the lock is still ours and nobody
-- else has this token or a larger one.
--   ARGV[5]  the token     ARGV[6] record, without a token
-- Returns {1}                      written
--         {0, 'gone'}              the lock is not ours any more
--         {0, 'overtaken', token}  that is the counter here
local token = ARGV[5]
local mark = ',"fence":' .. token .. '}'
local record = string.sub(ARGV[6], 1, -2) .. mark

local function is_written_in(stored)
  return type(stored) == 'string' and string.sub(stored, -#mark) == mark
end

local stored
if mode == 'x' then
  if redis.pcall('GET', lock) ~= id then return {0, 'gone'} end
  stored = redis.pcall('GET', owner)
else
  local expires = redis.pcall('ZSCORE', lock, id)
  if type(expires) ~= 'string' or tonumber(expires) <= now_ms() or not held_mode() then
    return {0, 'gone'}
  end
  stored = redis.call('HGET', owner, id)
end

local count = tonumber(redis.pcall('GET', counter) or 0) or 0
if count > tonumber(token) or count == tonumber(token) and not is_written_in(stored) then
  return {0, 'overtaken', whole(count)}
end
set_counter(token)
if mode == 'x' then
  redis.call('SET', owner, record, 'PX', math.max(redis.call('PTTL', lock), 1))
else
  redis.call('HSET', owner, id, record)
end
return {1}
