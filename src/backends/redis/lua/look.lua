-- Who holds the lock and who waits.  Writes nothing.
--   ARGV[4]  what stands before an id in the name of a waiter's record
-- Returns {type, ms left, mode or '', {holder...}, {waiter...}}
--   holder: {id, ms left, record or ''}      of another program: its value, field or member
--   waiter: {mode letter, ms waiting, record}
local most = 1000
local now = now_ms()
local kind = redis.call('TYPE', lock).ok
local left = redis.call('PTTL', lock)
local held = ''
local holders, waiters = {}, {}

if kind == 'string' then
  local record = redis.pcall('GET', owner)
  if type(record) ~= 'string' then record = '' end
  holders[1] = {redis.call('GETRANGE', lock, 0, 511), left, record}
elseif kind == 'zset' then
  held = held_mode() or ''
  local members = redis.call('ZRANGE', lock, 0, most - 1, 'WITHSCORES')
  for i = 1, #members, 2 do
    local rest = left
    local record = ''
    if held ~= '' then
      rest = members[i + 1] - now
      record = redis.call('HGET', owner, members[i]) or ''
    end
    if held == '' or rest > 0 then holders[#holders + 1] = {members[i], rest, record} end
  end
elseif kind == 'hash' then
  local field = redis.call('HSCAN', lock, 0, 'COUNT', 1)[2][1]
  holders[1] = {field or '', left, ''}
elseif kind ~= 'none' then
  holders[1] = {'', left, ''}
end

local line = redis.call('ZRANGE', queue, 0, most - 1, 'WITHSCORES')
for i = 1, #line, 2 do
  local waiter = string.sub(line[i], 3)
  local record = redis.call('GET', ARGV[4] .. waiter)
  local subscribed = redis.pcall('PUBSUB', 'NUMSUB', channels .. waiter)
  if record and (subscribed.err or subscribed[2] > 0) then
    waiters[#waiters + 1] = {letter(line[i]), math.max(now - math.floor(line[i + 1] / 1000), 0), record}
  end
end
return {kind, left, held, holders, waiters}
