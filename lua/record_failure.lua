-- Settles a call that failed: counts it, and trips at the threshold; a failed probe trips at once. An id that has been
-- counted is not counted again: the command came twice. (tripOn rate keeps no ids and counts it twice. Under rolling with a
-- quorum above 1 the id names a slot of the instance's ring, and a newer failure takes the slot over.)
-- KEYS: 1 the circuit's hash, 2 failures, 3 probes, then rate buckets (tripOn rate only), then instances (quorum above 1 and
--       tripOn consecutive or rate only)
-- ARGV: 1 now, 2 call id, 3 the permit's epoch (-1: no permit), 4 the permit's kind (0 closed, 1 probe), 5 configuration,
--       6 channel (missing or '': announce nothing), 7 origin, 8 how many successes came before and have not been told
--       (missing: 0; while closed only), 9 instance (missing: ''; quorum above 1)
-- Reply: status state mode epoch wait from reason failures open_ms mismatch
--   status: 0 stale, 1 applied
--   wait: milliseconds of OPEN still to come; else 0
--   failures: at a threshold trip the count that tripped it; else 0
local now, id, epoch, kind = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local config, channel, origin = read_config(ARGV[5]), ARGV[6], ARGV[7]
local successes, instance = num(ARGV[8], 0), ARGV[9] or ''
local STALE, APPLIED = 0, 1
local c = read_circuit(KEYS[1], config)

if not counts(c, epoch, kind) then
  return reply(STALE, c, remaining(c, now))
end

if c.state == HALF_OPEN then
  trip(c, config, now)
  return announce(channel, origin, now, c, reply(APPLIED, c, c.open_ms, { HALF_OPEN, PROBE_FAILED, 0 }))
end

local is_of_many = config.quorum > 1
local failures, tripping
if config.trip_on == 'rate' then
  local r = read_rate(c, config, now)
  count_calls(r, successes, 0)
  count_calls(r, 1, 1)
  failures = r.failures
  tripping = r.calls >= config.minimum_calls and r.failures >= config.failure_rate * r.calls
  if is_of_many then
    drop_old_instances(config, r, now)
    tripping = note_instance(config, now, instance) and tripping
  end
  if not tripping then
    write_rate(r, c)
  end
elseif config.trip_on == 'rolling' then
  if redis.call('ZSCORE', KEYS[2], id) and not is_of_many then
    return reply(APPLIED, c, 0)
  end
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', int(now - config.window_ms))
  redis.call('ZREMRANGEBYSCORE', KEYS[2], '(' .. int(now + AHEAD_MS), '+inf')
  local takes_over = is_of_many and redis.call('ZSCORE', KEYS[2], id)
  failures = redis.call('ZCARD', KEYS[2]) + (takes_over and 0 or 1)
  tripping = failures >= config.failure_threshold and (not is_of_many or rings_are_enough(config, id))
  if not tripping then
    redis.call('ZADD', KEYS[2], int(now), id)
  end
else
  if redis.call('ZSCORE', KEYS[2], id) then
    return reply(APPLIED, c, 0)
  end
  if successes > 0 or (is_of_many and redis.call('ZCARD', KEYS[2]) == 0) then
    end_row(config)
  else
    redis.call('ZREM', KEYS[2], id)
  end
  local row = redis.call('ZCARD', KEYS[2])
  -- A row that has come to the threshold and waits for another instance is long enough.
  local is_full = is_of_many and row >= config.failure_threshold
  failures = is_full and row or row + 1
  tripping = failures >= config.failure_threshold
  if is_of_many then
    tripping = note_instance(config, now, instance) and tripping
  end
  if not tripping and not is_full then
    redis.call('ZADD', KEYS[2], int(now), id)
  end
end

if tripping then
  trip(c, config, now)
  return announce(channel, origin, now, c, reply(APPLIED, c, c.open_ms, { CLOSED, THRESHOLD, failures }))
end
touch(c, config)
return reply(APPLIED, c, 0)
