-- Numbers. Redis and Lua hold whole numbers exactly up to 2^53 - 1; Lua's `..` would keep only 14 digits of them.

local MAX_EXACT = 9007199254740991
-- A time further ahead of `now` than this is not believed (DESIGN 3.8).
local AHEAD_MS = 60000

local function int(n)
  return string.format('%.0f', n)
end

-- What a field holds, or the default where it is missing or no count of anything.
local function num(text, default)
  local n = tonumber(text)
  if n and n >= 0 and n <= MAX_EXACT then
    return math.floor(n)
  end
  return default
end
