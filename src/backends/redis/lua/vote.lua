-- Acquires the lock on one of several servers, with the fencing token that another one has given; or on
-- all of them, with the next one, if the first waiter does not believe the server of its queue.  Or
-- gives what is left of a lease to a server that has lost its data, once a majority of the others has
-- renewed it.  That it has lost them, and nobody has deleted the lock, shows in the counter, as long as
-- that cannot have expired.  Where several hold the lock, the first that comes sets the counter for
-- the others, too: it leaves '@again' for them, which goes with the lock.  A holder whose record is
-- there although it is no member was removed by hand.
--   KEYS[5]  there if W has been given up
--   ARGV[6]  ttl, or the rest of the lease, ms       ARGV[7] record, with token and number
--   ARGV[8]  the token     ARGV[9] our number, of slots; or ''
--   ARGV[10] this server's number in the client's list      ARGV[11] '1': the lease is held, as above
-- Returns {1}                           it is ours
--         {0, 'held', mode, id, record} another has it; '' without a record: another program
--         {0, 'overtaken', token}       it is ours, but another has this token or a larger one: no vote
--         {0, 'taken', taken, token}    of slots, another has this number; '101': others have 1 and 3;
--                                       the last token here
--         {0, 'duplicate', number}  {0, 'void'}  {0, 'late'}    as in ask.lua
--         {0, 'kept'}                   this server has not lost its data
local ttl, record, token, number = ARGV[6], ARGV[7], tonumber(ARGV[8]), ARGV[9]
local node, again = ARGV[10], ARGV[11] == '1'
if number == '' then number = nil end

if redis.call('EXISTS', KEYS[5]) == 1 then return {0, 'void'} end
local its_mode = held()
local ours = round_held(its_mode)
if ours and ours > round then return {0, 'late'} end
if not ours and not has_room(its_mode, mode) then
  local id = ''
  if its_mode == 'x' then
    id = string_id()
  elseif its_mode ~= 'other' then
    id = id_of(redis.call('ZRANGE', lock, -1, -1)[1])
  end
  return {0, 'held', its_mode, id, record_of(its_mode, id)}
end
local duplicate = duplicate_of(its_mode, ours, node)
if duplicate then return {0, 'duplicate', duplicate} end

local counted = count()
local of_several = mode ~= 'x'
local overtaken = false
if again then
  if ours == round or now >= token + kWeek then return {0, 'kept'} end
  local others_came = of_several and its_mode ~= 'none' and redis.call('HEXISTS', owner, '@again') == 1
  if counted >= token and not others_came then return {0, 'kept'} end
  local is_removed = of_several and not ours and its_mode ~= 'none' and redis.call('HEXISTS', owner, W) == 1
  if is_removed then return {0, 'kept'} end
else
  local is_ours = ours and ours > 0 and
                  string.find(record_of(its_mode, W .. ':' .. whole(ours)), '"fence":' .. ARGV[8] .. '}', 1, true)
  overtaken = counted > token or counted == token and not is_ours
end
if number and its_mode ~= 'none' then
  local holder = redis.call('HGET', owner, '#' .. number)
  if holder and holder ~= W and redis.call('ZSCORE', lock, holder) then
    local others, most = numbers(true)
    return {0, 'taken', in_digits(others, most), whole(counted)}
  end
end
-- A record with a token says that this server has voted for it.
if overtaken then record = string.gsub(record, ',"fence":%d+}$', '}') end
local starts = is_first(its_mode, ours)
if starts and not again then record = string.gsub(record, ',"fence":%d+}$', kFirst .. '%0') end
put(W, round, mode, ttl, record, number)
if counted < token then set_counter(token) end
if of_several and (again or starts) then redis.call('HSET', owner, '@again', '') end
redis.call('ZREM', queue, entry)
-- It is ours all the same: where others have more votes than are needed, this server still counts for
-- the renewals.
if overtaken then return {0, 'overtaken', whole(counted)} end
return {1}
