-- Writes a fencing token that was agreed on with other servers, if the lock is still ours and nobody
-- else has this token or a larger one.  Of slots, takes the number that was agreed on, too.
--   ARGV[5]  the token     ARGV[6] record, without a token
--   ARGV[7]  the number, or ''; one that acquire.lua has given us here goes back
-- Returns {1}                      written
--         {0, 'gone'}              the lock is not ours any more
--         {0, 'taken'}             another holder has the number here
--         {0, 'overtaken', token}  that is the counter here
local token, number = ARGV[5], ARGV[7]
local mark = ',"fence":' .. token .. '}'
local record = string.sub(ARGV[6], 1, -2) .. mark

local function is_written_in(stored)
  return type(stored) == 'string' and string.sub(stored, -#mark) == mark
end

local stored, now
if mode == 'x' then
  if redis.pcall('GET', lock) ~= id then return {0, 'gone'} end
  stored = redis.pcall('GET', owner)
else
  now = now_ms()
  local expires = redis.pcall('ZSCORE', lock, id)
  if type(expires) ~= 'string' or tonumber(expires) <= now or not held_mode() then
    return {0, 'gone'}
  end
  stored = redis.call('HGET', owner, id)
end

-- Before anything is written: this may be a request of an earlier attempt that comes late, and must
-- not change the number that we have by now.
local count = tonumber(redis.pcall('GET', counter) or 0) or 0
if count > tonumber(token) or count == tonumber(token) and not is_written_in(stored) then
  return {0, 'overtaken', whole(count)}
end
if mode ~= 'x' and not take_number(number, now) then return {0, 'taken'} end
set_counter(token)
if mode == 'x' then
  redis.call('SET', owner, record, 'PX', math.max(redis.call('PTTL', lock), 1))
else
  redis.call('HSET', owner, id, record)
end
return {1}
