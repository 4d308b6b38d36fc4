-- Settles a call that succeeded, or several that were admitted while closed. A probe's id that has been counted is not counted
-- again: the command came twice.
-- KEYS: 1 the circuit's hash, 2 failures, 3 probes, then rate buckets (tripOn rate only), then instances (quorum above 1 and
--       tripOn consecutive or rate only)
-- ARGV: 1 now, 2 call id, 3 the permit's epoch (-1: no permit), 4 the permit's kind (0 closed, 1 probe), 5 configuration,
--       6 channel (missing or '': announce nothing), 7 origin, 8 how many successes this tells (missing: 1; half-open: 1)
-- Reply: status state mode epoch wait from reason failures open_ms mismatch
--   status: 0 stale, 1 applied
--   wait: milliseconds of OPEN still to come; else 0
local now, id, epoch, kind = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local config, channel, origin, count = read_config(ARGV[5]), ARGV[6], ARGV[7], num(ARGV[8], 1)
local STALE, APPLIED = 0, 1
local c = read_circuit(KEYS[1], config)

if not counts(c, epoch, kind) then
  return reply(STALE, c, remaining(c, now))
end

if c.state == CLOSED then
  if config.trip_on == 'consecutive' and redis.call('ZCARD', KEYS[2]) > 0 then
    end_row(config)
    touch(c, config)
  elseif config.trip_on == 'rate' then
    local r = read_rate(c, config, now)
    count_calls(r, count, 0)
    write_rate(r, c)
    touch(c, config)
  end
  return reply(APPLIED, c, 0)
end

if redis.call('ZSCORE', KEYS[2], id) then
  return reply(APPLIED, c, 0)
end
drop_dead_probes(c, now)
free_slot(id, epoch)
if c.successes + 1 >= c.needed then
  close(c, config, now)
  return announce(channel, origin, now, c, reply(APPLIED, c, 0, { HALF_OPEN, PROBES_SUCCEEDED, 0 }))
end
redis.call('HSET', KEYS[1], 'ho_succ', int(c.successes + 1))
redis.call('ZADD', KEYS[2], int(now), id)
touch(c, config)
return reply(APPLIED, c, 0)
