-- Manual control: takes the circuit where an operator wants it, and makes the outcomes of all calls under way stale.
-- KEYS: 1 the circuit's hash, 2 failures, 3 probes, then rate buckets (tripOn rate only), then instances (quorum above 1 and
--       tripOn consecutive or rate only)
-- ARGV: 1 now, 2 operation (reset, trip, force-open, disable), 3 length of the opening in milliseconds (trip; -1: by the
--       configuration), 4 configuration, 5 channel (missing or '': announce nothing), 6 origin
-- Reply: status state mode epoch wait from reason failures open_ms mismatch
--   status: 1
--   wait: milliseconds of OPEN still to come; else 0
--   from, reason: as callers see the state; -1 where it looks the same before and after
local now, operation, for_ms, config = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), read_config(ARGV[4])
local channel, origin = ARGV[5], ARGV[6]
local FORCED = { ['force-open'] = { FORCED_OPEN, 'forced-open' }, disable = { DISABLED, 'disabled' } }
local DONE = 1
local c = read_circuit(KEYS[1], config)
local from = seen(c)

if operation == 'reset' then
  close(c, config, now)
elseif operation == 'trip' then
  trip(c, config, now, for_ms ~= NONE and for_ms or nil)
elseif FORCED[operation] then
  local mode, word = unpack(FORCED[operation])
  -- What is counted underneath stays, so the buckets move on to the new epoch with it.
  local counting = config.rate_key and redis.call('HGET', config.rate_key, 'e') == int(c.epoch)
  redis.call('HDEL', KEYS[1], 'mode')
  advance(c, now)
  c.mode = mode
  redis.call('HSET', KEYS[1], 'mode', word, 'epoch', int(c.epoch))
  if counting then
    redis.call('HSET', config.rate_key, 'e', int(c.epoch))
  end
  touch(c, config)
  -- Buckets and instances keep their lifetime: it outlasts their window, and an instance of another configuration, which may
  -- be the one that takes this back, does not know their keys.
  for i = 1, 3 do
    redis.call('PERSIST', KEYS[i])
  end
else
  return redis.error_reply('ERR unknown operation `' .. operation .. '`: reset, trip, force-open or disable')
end
local transition = from ~= seen(c) and { from, MANUAL, 0 } or nil
return announce(channel, origin, now, c, reply(DONE, c, remaining(c, now), transition))
