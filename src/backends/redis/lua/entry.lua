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
