-- Writes what `dlock once` remembers, if the lock is ours, and gives the lock up in the same step.  What
-- can be refused, as by a server that is out of memory, comes first.
--   KEYS[5]  our record as a waiter     KEYS[6]  why we have lost it, if somebody said
--   KEYS[7]  the mark, as in put.lua
--   ARGV[5]  its text                   ARGV[6]  for how long it is to be remembered, ms
-- Returns {1}             it is remembered, by this call or an earlier one
--         {0, why, what}  the lock is not ours, as in renew.lua
local mark, text, ms = KEYS[7], ARGV[5], ARGV[6]

if redis.pcall('GET', lock) == id then
  redis.call('SET', mark, whole(now_ms()) .. ' ' .. text, 'PX', ms)
  remove(id, KEYS[5])
  return {1}
end
local there = try('GETRANGE', mark, 0, 16383)
if type(there) == 'string' and string.find(there, '"id":"' .. id .. '"', 1, true) then return {1} end
return {0, redis.call('GET', KEYS[6]) or '', redis.call('TYPE', lock).ok}
