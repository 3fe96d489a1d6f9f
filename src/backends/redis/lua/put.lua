-- Writes a record, or deletes it, if it is what was seen.
--   KEYS[1]  a STRING, when it was written, in ms of this server's clock, and its text (redis_records.hpp)
--   ARGV[1]  all of what was seen, '' if there was none    ARGV[2]  the new text; '' deletes
-- Returns 1: done; 0: it is something else now
local name, seen, text = KEYS[1], ARGV[1], ARGV[2]
if redis.call('GETRANGE', name, 0, string.len(seen)) ~= seen then return 0 end
if text == '' then
  redis.call('DEL', name)
else
  local time = redis.call('TIME')
  redis.call('SET', name, string.format('%.0f ', time[1] * 1000 + math.floor(time[2] / 1000)) .. text)
end
return 1
