-- Reads what an admission is decided by, as the plain HMGET does: for clients that may send a plain read to a replica.
-- Writes nothing.
-- KEYS: 1 the circuit's hash
-- ARGV: none
-- Reply: state mode epoch opened_at open_ms, each the field's text or nil
return redis.call('HMGET', KEYS[1], 'state', 'mode', 'epoch', 'opened_at', 'open_ms')
