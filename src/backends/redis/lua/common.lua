-- In front of every script but put.lua.  A waiter is one acquire() of one client, W.  What it asks is
-- numbered: round 1, 2, ...  A grant is named W:r, after the round that asked for it.  An offer is a
-- lock that is kept for a second for the waiter that is next: round 0, written as W alone.
--   KEYS[1] the lock     a STRING, the exclusive grant or offer; or a ZSET, waiter -> when its shared
--                        or slots grant or offer ends, in ms of this server's clock
--   KEYS[2] the counter  the last fencing token
--   KEYS[3] the record   a STRING, of the exclusive holder; or a HASH: W -> record; '~W' -> its round
--                        and, of slots, its number, '4' or '4:2'; '#2' -> W; '@mode' -> 's' or 'n3';
--                        '@again', see vote.lua.  It counts only if its id is what the lock has: else
--                        another program has acquired the lock
--   KEYS[4] the queue    a ZSET, mode letter and waiter ('x:0f3a...') -> when it came, in us
--   ARGV[1] W   ARGV[2] r   ARGV[3] mode: 'x' exclusive, 's' shared, 'n3' slots
--   ARGV[4] what stands before a waiter in the name of its channel   ARGV[5] in that of its record
local lock, counter, owner, queue = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local W, round, mode, channels, records = ARGV[1], tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV[5]

local kOffer = 1000       -- ms, for which an offer stands
local kVoid = 1200000     -- ms, for which a request may still arrive that its client has given up
local kWeek = 604800000   -- ms
local kLongest = 65535    -- a longer record is not ours, and would make a reply too long to be read

local time = redis.call('TIME')
local now_us = time[1] * 1000000 + time[2]
local now = math.floor(now_us / 1000)

local function whole(number) return string.format('%.0f', number) end
local function letter(text) return string.sub(text, 1, 1) end
local function is_text(found) return type(found) == 'string' end

local entry = letter(mode) .. ':' .. W

-- As pcall, of what other programs may have written at a name of ours.  A missing right is an error.
local function try(...)
  local got = redis.pcall(...)
  if type(got) ~= 'table' or not got.err or string.find(got.err, 'WRONGTYPE', 1, true) then return got end
  return redis.call(...)
end

-- ---------------------------------------------------------------------------------- who has the lock

-- Of a shared or slots holder: its round, and its number as text or nil.
local function round_of(holder)
  local text = redis.call('HGET', owner, '~' .. holder)
  local its_round, number = string.match(text or '', '^(%d+):?(%d*)$')
  return tonumber(its_round) or 0, number ~= '' and number or nil
end

local function forget_number(holder)
  local _, number = round_of(holder)
  if number and redis.call('HGET', owner, '#' .. number) == holder then
    redis.call('HDEL', owner, '#' .. number)
  end
end

-- Takes the lock from a shared or slots holder.
local function drop(holder)
  forget_number(holder)
  redis.call('ZREM', lock, holder)
  redis.call('HDEL', owner, holder, '~' .. holder)
end

-- The lock ends with the last of its shared or slots holders.  Another program may have put members
-- there that have no time.
local function end_with_last()
  local last = tonumber(redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')[2] or 0)
  if last > now and last < 1e13 then
    redis.call('PEXPIREAT', lock, whole(last))
    redis.call('PEXPIREAT', owner, whole(last))
  end
  local has_fields_of_none = 1 + redis.call('HEXISTS', owner, '@again')
  if redis.call('HLEN', owner) <= has_fields_of_none then redis.call('DEL', owner) end
end

-- The mode of the lock: 'x' for any STRING, 's' or 'n3' for holders of ours, 'other' for what another
-- program has put there, 'none'.  Holders whose time is over go.
local function held()
  local kind = redis.call('TYPE', lock).ok
  if kind == 'string' then return 'x' end
  if kind == 'none' then return kind end
  local its_mode = kind == 'zset' and redis.pcall('HGET', owner, '@mode')
  if not is_text(its_mode) then return 'other' end
  for _, holder in ipairs(redis.call('ZRANGEBYSCORE', lock, '-inf', whole(now))) do
    if redis.call('HEXISTS', owner, '~' .. holder) == 1 then drop(holder) end
  end
  if redis.call('EXISTS', lock) == 1 then return string.match(its_mode, '^n%d+$') or 's' end
  redis.call('DEL', owner)
  return 'none'
end

-- What stands at an exclusive lock, as far as it may be of ours.
local function string_id() return redis.call('GETRANGE', lock, 0, 99) end

-- The round at which W has the lock: 0 if it is offered to W, nil if another has it.
local function round_held(its_mode)
  if its_mode == 'x' then
    local holder, its_round = string.match(string_id(), '^(%x+):?(%d*)$')
    return holder == W and (tonumber(its_round) or 0) or nil
  end
  if its_mode == 'none' or its_mode == 'other' or not redis.call('ZSCORE', lock, W) then return nil end
  return (round_of(W))
end

-- The record at the lock whose id is `id`; '' if there is none: another program has acquired it.
local function record_of(its_mode, id)
  local record
  if its_mode == 'x' then
    record = redis.pcall('GETRANGE', owner, 0, kLongest)
  else
    record = redis.pcall('HGET', owner, string.match(id, '^%x*'))
  end
  local is_its = is_text(record) and #record <= kLongest and string.find(record, '"id":"' .. id .. '"', 1, true)
  return is_its and record or ''
end

-- Names a holder as its record does.
local function id_of(holder)
  local its_round = round_of(holder)
  return its_round == 0 and holder or holder .. ':' .. whole(its_round)
end

-- A reader of another program (Symfony) may have joined a shared lock of ours, and become a writer.
local function is_shared_with_others()
  if redis.call('ZSCORE', lock, '__write__') then return true end
  return redis.call('HEXISTS', owner, '~' .. redis.call('ZRANGE', lock, -1, -1)[1]) == 0
end

local function has_room(its_mode, wanted)
  if its_mode == 'none' then return true end
  if its_mode ~= wanted or wanted == 'x' or is_shared_with_others() then return false end
  return wanted == 's' or redis.call('ZCARD', lock) < tonumber(string.sub(wanted, 2))
end

-- Gives `holder` the lock, which has room for it or is its own.
local function put(holder, its_round, its_mode, ms, record, number)
  if its_mode == 'x' then
    redis.call('SET', lock, its_round == 0 and holder or holder .. ':' .. whole(its_round), 'PX', ms)
    redis.call('SET', owner, record, 'PX', ms)
    return
  end
  if redis.call('EXISTS', lock) == 0 then
    redis.call('DEL', owner)
  else
    forget_number(holder)
  end
  redis.call('ZADD', lock, whole(now + ms), holder)
  redis.call('HSET', owner, '@mode', its_mode, holder, record,
             '~' .. holder, whole(its_round) .. (number and ':' .. number or ''))
  if number then redis.call('HSET', owner, '#' .. number, holder) end
  end_with_last()
end

-- Takes the lock from `holder`, which has it.
local function take(its_mode, holder)
  if its_mode == 'x' then
    redis.call('DEL', lock, owner)
  else
    drop(holder)
    end_with_last()
  end
end

-- The numbers that others have: { [2] = true }, their largest; and that of W, if it has the lock.
-- `checked`: not those of holders that an operator has deleted by hand.
local function numbers(checked)
  local taken, most, ours = {}, 0, nil
  if redis.call('EXISTS', lock) == 0 then return taken, most, ours end  -- a record may be there all the same
  local cursor, found = '0', nil
  repeat
    cursor, found = unpack(redis.call('HSCAN', owner, cursor, 'MATCH', '#*', 'COUNT', 5000))
    for i = 1, #found, 2 do
      local number = tonumber(string.sub(found[i], 2))
      if number and found[i + 1] == W then
        ours = number
      elseif number and (not checked or redis.call('ZSCORE', lock, found[i + 1])) then
        taken[number] = true
        most = math.max(most, number)
      end
    end
  until cursor == '0'
  return taken, most, ours
end

-- '101': others have 1 and 3.
local function in_digits(taken, most)
  local out = {}
  for number = 1, most do out[number] = taken[number] and '1' or '0' end
  return table.concat(out)
end

-- A record says under which number of the client's list of servers it came.  That of W, if it is not
-- `node`: then the list names this server twice; or it names a replica, which writes nothing, and says so.
local function duplicate_of(its_mode, its_round, node)
  if node == '' or not its_round or its_round == 0 then return nil end
  local number = string.match(record_of(its_mode, W .. ':' .. whole(its_round)), '"node":(%d+)')
  if not number or number == node then return nil end
  redis.call('DEL', records)
  return number
end

-- ------------------------------------------------------------------------------------------ the queue

-- The first entry of the queue that is alive, and its record: a waiter keeps that from expiring.  The
-- dead before it go.  A queue that is none of ours is empty: that must not stop a release.
local function first()
  while true do
    local found = redis.pcall('ZRANGE', queue, 0, 0)[1]
    if not found then return nil end
    local record = redis.pcall('GET', records .. string.sub(found, 3))
    if is_text(record) then return found, record end
    redis.call('ZREM', queue, found)
  end
end

-- A waiter that no message reaches asks twice a second.
local function is_polling(record) return string.sub(record, -11) == ',"polls":1}' end

-- Whether a client listens.  Where we may not publish, or ask, it counts as alive.
local function tell(waiter, words)
  local heard = redis.pcall('PUBLISH', channels .. waiter, words)
  return type(heard) ~= 'number' or heard > 0
end
local function listens(waiter)
  local heard = redis.pcall('PUBSUB', 'NUMSUB', channels .. waiter)
  return heard.err ~= nil or heard[2] > 0
end

-- Tells the first of the queue that is alive.
local function tell_first(words)
  while true do
    local found, record = first()
    if not found or is_polling(record) or tell(string.sub(found, 3), words) then return end
    redis.call('ZREM', queue, found)
  end
end

-- The first of the queue sleeps until the lock ends: that is sooner now.
local function tell_end(before)
  local left = redis.call('PTTL', lock)
  if left >= 0 and (before < 0 or left < before) then tell_first('look ' .. whole(left + 2)) end
end

local function mode_of(found, record)
  if letter(found) ~= 'n' then return letter(found) end
  return 'n' .. (string.match(record, '"slots":(%d+)') or '1')
end

-- Offers the lock to those that are first, as long as it has room for them.  `me`: an entry that asks
-- for it now; returns whether it is its turn.  A waiter that was offered the lock is out of the queue,
-- so one that does not come costs the others a second, once; the next asks when that is over.  One that
-- does not listen was killed.
local function offer(me)
  local kMost = 32
  local offers = 0
  while offers < kMost do
    local found, record = first()
    -- Again: the last place may have been offered just now.
    if not found then return me ~= nil and has_room(held(), mode) end
    local its_mode, waiter = mode_of(found, record), string.sub(found, 3)
    local is_free = has_room(held(), its_mode)
    if is_free and found == me then return true end
    if not is_free and (is_polling(record) or listens(waiter)) then return false end
    redis.call('ZREM', queue, found)
    if is_free and (is_polling(record) or tell(waiter, 'go')) then
      put(waiter, 0, its_mode, kOffer, record)
      tell_first('look ' .. kOffer)
      if its_mode == 'x' then return false end
      offers = offers + 1
    end
  end
  return false
end

-- ----------------------------------------------------------------------------------------- the tokens

-- A token is at least the time in ms, so tokens grow even if the counter is lost.  The counter may be
-- forgotten once the clock has passed it; it stays for a week more.  The number at the counter may be
-- of somebody else, and too large for an expiry.
local function keep_counter(token)
  redis.pcall('PEXPIRE', counter, whole(math.max(token - now, 0) + kWeek))
end

-- 0 for what is no token: Lua counts to kLastToken.
local kLastToken = 9007199254740991
local function count()
  local found = tonumber(redis.pcall('GET', counter) or 0) or 0
  return found <= kLastToken and found or 0
end

-- In the record of a grant: the server, one of several, has no counter but by this one.  The lock is new,
-- or the server has lost its data.
local kFirst = ',"first":true'
local function is_first(its_mode, ours)
  return count() == 0 or ours and string.find(record_of(its_mode, W .. ':' .. whole(ours)), kFirst, 1, true)
end

local function set_counter(token)
  redis.call('SET', counter, whole(token))
  keep_counter(token)
end
