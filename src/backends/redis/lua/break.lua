-- Takes the lock from the holder ARGV[1], whoever took it, and tells it why.
--   KEYS[5]  the record that it may still have as a waiter
--   KEYS[6]  where a holder of ours finds the reason
--   ARGV[4]  the reason
-- Returns 1, or 0: it holds nothing any more
local left = redis.call('PTTL', lock)
if redis.call('TYPE', lock).ok == 'hash' then
  if redis.call('HEXISTS', lock, id) == 0 then return 0 end
  redis.call('DEL', lock)
  call_next()
elseif not remove(id, KEYS[5]) then
  return 0
end
redis.call('SET', KEYS[6], ARGV[4], 'PX', whole(math.max(left, 0) + 60000))
redis.pcall('PUBLISH', channels .. id, 'revoked')
return 1
