-- Writes what `dlock once` remembers, if the lock is ours, and gives the lock up in the same step.  What
-- can be refused, as by a server that is out of memory, comes first.
--   KEYS[5]  our record as a waiter     KEYS[6]  why we have lost it, if somebody said
--   KEYS[7]  the entry
--   ARGV[5]  its rank                   ARGV[6]  for how long it is to be remembered, ms
--   ARGV[7]  its record
-- Returns {1}             it is remembered, by this call or an earlier one
--         {0, why, what}  the lock is not ours, as in renew.lua; or somebody has had it after us
--         {2}             what stands at the entry was not written by dlock; nothing was changed
local rank, ms, record = ARGV[5], ARGV[6], ARGV[7]

local there = entry_there()
if not there then return {2} end
-- Also if it was forgotten since: then it was done before that.
local done = string.find(there, '"id":"' .. id .. '"', 1, true)
if not done and redis.pcall('GET', lock) == id then
  redis.call('SET', name, rank .. ' ' .. whole(now_ms() + tonumber(ms)) .. ' ' .. record, 'PX', ms)
  done = true
end
if not done then return {0, redis.call('GET', KEYS[6]) or '', redis.call('TYPE', lock).ok} end
remove(id, KEYS[5])
return {1}
