-- Quorum: a threshold trips only if at least that many instances failed. Under rolling an instance names its failures by the
-- slots of a ring, `instance:slot`, so that it cannot fill the window alone; otherwise a sorted set says when which instance
-- failed last. A quorum of one takes none of these ways.

-- Whether the slots in the window, this failure's with them, are those of enough instances.
local function rings_are_enough(config, id)
  local size = math.ceil(config.failure_threshold / config.quorum)
  -- Mostly their number says so: all the slots that one instance too few has do not trip.
  if (config.quorum - 1) * size < config.failure_threshold then
    return true
  end
  local known, instances = {}, 0
  local members = redis.call('ZRANGE', KEYS[2], 0, -1)
  members[#members + 1] = id
  for _, member in ipairs(members) do
    local instance = string.match(member, '^(.*):%d+$') or member
    if not known[instance] then
      known[instance], instances = true, instances + 1
    end
  end
  return instances >= config.quorum
end

-- Notes that this instance failed; whether enough of those noted did. Who is noted no longer counts has been removed.
local function note_instance(config, now, instance)
  redis.call('ZADD', config.instances_key, int(now), instance)
  return redis.call('ZCARD', config.instances_key) >= config.quorum
end

-- Removes the instances whose last failure is in none of the buckets that count.
local function drop_old_instances(config, r, now)
  if r.foreign then
    redis.call('DEL', config.instances_key)
    return
  end
  redis.call('ZREMRANGEBYSCORE', config.instances_key, '-inf', '(' .. int((r.current - 9) * r.width))
  local beyond = (math.floor((now + AHEAD_MS) / r.width) + 1) * r.width
  redis.call('ZREMRANGEBYSCORE', config.instances_key, int(beyond), '+inf')
end
