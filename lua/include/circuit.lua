-- The circuit's hash, read once. A period runs by what the instance that began it wrote down (open_ms; ptmo, ho_max,
-- ho_need); where an instance of NestJS RedisX began it, nothing is written down and our own configuration stands in.

local CLOSED, OPEN, HALF_OPEN = 0, 1, 2
local AUTO, FORCED_OPEN, DISABLED = 0, 1, 2
local THRESHOLD, COOLDOWN, PROBE_FAILED, PROBES_SUCCEEDED, MANUAL = 0, 1, 2, 3, 4
local NONE = -1

local function read_circuit(key, config)
  local field = redis.call('HMGET', key, 'state', 'mode', 'epoch', 'opened_at', 'open_ms', 'trips', 'ho_succ',
    'ptmo', 'ho_max', 'ho_need')
  local c = { state = CLOSED, mode = AUTO, epoch = num(field[3], 0), trips = 0, successes = 0, mismatch = 0 }
  c.probe_timeout_ms = config.probe_timeout_ms
  if field[1] == 'open' then c.state = OPEN elseif field[1] == 'half-open' then c.state = HALF_OPEN end
  if field[2] == 'forced-open' then c.mode = FORCED_OPEN elseif field[2] == 'disabled' then c.mode = DISABLED end
  if c.state ~= CLOSED then
    c.opened_at = num(field[4], 0)
    c.open_ms = num(field[5], config.open_duration_ms)
    c.trips = num(field[6], 0)
  end
  if c.state == HALF_OPEN then
    c.successes = num(field[7], 0)
    c.probe_timeout_ms = num(field[8], config.probe_timeout_ms)
    c.max_calls = math.max(num(field[9], config.half_open_max_calls), 1)
    c.needed = num(field[10], config.success_threshold)
    if c.probe_timeout_ms ~= config.probe_timeout_ms or c.max_calls ~= config.half_open_max_calls
      or c.needed ~= config.success_threshold then
      c.mismatch = 1
    end
  end
  return c
end

-- The start of the last opening, or -1 if closed. OPEN is believed to have started by now; later nothing depends on it.
local function opened_at(c, now)
  if c.state == CLOSED then
    return NONE
  end
  if c.state == OPEN and c.opened_at > now + AHEAD_MS then
    return now
  end
  return c.opened_at
end

-- Milliseconds of OPEN still to come; 0 in every other state.
local function remaining(c, now)
  if c.state ~= OPEN then
    return 0
  end
  return math.max(opened_at(c, now) + c.open_ms - now, 0)
end

-- The state as callers see it: a forced mode covers the machine underneath.
local function seen(c)
  if c.mode == FORCED_OPEN then return OPEN elseif c.mode == DISABLED then return CLOSED end
  return c.state
end

-- Whether an outcome counts here (DESIGN 3.4); epoch -1: without a permit, the plain rules.
local function counts(c, epoch, kind)
  if c.mode ~= AUTO or c.state == OPEN then
    return false
  end
  local fitting = c.state == HALF_OPEN and 1 or 0
  return epoch == NONE or (epoch == c.epoch and kind == fitting)
end

-- transition: { from, reason, failures }, or nil where the call made none.
local function reply(status, c, wait, transition)
  local t = transition or { NONE, NONE, 0 }
  return { status, c.state, c.mode, c.epoch, wait, t[1], t[2], t[3], c.state == OPEN and c.mode == AUTO and c.open_ms or NONE, c.mismatch }
end
