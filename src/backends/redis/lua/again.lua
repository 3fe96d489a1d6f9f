-- Gives the rest of a lease to a server that has lost its data, once a majority of the others has
-- renewed it.  That it has lost them all, and somebody has not deleted this lock, shows in the counter,
-- as long as that cannot have expired.  Where several hold the lock, the first that comes back, or comes
-- anew, sets the counter for the others, too: it leaves '@again' for them.  That goes with the lock, and
-- whose record is still there while it is no member was taken out by somebody.
--   KEYS[5]  there if the lock was broken, or this id is given up
--   ARGV[5]  the rest, ms       ARGV[6] record, with the token       ARGV[7] the token
--   ARGV[8]  our number, of slots; or ''
-- Returns {1}, or {0}: no
local rest, record, token, number = tonumber(ARGV[5]), ARGV[6], ARGV[7], ARGV[8]

if redis.call('EXISTS', KEYS[5]) == 1 then return {0} end
local count = tonumber(redis.pcall('GET', counter) or 0) or 0
local was_lost = count < tonumber(token)
if now_ms() >= tonumber(token) + kWeek then return {0} end
if mode == 'x' then
  if not was_lost then return {0} end
  if not redis.call('SET', lock, id, 'NX', 'PX', rest) then return {0} end
  redis.call('SET', owner, record, 'PX', rest)
else
  local now = now_ms()
  if redis.call('TYPE', lock).ok == 'zset' and held_mode() then purge(now) end
  if redis.call('TYPE', lock).ok ~= 'none' then
    local slots = tonumber(string.sub(mode, 2)) or math.huge
    if held_mode() ~= mode or redis.call('ZCARD', lock) >= slots then return {0} end
    if redis.call('HEXISTS', owner, id) == 1 then return {0} end
    if not was_lost and redis.call('HEXISTS', owner, '@again') == 0 then return {0} end
  else
    if not was_lost then return {0} end
    if redis.call('EXISTS', owner) == 1 then redis.call('DEL', owner) end
  end
  if not take_number(number, now) then return {0} end
  redis.call('ZADD', lock, whole(now + rest), id)
  redis.call('HSET', owner, '@mode', mode, '@again', '', id, record)
  local left = math.max(redis.call('PTTL', lock), rest)
  redis.call('PEXPIRE', lock, left)
  redis.call('PEXPIRE', owner, left)
end
if count < tonumber(token) then set_counter(token) end
return {1}
