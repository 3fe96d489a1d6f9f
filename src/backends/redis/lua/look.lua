-- Who holds the lock and who waits.  Writes nothing.
-- Returns {type, ms left, mode, {holder...}, {waiter...}}
--   mode:   of shared or slots holders of ours; of a hash, what Redisson has under "mode"; or ''
--   holder: {id, ms left, record or ''}       of a hash {field, ms left, what is under it}
--           Without a round the lock is offered to this waiter.
--           Of another program the id is its value (as much of it as break.lua compares), field or
--           member; '' if that is too long, or where there is none.
--   waiter: {mode letter, ms waiting, record}
local most = 1000
local longest = 512
local kind = redis.call('TYPE', lock).ok
local left = redis.call('PTTL', lock)
local its_mode = ''
local holders, waiters = {}, {}

local function short(text) return #text <= longest and text or '' end
-- One that is longer is not of ours, and must not make the reply too long to be read.
local function record_in(found)
  return is_text(found) and #found <= kLongest and found or ''
end

if kind == 'string' then
  local record = record_in(redis.pcall('GET', owner))
  holders[1] = {redis.call('GETRANGE', lock, 0, longest - 1), left, record}
elseif kind == 'zset' then
  its_mode = redis.pcall('HGET', owner, '@mode')
  if not is_text(its_mode) then its_mode = '' end
  local members = redis.call('ZRANGEBYSCORE', lock, '(' .. whole(now), '+inf', 'WITHSCORES', 'LIMIT', 0, most)
  -- No score is a time to come, so none of them may be a time.  The lock is held all the same.
  if its_mode == '' and not members[1] then
    members = redis.call('ZRANGE', lock, 0, most - 1, 'WITHSCORES')
  end
  for i = 1, #members, 2 do
    local rest = left
    local score = tonumber(members[i + 1])
    if (its_mode ~= '' or left >= 0) and score > now and score < 1e13 then rest = score - now end
    local record = record_in(its_mode ~= '' and redis.call('HGET', owner, members[i]))
    holders[#holders + 1] = {short(its_mode ~= '' and id_of(members[i]) or members[i]), rest, record}
  end
elseif kind == 'hash' then
  its_mode = string.sub(redis.call('HGET', lock, 'mode') or '', 1, 32)
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
local ours = kind == 'zset' and its_mode ~= ''
if kind ~= 'none' and not ours and not holders[1] then holders[1] = {'', left, ''} end

local line = redis.pcall('ZRANGE', queue, 0, most - 1, 'WITHSCORES')
for i = 1, #line, 2 do
  local waiter = string.sub(line[i], 3)
  local record = redis.pcall('GET', records .. waiter)
  if is_text(record) and (is_polling(record) or listens(waiter)) then
    local waiting = math.max(now - math.floor(line[i + 1] / 1000), 0)
    waiters[#waiters + 1] = {letter(line[i]), waiting, record_in(record)}
  end
end
return {kind, left, its_mode, holders, waiters}
