-- Writes an entry that another server has, or a reset, unless a higher one is there.
--   KEYS[5]  the entry
--   ARGV[5]  its rank     ARGV[6]  for how long it is to be kept, ms     ARGV[7]  its record
-- Returns 1: this one is there, or a higher one; 0: what is there was not written by dlock
local there = entry_there()
if not there then return 0 end
if rank_of(there) < ARGV[5] then put(ARGV[5], ARGV[6], ARGV[7]) end
return 1
