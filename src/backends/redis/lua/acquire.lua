-- Takes the lock if it is free and it is our turn; else says what is in the way.
--   KEYS[5]  our record as a waiter
--   KEYS[6]  there if this id was given up: see release.lua
--   ARGV[5]  ttl, ms       ARGV[6] record, a JSON object
--   ARGV[7]  'once' takes what is free; 'wait' not before those that came earlier; 'go' has been
--            called; 'late' has seen that the first in the queue was called and did not come
--   ARGV[8]  '1': join the queue if it is not ours now
--   ARGV[9]  when we came, us; '' the first time
--   ARGV[10] '' where this is the only server; else its number in the client's list: then the token
--            is agreed on with the others and written by fence.lua.  The record ends with a hash
--            of that list, and the number
--   ARGV[11] '1': of slots, give us the lowest number that is free here
-- Returns {1, fence, slot}              granted; fence 0: the counter is not one; slot: our number, or ''
--         {1, count, ms, slot, taken}   granted by one of several servers: its counter, its time; and the
--                                       numbers that others have here: '101' are 1 and 3
--         {0, 'held', ms, came, place, id, list}  refused: look again in ms (-1: it never ends), our
--                                       place in the queue (-1: not in it), who has it all ('':
--                                       unknown), and by which list of servers
--         {0, 'turn', ms, came, place, '', ''}  free, but somebody else was called and has until then
--         {0, 'mode', mode}             held in a mode that cannot be mixed with ours
--         {0, 'twin', number}           ours already, under another number: it is listed twice
local ttl, record, turn, join, came = ARGV[5], ARGV[6], ARGV[7], ARGV[8], ARGV[9]
local entry = letter(mode) .. ':' .. id
local node, wants_number = ARGV[10], ARGV[11] == '1'

local function append(name, value)
  record = string.sub(record, 1, -2) .. ',"' .. name .. '":' .. value .. '}'
end

-- Whoever was called and did not come: it must not hold up each hand-over.  It may have come and gone,
-- and then we are the first ourselves, or another stands there that was never called: who is out of
-- the queue without a call would sleep.  If it is alive, it comes and joins again.
local function pass_over_first()
  local first = redis.call('ZRANGE', queue, 0, 0)[1]
  if not first or first == entry or letter(first) ~= letter(mode) then return end
  redis.call('ZREM', queue, first)
  tell(first, 'go')
end

local function granted(number, taken)
  local fence
  if number and node == '' then append('slot', number) end
  if node == '' then
    fence = redis.pcall('INCR', counter)
    fence = type(fence) == 'number' and fence or 0
    if fence > 0 then
      local now = now_ms()
      if fence < now then
        fence = now
        redis.call('SET', counter, whole(now), 'PX', kWeek)
      else
        keep_counter(fence, now)  -- not set: it may be more than Lua can count to
      end
      append('fence', whole(fence))
    end
  else
    fence = redis.pcall('GET', counter)
    fence = type(fence) == 'string' and tonumber(fence) or 0
  end
  if mode == 'x' then
    redis.call('SET', owner, record, 'PX', ttl)
  else
    redis.call('HSET', owner, '@mode', mode, id, record)
    if node ~= '' and fence == 0 then redis.call('HSET', owner, '@again', '') end  -- see again.lua
    if number then redis.call('HSET', owner, '#' .. number, id) end
    redis.call('PEXPIRE', owner, redis.call('PTTL', lock))
    redis.call('DEL', KEYS[5])
  end
  if turn == 'late' then pass_over_first() end
  if came ~= '' then redis.call('ZREM', queue, entry) end
  if node == '' then return {1, whole(fence), number or ''} end
  return {1, whole(fence), whole(now_ms()), number or '', taken or ''}
end

-- By which the holder has got it; not of an attempt without a token.
local function list_of_holder()
  if node == '' or mode ~= 'x' then return '' end
  return string.match(end_of_record(), '"servers":"(%x+)","node":%d+,"fence":%d+}$') or ''
end

local function refused(why, ms, holder)
  if came == '' then
    local time = redis.call('TIME')
    came = time[1] .. string.format('%06d', time[2])
  end
  local place = -1
  if join == '1' then
    redis.call('ZADD', queue, 'NX', came, entry)
    redis.call('PEXPIRE', queue, 86400000)
    redis.call('SET', KEYS[5], record, 'PX', 20000)
    place = redis.call('ZRANK', queue, entry)
  end
  return {0, why, ms, came, place, holder or '', why == 'held' and list_of_holder() or ''}
end

-- The first in the queue that is alive, without calling it.
local function first_alive()
  while true do
    local first = redis.call('ZRANGE', queue, 0, 0)[1]
    if not first or first == entry or is_alive(first) then return first end
    redis.call('ZREM', queue, first)
  end
end

local function take_exclusive()
  local ours = turn ~= 'wait'
  if not ours then
    local first = redis.call('ZRANGE', queue, 0, 0)[1]
    ours = not first or first == entry
  end
  if ours and redis.call('SET', lock, id, 'NX', 'PX', ttl) then return granted() end
  local kind = redis.call('TYPE', lock).ok
  if kind == 'zset' then
    local held = held_mode()
    if held then
      purge(now_ms())
      kind = redis.call('TYPE', lock).ok
      if kind == 'zset' and letter(held) == 'n' then return {0, 'mode', held} end
    end
  end
  if kind == 'none' then
    if not ours then
      local called = call_next()
      if called and called ~= entry then return refused('turn', 500) end
    end
    redis.call('SET', lock, id, 'PX', ttl)
    return granted()
  end
  if kind == 'string' and redis.call('GET', lock) == id then  -- granted before, the answer got lost
    local twin = twin_of(node)
    if twin then return {0, 'twin', twin} end
    redis.call('PEXPIRE', lock, ttl)
    return granted()
  end
  local holder = kind == 'string' and redis.call('GETRANGE', lock, 0, 511)
  return refused('held', redis.call('PTTL', lock), holder)
end

-- To compare with those on other servers.
local function holders(slots)
  if slots > 32 then return '' end
  local members = redis.call('ZRANGE', lock, 0, slots)
  table.sort(members)
  return table.concat(members)
end

-- The number that we have here, or the lowest that is free; and which others have.  Only for living
-- members: call purge() before.  What is left of an earlier grant of ours would be alive again with
-- us: it goes.  Costs as much as there are members, not numbers.
local function numbers_of(slots, was_member)
  local is_member, has, taken, most = {}, {}, {}, 0
  for _, member in ipairs(redis.call('ZRANGE', lock, 0, -1)) do is_member[member] = true end
  local cursor, found, ours = '0', nil, nil
  repeat
    cursor, found = unpack(redis.call('HSCAN', owner, cursor, 'MATCH', '#*', 'COUNT', 5000))
    for i = 1, #found, 2 do
      local number, holder = tonumber(string.sub(found[i], 2)), found[i + 1]
      if holder == id then
        if was_member then ours = number else redis.call('HDEL', owner, found[i]) end
      elseif is_member[holder] then
        has[number] = true
        most = math.max(most, number)
      end
    end
  until cursor == '0'
  for number = 1, most do taken[number] = has[number] and '1' or '0' end
  local free = 1
  while has[free] do free = free + 1 end
  return ours or (free <= slots and free or nil), table.concat(taken)
end

local function take_part()
  local now = now_ms()
  local slots = tonumber(string.sub(mode, 2)) or math.huge
  local kind = redis.call('TYPE', lock).ok
  local held = kind == 'zset' and held_mode()
  local was_member = false
  if held then
    purge(now)
    kind = redis.call('TYPE', lock).ok
  end
  if kind ~= 'none' then
    if not held then
      if letter(mode) == 'n' and redis.call('TYPE', owner).ok == 'string' then
        return {0, 'mode', 'x'}
      end
      return refused('held', redis.call('PTTL', lock))
    end
    was_member = redis.call('ZSCORE', lock, id)
    if was_member then  -- granted before, the answer got lost
      local twin = twin_of(node)
      if twin then return {0, 'twin', twin} end
      redis.call('ZREM', lock, id)
      turn = 'go'
    elseif held ~= mode then
      if letter(mode) == 'n' or letter(held) == 'n' then return {0, 'mode', held} end
    end
    if redis.call('ZCARD', lock) >= slots then
      local soonest = redis.call('ZRANGE', lock, 0, 0, 'WITHSCORES')
      return refused('held', math.max(soonest[2] - now, 1), holders(slots))
    end
  end
  -- Who asks once takes what is free, but no reader slips in before a writer that waits.
  if turn == 'wait' or (turn == 'once' and kind ~= 'none') then
    local first = first_alive()
    if first and first ~= entry then
      if kind ~= 'none' and letter(first) ~= letter(mode) then  -- a writer waits for the readers
        return refused('held', redis.call('PTTL', lock))
      end
      local called = call_next()
      if called and called ~= entry then return refused('turn', 500) end
    end
  end
  -- Who passes over one that was called does not pass over the others.
  if turn == 'late' and kind ~= 'none' and others_ahead() then
    return refused('held', redis.call('PTTL', lock))
  end
  -- What is left of a lock that was deleted.
  if kind == 'none' and redis.call('EXISTS', owner) == 1 then redis.call('DEL', owner) end
  local number, taken
  if letter(mode) == 'n' then
    number, taken = numbers_of(slots, was_member)
    if not number then  -- some members have two
      return refused('held', redis.call('PTTL', lock))
    end
  end
  redis.call('ZADD', lock, whole(now + ttl), id)
  if redis.call('PTTL', lock) < tonumber(ttl) then redis.call('PEXPIRE', lock, ttl) end
  local answer = granted(wants_number and number, taken)
  local first = redis.call('ZRANGE', queue, 0, 0)[1]  -- it may be able to share
  if first and letter(first) == letter(mode) and redis.call('ZCARD', lock) < slots then
    call_next()
  end
  return answer
end

-- A request that comes late: nobody waits for what it would get.
if redis.call('EXISTS', KEYS[6]) == 1 then return {0, 'held', -1, '', -1, '', ''} end
if mode == 'x' then return take_exclusive() end
return take_part()
