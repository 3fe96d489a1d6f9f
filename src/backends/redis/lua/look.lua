-- Who holds the lock and who waits.  Writes nothing.
--   ARGV[5]  '1': one holder, ARGV[6] if that is one, and the numbers of those that wait and hold, also of
--            the dead; of another program's as many holders as tell which program it is, and no number
-- Returns {type, ms left, mode, {holder...}, {waiter...}}, or with two numbers in place of the waiters
--   mode:   of shared or slots holders of ours; of a hash, what Redisson has under "mode"; or ''
--   holder: {id, ms left, record or ''}       of a hash {field, ms left, what is under it}
--           Of another program the id is its value (as much of it as break.lua compares), field or
--           member; '' if that is too long, or where there is none.
--   waiter: {mode letter, ms waiting, record}
local brief = ARGV[5] == '1'
local most = brief and 16 or 1000
local longest = 512
local now = now_ms()
local kind = redis.call('TYPE', lock).ok
local left = redis.call('PTTL', lock)
local held = ''
local holders, waiters, number = {}, {}, nil

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
  local ahead = {'(' .. whole(now), '+inf', 'WITHSCORES', 'LIMIT', 0, (brief and held ~= '') and 1 or most}
  local members = redis.call('ZRANGEBYSCORE', lock, unpack(ahead))
  if brief and held ~= '' then
    number = redis.call('ZCARD', lock)
    local score = redis.call('ZSCORE', lock, ARGV[6])
    if score and tonumber(score) > now then members = {ARGV[6], score} end
  end
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

if brief then
  local waiting = redis.pcall('ZCARD', queue)
  return {kind, left, held, holders, type(waiting) == 'number' and waiting or 0, number or 0}
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
