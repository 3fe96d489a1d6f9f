-- All that a waiter asks of the only server, or of the server in whose queue it waits.  Asking again
-- is always right: a grant or an offer to W counts as granted now.
--   KEYS[5]  our record as a waiter     KEYS[6]  there if W has been given up
--   ARGV[6]  ttl, ms       ARGV[7] record of the grant, a JSON object without token and number
--   ARGV[8]  '1': join the queue, or stay in it       ARGV[9] how long we have waited, us
--   ARGV[10] '' where this is the only server; else its number in the client's list
--   ARGV[11] the holder that we have seen last, or ''      ARGV[12] '1': no message reaches us
-- Returns {1, token, number, taken}   granted: our number, of slots, or ''; '101': others have 1 and 3
--         {0, 'held', ms, place, waiting, count, token, id, left, record}
--                                     refused: ask again in ms; our place in the queue, or -1; how many
--                                     wait, and hold it; no token up to this one is new; one holder: its id
--                                     without a round if the lock is offered to it; '' without a record:
--                                     another program
--         {0, 'mode', mode, token}    held in a mode that cannot be mixed with ours
--         {0, 'duplicate', number}    ours already, under another number: it is listed twice
--         {0, 'void'}  W has been given up     {0, 'late'}  W has asked again since
local ttl, record, join, waited = ARGV[6], ARGV[7], ARGV[8] == '1', tonumber(ARGV[9])
local node, seen, polls = ARGV[10], ARGV[11], ARGV[12] == '1'
local kAlive, kLongestSleep, kForeign, kFront, kStagger, kDay = 5000, 3000, 500, 4, 200, 86400000

if redis.call('EXISTS', KEYS[6]) == 1 then return {0, 'void'} end
local its_mode = held()
local ours = round_held(its_mode)
if ours and ours > round then return {0, 'late'} end

local function excludes()
  if ours or its_mode == mode or its_mode == 'none' or its_mode == 'other' then return false end
  if letter(its_mode) == 'n' then return true end
  return letter(mode) == 'n' and (its_mode == 's' or record_of('x', string_id()) ~= '')
end
if excludes() then return {0, 'mode', its_mode, whole(math.max(count(), now))} end
local duplicate = duplicate_of(its_mode, ours, node)
if duplicate then return {0, 'duplicate', duplicate} end

-- Before the decision: a waiter that comes back to its old place must not give the lock to the one
-- behind it.  A place in the future was given before the clock was set back.
if join and not ours then
  local came = redis.call('ZSCORE', queue, entry)
  if not came or tonumber(came) > now_us then redis.call('ZADD', queue, whole(now_us - waited), entry) end
  if not came then redis.call('PEXPIRE', queue, kDay) end
  if redis.call('PEXPIRE', KEYS[5], kAlive) == 0 or polls then
    local of_waiter = string.gsub(record, '"id":"' .. W .. ':%d+"', '"id":"' .. W .. '"', 1)
    if polls then of_waiter = string.sub(of_waiter, 1, -2) .. ',"polls":1}' end
    redis.call('SET', KEYS[5], of_waiter, 'PX', kAlive)
  end
end

-- 0 where there is one server, and what stands at the counter is no number, or the last one.
local function next_token()
  local token = redis.pcall('INCR', counter)
  if type(token) ~= 'number' then
    local is_none = string.find(token.err, 'WRONGTYPE', 1, true) or string.find(token.err, 'integer', 1, true) or
                    string.find(token.err, 'overflow', 1, true)
    token = is_none and 0 or redis.call('INCR', counter)
  end
  if token <= 0 or token > kLastToken then
    if node == '' then return 0 end
    token = 0
  end
  if token < now then
    token = now
    redis.call('SET', counter, whole(now))
  end
  keep_counter(token)
  return token
end

local function grant()
  local number, taken
  if letter(mode) == 'n' then
    local function lowest(others, its)
      local free = ours and its or 1
      while others[free] do free = free + 1 end
      return free
    end
    local others, most, its = numbers()
    number = lowest(others, its)
    if number > tonumber(string.sub(mode, 2)) then
      others, most, its = numbers(true)
      number = lowest(others, its)
    end
    taken = in_digits(others, most)
  end
  local starts = node ~= '' and is_first(its_mode, ours)
  local token = next_token()
  local more = (number and ',"slot":' .. number or '') .. (starts and kFirst or '') ..
               (token > 0 and ',"fence":' .. whole(token) or '')
  put(W, round, mode, ttl, string.sub(record, 1, -2) .. more .. '}', number)
  if starts and mode ~= 'x' then redis.call('HSET', owner, '@again', '') end  -- as in vote.lua
  try('ZREM', queue, entry)  -- also if this is a late request, from before we joined
  if mode ~= 'x' then offer() end
  return {1, whole(token), number or '', taken or ''}
end
if ours or has_room(its_mode, mode) and offer(entry) then return grant() end

its_mode = held()
local front = first()  -- also forgets the dead, so that our place counts the living
local place = join and redis.call('ZRANK', queue, entry) or -1
local waiting = front and redis.call('ZCARD', queue) or 0
if place == 0 then redis.call('PEXPIRE', queue, kDay) end
local left, count_of_holders, id, its_record = redis.call('PTTL', lock), 1, '', ''
local ends = left
if its_mode == 'x' then
  id = string_id()
  its_record = record_of(its_mode, id)
elseif its_mode == 's' or letter(its_mode) == 'n' then
  count_of_holders = redis.call('ZCARD', lock)
  local ends_at = seen ~= '' and redis.call('ZSCORE', lock, seen)
  local holder = seen
  if not ends_at then holder, ends_at = unpack(redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')) end
  ends = ends_at - now
  if letter(its_mode) == 'n' then left = redis.call('ZRANGE', lock, 0, 0, 'WITHSCORES')[2] - now end
  id = id_of(holder)
  its_record = record_of(its_mode, id)
end
-- The first few ask when the lock ends, one after the other: some of them may have been killed.
local ms = kLongestSleep
if place < kFront and left >= 0 then ms = math.min(ms, left + 2 + math.max(place, 0) * kStagger) end
if place <= 0 and its_record == '' then ms = math.min(ms, kForeign) end
return {0, 'held', whole(ms), place, waiting, count_of_holders, whole(math.max(count(), now)), id, whole(ends),
        its_record}
