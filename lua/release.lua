-- Settles a call without an outcome (cancelled, ignored): frees its probe slot. With a call id and epoch -1 it gives back
-- what that id was granted, for a grant that came too late: its slot goes, whatever the mode and the period, nothing else.
-- KEYS: 1 the circuit's hash, 2 failures, 3 probes, then rate buckets (tripOn rate only), then instances (quorum above 1 and
--       tripOn consecutive or rate only)
-- ARGV: 1 now, 2 call id ('' without a permit), 3 the permit's epoch (-1: no permit), 4 the permit's kind (0 closed,
--       1 probe), 5 configuration
-- Reply: status state mode epoch wait from reason failures open_ms mismatch
--   status: 0 stale (giving back: there was no slot), 1 applied
--   wait: milliseconds of OPEN still to come; else 0
local now, id, epoch, kind = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local config = read_config(ARGV[5])
local STALE, APPLIED = 0, 1
local c = read_circuit(KEYS[1], config)

if epoch == NONE and id ~= '' then
  if not redis.call('ZSCORE', KEYS[3], id) then
    return reply(STALE, c, remaining(c, now))
  end
  redis.call('ZREM', KEYS[3], id)
  if c.mode == AUTO then
    touch(c, config)
  end
  return reply(APPLIED, c, remaining(c, now))
end

if not counts(c, epoch, kind) then
  return reply(STALE, c, remaining(c, now))
end
if c.state == HALF_OPEN and drop_dead_probes(c, now) + free_slot(id, epoch) > 0 then
  touch(c, config)
end
return reply(APPLIED, c, 0)
