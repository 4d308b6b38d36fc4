-- Settles a call that failed: counts it, and trips at the threshold; a failed probe trips at once. An id that has been
-- counted is not counted again: the command came twice. (tripOn rate keeps no ids and counts it twice.)
-- KEYS: 1 the circuit's hash, 2 failures, 3 probes, 4 rate buckets (tripOn rate only)
-- ARGV: 1 now, 2 call id, 3 the permit's epoch (-1: no permit), 4 the permit's kind (0 closed, 1 probe), 5 configuration
-- Reply: status state mode epoch wait from reason failures open_ms mismatch
--   status: 0 stale, 1 applied
--   wait: milliseconds of OPEN still to come; else 0
--   failures: at a threshold trip the count that tripped it; else 0
local now, id, epoch, kind = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local config = read_config(ARGV[5])
local STALE, APPLIED = 0, 1
local c = read_circuit(KEYS[1], config)

if not counts(c, epoch, kind) then
  return reply(STALE, c, remaining(c, now))
end

if c.state == HALF_OPEN then
  trip(c, config, now)
  return reply(APPLIED, c, c.open_ms, { HALF_OPEN, PROBE_FAILED, 0 })
end

local failures, tripping
if config.trip_on == 'rate' then
  local r = read_rate(c, config, now)
  count_call(r, true)
  failures = r.failures
  tripping = r.calls >= config.minimum_calls and r.failures >= config.failure_rate * r.calls
  if not tripping then
    write_rate(r, c)
  end
else
  if redis.call('ZSCORE', KEYS[2], id) then
    return reply(APPLIED, c, 0)
  end
  if config.trip_on == 'rolling' then
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', int(now - config.window_ms))
    redis.call('ZREMRANGEBYSCORE', KEYS[2], '(' .. int(now + AHEAD_MS), '+inf')
  else
    redis.call('ZREM', KEYS[2], id)
  end
  failures = redis.call('ZCARD', KEYS[2]) + 1
  tripping = failures >= config.failure_threshold
  if not tripping then
    redis.call('ZADD', KEYS[2], int(now), id)
  end
end

if tripping then
  trip(c, config, now)
  return reply(APPLIED, c, c.open_ms, { CLOSED, THRESHOLD, failures })
end
touch(c, config)
return reply(APPLIED, c, 0)
