-- Writes what `dlock once` remembers, if W:r has the lock, and releases the lock in the same step.  What
-- can be refused, as by a server that is out of memory, comes first.
--   KEYS[5]  why W:r has lost it, if somebody said     KEYS[6]  the mark, as in put.lua
--   ARGV[6]  its text                   ARGV[7]  for how long it is to be remembered, ms
-- Returns {1}             it is remembered, by this call or an earlier one
--         {0, why, what}  the lock is not ours, as in renew.lua
local mark, text, ms = KEYS[6], ARGV[6], ARGV[7]
local id = W .. ':' .. whole(round)

local its_mode = held()
if round_held(its_mode) == round then
  redis.call('SET', mark, whole(now) .. ' ' .. text, 'PX', ms)
  take(its_mode, W)
  offer()
  return {1}
end
local there = try('GETRANGE', mark, 0, 16383)
if is_text(there) and string.find(there, '"id":"' .. id .. '"', 1, true) then return {1} end
return {0, redis.call('GET', KEYS[5]) or '', its_mode == 'none' and 'none' or 'held'}
