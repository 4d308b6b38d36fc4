-- Tells whoever listens of a transition that callers see: the last thing a script does, and by pcall, so that a server or a
-- user that publishes nothing changes nothing else.
-- The message: "1 from to reason epoch at failures open_ms origin", as in the reply, with the state seen afterwards and now.

local function announce(channel, origin, now, c, answer)
  local from, reason, failures, open_ms = answer[6], answer[7], answer[8], answer[9]
  if from ~= NONE and channel and channel ~= '' then
    local message = { '1', int(from), int(seen(c)), int(reason), int(c.epoch), int(now), int(failures), int(open_ms) }
    redis.pcall('PUBLISH', channel, table.concat(message, ' ') .. ' ' .. (origin or ''))
  end
  return answer
end
