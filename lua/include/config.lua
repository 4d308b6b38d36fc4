-- The configuration argument: one string, rendered once per circuit, parsed only where it is needed.

local function read_config(text)
  local word = {}
  for w in string.gmatch(text, '%S+') do
    word[#word + 1] = w
  end
  local config = {
    trip_on = word[1],
    failure_threshold = tonumber(word[2]),
    window_ms = tonumber(word[3]),
    failure_rate = tonumber(word[4]),
    minimum_calls = tonumber(word[5]),
    open_duration_ms = tonumber(word[6]),
    open_backoff = tonumber(word[7]),
    open_duration_max_ms = tonumber(word[8]),
    half_open_max_calls = tonumber(word[9]),
    success_threshold = tonumber(word[10]),
    probe_timeout_ms = tonumber(word[11]),
    idle_ttl_ms = tonumber(word[12]),
    quorum = num(word[13], 1),
  }
  -- The keys that not every configuration has.
  local is_rate = config.trip_on == 'rate'
  config.rate_key = is_rate and KEYS[4] or nil
  config.instances_key = config.quorum > 1 and config.trip_on ~= 'rolling' and KEYS[is_rate and 5 or 4] or nil
  return config
end
