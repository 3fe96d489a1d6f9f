-- Whether a waiter that would share the lock, or take one of its slots, can have it now: a place is free, and
-- nobody is in front who lives and wants it in another mode.  Where it is held in another mode, asking tells
-- more.  Writes nothing.
-- Returns {1, 0}, or {0, ms}: look again then (-1: it never ends)
local now = now_ms()
local held = redis.call('TYPE', lock).ok == 'zset' and held_mode()
if held ~= mode then return {1, 0} end
local slots = tonumber(string.sub(mode, 2)) or math.huge
if redis.call('ZCARD', lock) >= slots then
  local soonest = redis.call('ZRANGE', lock, 0, 0, 'WITHSCORES')
  if tonumber(soonest[2]) > now then return {0, soonest[2] - now} end
end
if others_ahead() then return {0, redis.call('PTTL', lock)} end
return {1, 0}
