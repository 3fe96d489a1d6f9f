-- Leases the window of snowflake ids that starts first.
--   KEYS[1]  the workers   a ZSET, worker number -> when its last window ends, in ms since the epoch of the ids
--   ARGV[1]  length, ms    ARGV[2] the epoch of the ids, ms since 1970   ARGV[3] how much later than now it may start
--   ARGV[4]  how many worker numbers there are        ARGV[5] the last ms that has ids
-- Returns {worker, start, now}  all in ms; start is by the epoch of the ids, now since 1970
-- Nothing is leased if start is too late: the caller finds that out by the same rule.
local workers = KEYS[1]
local length, epoch, ahead = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

-- A worker number that was never used comes first.
local count = redis.call('ZCARD', workers)
local worker, last = tostring(count), 0
if count >= tonumber(ARGV[4]) or redis.call('ZSCORE', workers, worker) then
  local first = redis.call('ZRANGE', workers, 0, 0, 'WITHSCORES')
  worker, last = first[1], tonumber(first[2])
end
local start = math.max(last, now - epoch)
if start - (now - epoch) <= ahead and start + length <= tonumber(ARGV[5]) then
  redis.call('ZADD', workers, string.format('%.0f', start + length), worker)
end
return {worker, string.format('%.0f', start), string.format('%.0f', now)}
