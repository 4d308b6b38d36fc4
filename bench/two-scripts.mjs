// The scheme that switchgear does without: one script asks before the call, another one reports after it. Written for
// this benchmark, as small as such a breaker can be on the healthy path; no library's code is in it.

/** KEYS: state hash. ARGV: now, openMs. Reply: 1 go ahead, 0 refused. */
const ASK = `
local state = redis.call('HMGET', KEYS[1], 'state', 'opened_at')
if state[1] ~= 'open' then return 1 end
if tonumber(ARGV[1]) - tonumber(state[2]) < tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'state', 'half-open')
return 1`;

/** KEYS: state hash, failures. Reply: 1. */
const REPORT_SUCCESS = `
if redis.call('HGET', KEYS[1], 'state') == 'half-open' then redis.call('DEL', KEYS[1], KEYS[2]) end
return 1`;

/** A breaker of that scheme on an ioredis client, able to guard calls that succeed. */
export async function twoScriptsBreaker(client, name) {
  const keys = [`{two:${name}}`, `{two:${name}}:failures`];
  const [ask, report] = await Promise.all([ASK, REPORT_SUCCESS].map((text) => client.script("LOAD", text)));
  return {
    async execute(fn) {
      const admitted = await client.evalsha(ask, 1, keys[0], Date.now(), 30_000);
      if (admitted !== 1) throw new Error("refused");
      const value = await fn();
      await client.evalsha(report, 2, ...keys);
      return value;
    },
  };
}
