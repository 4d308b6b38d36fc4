-- Changes of state. Each starts with a removing command: see "What a full server does" in the README.

-- A write refreshes the lifetime of every key the circuit has, so that none outlives or is outlived by the others.
local function touch(c, config)
  local ttl = int(math.max(config.idle_ttl_ms, 2 * (c.open_ms or 0) + 60000, 2 * c.probe_timeout_ms + 60000))
  for _, key in ipairs(KEYS) do
    redis.call('PEXPIRE', key, ttl)
  end
end

local function advance(c, now)
  c.epoch = math.min(math.max(c.epoch + 1, now), MAX_EXACT)
end

local function clear_counted()
  redis.call('DEL', unpack(KEYS, 2))
end

-- Ends the row of failures (consecutive), and forgets which instances it was.
local function end_row(config)
  redis.call('DEL', KEYS[2])
  if config.instances_key then
    redis.call('DEL', config.instances_key)
  end
end

-- The length of the opening that is the trips-th in a row: multiplied up to the cap, floored once, at the end.
local function backed_off(config, trips)
  local ms = config.open_duration_ms
  if config.open_backoff > 1 then
    local i = 1
    while i < trips and ms < config.open_duration_max_ms do
      ms = ms * config.open_backoff
      i = i + 1
    end
    ms = math.min(ms, config.open_duration_max_ms)
  end
  return math.floor(ms)
end

local function trip(c, config, now, open_ms)
  clear_counted()
  redis.call('HDEL', KEYS[1], 'mode', 'ho_succ', 'ptmo', 'ho_max', 'ho_need')
  advance(c, now)
  c.state, c.mode, c.opened_at, c.trips = OPEN, AUTO, now, c.trips + 1
  c.open_ms = open_ms or backed_off(config, c.trips)
  c.probe_timeout_ms = config.probe_timeout_ms
  redis.call('HSET', KEYS[1], 'state', 'open', 'opened_at', int(now), 'open_ms', int(c.open_ms), 'trips', int(c.trips),
    'epoch', int(c.epoch))
  touch(c, config)
end

local function close(c, config, now)
  clear_counted()
  redis.call('HDEL', KEYS[1], 'state', 'mode', 'opened_at', 'open_ms', 'trips', 'ho_succ', 'ptmo', 'ho_max', 'ho_need')
  advance(c, now)
  c.state, c.mode, c.open_ms, c.probe_timeout_ms = CLOSED, AUTO, nil, config.probe_timeout_ms
  redis.call('HSET', KEYS[1], 'epoch', int(c.epoch))
  touch(c, config)
end
