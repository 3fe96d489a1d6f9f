-- In front of every script.
--   KEYS[1] the lock     a STRING, the id of an exclusive holder; or a ZSET, id of a shared or slots
--                        holder -> when it expires, in ms of this server's clock
--   KEYS[2] the counter of grants: the last fencing token
--   KEYS[3] who holds    a STRING, the record of the exclusive holder; or a HASH, id -> record, and
--                        '@mode' -> 's' or 'n3'.  A lock without it was taken by another program.
--                        '@again': this server had no counter, or a smaller one, see again.lua.
--                        Of slots also number -> id: '#2' -> '0f3a...'.  The number is taken only as
--                        long as the lock has that id: a number of a holder that has gone is free.
--   KEYS[4] the queue    a ZSET, mode letter and id of a waiter ('x:0f3a...') -> when it came, in us
--   ARGV[1] own id   ARGV[2] mode: 'x' exclusive, 's' shared, 'n3' slots
--   ARGV[3] what stands before an id in the name of its channel   ARGV[4] in that of a waiter's record
local lock, counter, owner, queue = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local id, mode, channels, records = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

local function whole(number) return string.format('%.0f', number) end

-- A token is at least the time in ms, so that it also grows if the counter is lost.  So the counter
-- may be forgotten once this server's clock has passed it; it stays for a week more.  A number that
-- somebody else has put there may be too large for an expiry.
local kWeek = 604800000
local function keep_counter(token, now)
  redis.pcall('PEXPIRE', counter, whole(math.max(token - now, 0) + kWeek))
end
local function set_counter(token)
  redis.call('SET', counter, token)
  keep_counter(tonumber(token), now_ms())
end

local function letter(text) return string.sub(text, 1, 1) end

-- The mode of shared or slots holders; nil where another program put what stands at the lock.
local function held_mode()
  local held = redis.pcall('HGET', owner, '@mode')
  return type(held) == 'string' and held or nil
end

-- A waiter is alive that keeps its record from running out and listens.  Either says little alone: the
-- sockets of a process that is stopped, or of a machine that has vanished, look open for long, and a
-- record outlives who is killed.  Where we may not speak to it, it must help itself.
local function is_alive(entry, what)
  local its_id = string.sub(entry, 3)
  if redis.call('EXISTS', records .. its_id) == 0 then return false end
  if what then
    local heard = redis.pcall('PUBLISH', channels .. its_id, what)
    return type(heard) ~= 'number' or heard > 0
  end
  local listen = redis.pcall('PUBSUB', 'NUMSUB', channels .. its_id)
  return listen.err ~= nil or listen[2] > 0
end

-- False: it is dead, and out of the queue.
local function tell(entry, what)
  if is_alive(entry, what) then return true end
  redis.call('ZREM', queue, entry)
  return false
end

-- Whether somebody lives in front of us who wants the lock in another mode.
local function others_ahead()
  local ours = letter(mode) .. ':' .. id
  local portion = 16
  for from = 0, math.huge, portion do
    local line = redis.pcall('ZRANGE', queue, from, from + portion - 1)
    for _, entry in ipairs(line) do
      if entry == ours then return false end
      if letter(entry) ~= letter(mode) and is_alive(entry) then return true end
    end
    if #line < portion then return false end
  end
end

-- As pcall, of what others may have written at a name of ours; but a right that is missing is an error.
local function try(...)
  local got = redis.pcall(...)
  if type(got) ~= 'table' or not got.err or string.find(got.err, 'WRONGTYPE', 1, true) then return got end
  return redis.call(...)
end

-- The end of the record of the exclusive holder, or of ours as one of several: whoever wrote there,
-- it may be huge.
local function end_of_record()
  local record
  if mode == 'x' then
    record = try('GETRANGE', owner, -200, -1)
  else
    record = try('HGET', owner, id)
  end
  return type(record) == 'string' and record or ''
end

-- A record says under which number of the client's list it came, where that has several.  That of
-- ours, if it is not `node`: then this server stands in the list twice.
local function twin_of(node)
  if node == '' then return nil end
  local record = end_of_record()
  local number = string.match(record, '"node":(%d+)}$') or
                 string.match(record, '"node":(%d+),"fence":%d+}$')
  return number ~= node and number or nil
end

-- Takes the numbers from slots holder `id` that it has here.
local function drop_numbers()
  local cursor, found = '0', nil
  repeat
    cursor, found = unpack(redis.call('HSCAN', owner, cursor, 'MATCH', '#*', 'COUNT', 5000))
    for i = 1, #found, 2 do
      if found[i + 1] == id then redis.call('HDEL', owner, found[i]) end
    end
  until cursor == '0'
end

-- Gives slots holder `id` the number in place of any other; false: another holder has it here, and
-- `id` has none then, so that it blocks none that it does not use.  '': of no slots, or of a client
-- that knows no number.
local function take_number(number, now)
  if number == '' then return true end
  local field = '#' .. number
  local holder = redis.call('HGET', owner, field)
  if holder == id then return true end
  drop_numbers()
  local expires = holder and redis.call('ZSCORE', lock, holder)
  if expires and tonumber(expires) > now then return false end
  redis.call('HSET', owner, field, id)
  return true
end

-- Calls the waiter that is next, and has the one behind it look whether it came: it may be killed
-- with the call in its hands.  Returns whom it called, and forgets the dead.  What is no queue of
-- ours is nobody's: that must not stop who has freed the lock already.
local function call_next()
  while true do
    local line = redis.pcall('ZRANGE', queue, 0, 1)
    if not line[1] then return nil end
    if tell(line[1], 'go') then
      local deputy = line[2]
      while deputy and not tell(deputy, 'look 500') do
        deputy = redis.call('ZRANGE', queue, 1, 1)[1]
      end
      return line[1]
    end
  end
end

-- The lock ends in `ms`, which may be sooner than its waiters think.  The first four hear of that:
-- those that look for themselves when it ends, so that one of them may leave or die (acquire_wait.cpp).
local function ends_in(ms)
  local all_alive
  repeat
    all_alive = true
    for _, entry in ipairs(redis.pcall('ZRANGE', queue, 0, 3)) do
      all_alive = tell(entry, 'ends ' .. whole(ms)) and all_alive
    end
  until all_alive
end

-- Forgets the shared or slots holders whose time is over; the last one takes the lock with it.
local function purge(now)
  local over = redis.call('ZRANGEBYSCORE', lock, '-inf', whole(now))
  if #over == 0 then return end
  redis.call('ZREMRANGEBYSCORE', lock, '-inf', whole(now))
  for _, member in ipairs(over) do redis.call('HDEL', owner, member) end
  if redis.call('EXISTS', lock) == 0 then redis.call('DEL', owner) end
end

-- After a shared or slots holder has gone: calls whoever can have the lock now.
local function settle(now)
  purge(now)
  local last = redis.call('ZRANGE', lock, -1, -1, 'WITHSCORES')
  if not last[1] then
    redis.call('DEL', owner)
    call_next()
    return
  end
  redis.call('PEXPIREAT', lock, last[2])
  redis.call('PEXPIREAT', owner, last[2])
  local first = redis.pcall('ZRANGE', queue, 0, 0)[1]
  if not first then return end
  if letter(first) == letter(held_mode() or 'x') then
    call_next()
  else
    ends_in(last[2] - now)
  end
end

-- Calls whoever can have the lock if somebody left the queue.
local function settle_queue()
  local kind = redis.call('TYPE', lock).ok
  if kind == 'none' then
    call_next()
  elseif kind == 'zset' and held_mode() then
    settle(now_ms())
  end
end

-- Takes the lock from `holder`, if it holds it; then the next may have it.  `record`: the one it may
-- still have as a waiter.  It goes now and not with the grant, because DEL takes several keys.
local function remove(holder, record)
  if redis.pcall('GET', lock) == holder then
    redis.call('DEL', lock, owner, record)
    call_next()
    return true
  end
  if redis.call('TYPE', lock).ok ~= 'zset' then return false end
  local expires = redis.call('ZSCORE', lock, holder)
  if not expires then return false end
  if not held_mode() then  -- of another program
    redis.call('ZREM', lock, holder)
    return true
  end
  local now = now_ms()
  redis.call('ZREM', lock, holder)
  redis.call('HDEL', owner, holder)
  redis.call('DEL', record)
  settle(now)
  return tonumber(expires) > now
end
