-- Forgets a mark of `dlock once`.  The entry that says so stays for as long as a lease may last: there a
-- holder that has completed, and did not hear of it, finds that it did.
--   KEYS[5]  the entry
-- Returns 1: it is forgotten; 0: there was none; -1: what is there was not written by dlock
local there = entry_there()
if not there then return -1 end
if string.sub(there, 21, 21) ~= 'd' or tonumber(string.match(there, ' (%d+) ')) <= now_ms() then return 0 end
redis.call('SET', name, string.sub(there, 1, 20) .. 'r' .. string.sub(there, 22), 'PX', 86400000)
return 1
