-- The buckets of tripOn rate: `w` and `e` say which width and epoch they belong to, `<b>c` and `<b>f` hold bucket b's
-- calls and failures. Counts of another width or epoch are as good as none.

local function read_rate(c, config, now)
  local width = math.max(1, math.ceil(config.window_ms / 10))
  local r = { width = width, current = math.floor(now / width), calls = 0, failures = 0, here = { c = 0, f = 0 } }
  local field = redis.call('HGETALL', KEYS[4])
  local value = {}
  for i = 1, #field, 2 do
    value[field[i]] = field[i + 1]
  end
  r.foreign = value.w ~= int(width) or value.e ~= int(c.epoch)
  -- Starts with the name of no field, so that dropping is a removing command even where nothing is to be dropped.
  r.dropped = { '' }
  if r.foreign then
    return r
  end
  for i = 1, #field, 2 do
    local bucket, what = string.match(field[i], '^(%d+)([cf])$')
    bucket = tonumber(bucket)
    if bucket then
      local count = num(field[i + 1], 0)
      if bucket <= r.current - 10 or bucket * width > now + AHEAD_MS then
        r.dropped[#r.dropped + 1] = field[i]
      elseif what == 'c' then
        r.calls = r.calls + count
      else
        r.failures = r.failures + count
      end
      if bucket == r.current then
        r.here[what] = count
      end
    end
  end
  return r
end

local function count_calls(r, calls, failures)
  r.calls, r.here.c = r.calls + calls, r.here.c + calls
  r.failures, r.here.f = r.failures + failures, r.here.f + failures
end

local function write_rate(r, c)
  if r.foreign then
    redis.call('DEL', KEYS[4])
  else
    -- One by one: a host whose clock steps back can leave more buckets behind than Lua can pass at once.
    for _, name in ipairs(r.dropped) do
      redis.call('HDEL', KEYS[4], name)
    end
  end
  local bucket = int(r.current)
  redis.call('HSET', KEYS[4], 'w', int(r.width), 'e', int(c.epoch), bucket .. 'c', int(r.here.c))
  if r.here.f > 0 then
    redis.call('HSET', KEYS[4], bucket .. 'f', int(r.here.f))
  end
end
