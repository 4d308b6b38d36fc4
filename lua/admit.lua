-- Admits a call, or refuses it, from the circuit's hash alone: the one script of a healthy call. Writes nothing.
-- KEYS: 1 the circuit's hash
-- ARGV: 1 now
-- Reply: status state mode epoch wait
--   status: 0 refused, 1 granted (closed), 3 granted (disabled), 4 send can_request
--   wait: refused: milliseconds until it may be worth asking again, -1 unknown (forced open); else 0
local f = redis.call('HMGET', KEYS[1], 'state', 'mode', 'epoch', 'opened_at', 'open_ms')
local epoch = tonumber(f[3]) or 0
if not (epoch >= 0 and epoch <= 9007199254740991) then epoch = 0 end
local state = f[1] == 'open' and 1 or f[1] == 'half-open' and 2 or 0
if f[2] == 'forced-open' then return { 0, state, 1, epoch, -1 } end
if f[2] == 'disabled' then return { 3, state, 2, epoch, 0 } end
if state == 0 then return { 1, 0, 0, epoch, 0 } end
local now, opened_at, open_ms = tonumber(ARGV[1]), tonumber(f[4]), tonumber(f[5])
-- An opening that lacks a number, has a start that is not believed, or is over: can_request sees to it.
if state == 1 and opened_at and open_ms and opened_at <= now + 60000 and now - opened_at < open_ms then
  return { 0, 1, 0, epoch, opened_at + open_ms - now }
end
return { 4, state, 0, epoch, 0 }
