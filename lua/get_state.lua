-- Reads the circuit as it is at `now` (DESIGN 3.6). Writes nothing.
-- KEYS: 1 the circuit's hash, 2 failures, 3 probes, then rate buckets (tripOn rate only), then instances (quorum above 1 and
--       tripOn consecutive or rate only)
-- ARGV: 1 now, 2 configuration
-- Reply: state mode epoch openedAt remainingOpenMs trips failuresInWindow callsInWindow consecutiveFailures
--        halfOpenSuccesses halfOpenInFlight
--   state as seen (forced open reads open, disabled reads closed); all else is the machine underneath
--   openedAt: -1 unless tripped
local now, config = tonumber(ARGV[1]), read_config(ARGV[2])
local c = read_circuit(KEYS[1], config)

local failures, calls, row, in_flight = 0, 0, 0, 0
if c.state == HALF_OPEN then
  in_flight = live_probes(c, now)
elseif c.state == CLOSED then
  if config.trip_on == 'rolling' then
    failures = redis.call('ZCOUNT', KEYS[2], '(' .. int(now - config.window_ms), int(now + AHEAD_MS))
  elseif config.trip_on == 'consecutive' then
    row = redis.call('ZCARD', KEYS[2])
  else
    local r = read_rate(c, config, now)
    failures, calls = r.failures, r.calls
  end
end
return { seen(c), c.mode, c.epoch, opened_at(c, now), remaining(c, now), c.trips, failures, calls, row, c.successes, in_flight }
