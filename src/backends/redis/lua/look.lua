-- Who holds the lock and who waits.  Writes nothing.
--   ARGV[5]  '1': of those that wait only their number, also of the dead
-- Returns {type, ms left, mode, {holder...}, {waiter...}}, or with a number in place of the waiters
--   mode:   of shared or slots holders of ours; of a hash, what Redisson has under "mode"; or ''
--   holder: {id, ms left, record or ''}       of a hash {field, ms left, what is under it}
--           Of another program the id is its value (as much of it as break.lua compares), field or
--           member; '' if that is too long, or where there is none.
--   waiter: {mode letter, ms waiting, record}
local most = 1000
local longest = 512
local now = now_ms()
local kind = redis.call('TYPE', lock).ok
local left = redis.call('PTTL', lock)
local held = ''
local holders, waiters = {}, {}

local function short(text) return #text <= longest and text or '' end
-- One that is longer is not of ours, and must not make the reply too long to be read.
local function record_in(found)
  return type(found) == 'string' and #found <= 65536 and found or ''
end

if kind == 'string' then
  local record = record_in(redis.pcall('GET', owner))
  holders[1] = {redis.call('GETRANGE', lock, 0, longest - 1), left, record}
elseif kind == 'zset' then
  held = held_mode() or ''
  local ahead = {'(' .. whole(now), '+inf', 'WITHSCORES', 'LIMIT', 0, most}
  local members = redis.call('ZRANGEBYSCORE', lock, unpack(ahead))
  -- None is ahead: its scores are no times.  It stands in the way all the same.
  if held == '' and not members[1] then
    members = redis.call('ZRANGE', lock, 0, most - 1, 'WITHSCORES')
  end
  for i = 1, #members, 2 do
    local rest = left
    local score = tonumber(members[i + 1])
    if (held ~= '' or left >= 0) and score > now and score < 1e13 then rest = score - now end
    local record = record_in(held ~= '' and redis.call('HGET', owner, members[i]))
    holders[#holders + 1] = {short(members[i]), rest, record}
  end
elseif kind == 'hash' then
  held = string.sub(redis.call('HGET', lock, 'mode') or '', 1, 32)
  local cursor, seen = '0', {mode = true}
  repeat
    local fields
    cursor, fields = unpack(redis.call('HSCAN', lock, cursor, 'COUNT', most))
    for i = 1, #fields, 2 do
      if not seen[fields[i]] and #holders < most then
        seen[fields[i]] = true
        holders[#holders + 1] = {short(fields[i]), left, string.sub(fields[i + 1], 1, 32)}
      end
    end
  until cursor == '0' or #holders == most
end
-- What is there is held, but for a lock of ours whose holders' time is over.
local ours = kind == 'zset' and held ~= ''
if kind ~= 'none' and not ours and not holders[1] then holders[1] = {'', left, ''} end

if ARGV[5] == '1' then
  local number = redis.pcall('ZCARD', queue)
  return {kind, left, held, holders, type(number) == 'number' and number or 0}
end
local line = redis.pcall('ZRANGE', queue, 0, most - 1, 'WITHSCORES')
for i = 1, #line, 2 do
  local record = redis.pcall('GET', records .. string.sub(line[i], 3))
  if type(record) == 'string' and is_alive(line[i]) then
    local waiting = math.max(now - math.floor(line[i + 1] / 1000), 0)
    waiters[#waiters + 1] = {letter(line[i]), waiting, record_in(record)}
  end
end
return {kind, left, held, holders, waiters}
