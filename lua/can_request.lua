-- Admits a call, or refuses it, whatever the state: begins the half-open period of an opening that is over, and gives out
-- its probe slots. An id that holds a live slot is admitted again with the same permit: the command came twice.
-- KEYS: 1 the circuit's hash, 2 failures, 3 probes, then rate buckets (tripOn rate only), then instances (quorum above 1 and
--       tripOn consecutive or rate only)
-- ARGV: 1 now, 2 call id, 3 configuration, 4 channel (missing or '': announce nothing), 5 origin
-- Reply: status state mode epoch wait from reason failures open_ms mismatch
--   status: 0 refused, 1 granted (closed), 2 granted as a probe, 3 granted (disabled)
--   wait: refused: milliseconds until it may be worth asking again, -1 unknown (forced open); else 0
local now, id, config = tonumber(ARGV[1]), ARGV[2], read_config(ARGV[3])
local channel, origin = ARGV[4], ARGV[5]
local REFUSED, GRANTED, PROBE, BYPASS = 0, 1, 2, 3
local c = read_circuit(KEYS[1], config)

if c.mode == FORCED_OPEN then
  return reply(REFUSED, c, NONE)
elseif c.mode == DISABLED then
  return reply(BYPASS, c, 0)
elseif c.state == CLOSED then
  return reply(GRANTED, c, 0)
end

if c.state == OPEN then
  if c.opened_at > now + AHEAD_MS then
    redis.call('HDEL', KEYS[1], 'opened_at')
    redis.call('HSET', KEYS[1], 'opened_at', int(now))
    c.opened_at = now
    touch(c, config)
  end
  if now - c.opened_at < c.open_ms then
    return reply(REFUSED, c, remaining(c, now))
  end
  clear_counted()
  advance(c, now)
  c.state, c.probe_timeout_ms = HALF_OPEN, config.probe_timeout_ms
  redis.call('HSET', KEYS[1], 'state', 'half-open', 'ho_succ', '0', 'epoch', int(c.epoch),
    'ptmo', int(config.probe_timeout_ms), 'ho_max', int(config.half_open_max_calls),
    'ho_need', int(config.success_threshold))
  redis.call('ZADD', KEYS[3], int(now), id)
  touch(c, config)
  return announce(channel, origin, now, c, reply(PROBE, c, 0, { OPEN, COOLDOWN, 0 }))
end

local started = tonumber(redis.call('ZSCORE', KEYS[3], id))
if started and started > now - c.probe_timeout_ms and started <= now + AHEAD_MS then
  return reply(PROBE, c, 0)
end
if live_probes(c, now) < c.max_calls then
  drop_dead_probes(c, now)
  redis.call('ZADD', KEYS[3], int(now), id)
  touch(c, config)
  return reply(PROBE, c, 0)
end
local oldest = redis.call('ZRANGEBYSCORE', KEYS[3], oldest_live(c, now), newest_live(now), 'WITHSCORES', 'LIMIT', 0, 1)
return reply(REFUSED, c, tonumber(oldest[2]) + c.probe_timeout_ms - now)
