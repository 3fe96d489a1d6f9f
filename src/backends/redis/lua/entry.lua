-- In front of the scripts that write what `dlock once` remembers, behind common.lua.
--   KEYS[#KEYS]  the entry: a STRING, rank, end in ms of this server's clock, record (mark_entry.hpp)
local name = KEYS[#KEYS]

-- '': nothing is there; nil: what is there is no entry.
local function entry_there()
  local text = try('GETRANGE', name, 0, 8191)
  if text == '' then return text end
  local start = '^' .. string.rep('%d', 20) .. '[dr] %d+ '
  return type(text) == 'string' and string.find(text, start) and text or nil
end

local function rank_of(text) return string.sub(text, 1, 21) end

-- As long as an entry is there, lower ones do not come back.  One that replaces it does the same for it.
local function put(rank, ms, record)
  local stays = math.max(redis.call('PTTL', name), tonumber(ms))
  local ends = whole(now_ms() + tonumber(ms))
  redis.call('SET', name, rank .. ' ' .. ends .. ' ' .. record, 'PX', whole(stays))
end
