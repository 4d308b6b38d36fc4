-- Probes in flight. One is live from just after `now - probeTimeoutMs` to as far ahead as a time is believed.

local function oldest_live(c, now)
  return '(' .. int(now - c.probe_timeout_ms)
end

local function newest_live(now)
  return int(now + AHEAD_MS)
end

local function live_probes(c, now)
  return redis.call('ZCOUNT', KEYS[3], oldest_live(c, now), newest_live(now))
end

-- Removes the dead; says how many those were.
local function drop_dead_probes(c, now)
  return redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', int(now - c.probe_timeout_ms))
    + redis.call('ZREMRANGEBYSCORE', KEYS[3], '(' .. newest_live(now), '+inf')
end

-- Frees the permit's own slot, or without a permit that of the newest probe; says how many slots that were.
local function free_slot(id, epoch)
  if epoch ~= NONE then
    return redis.call('ZREM', KEYS[3], id)
  end
  local newest = redis.call('ZRANGE', KEYS[3], -1, -1)
  return #newest > 0 and redis.call('ZREM', KEYS[3], newest[1]) or 0
end
