import type { Redis } from "ioredis";

/** The numbers of an instance of NestJS RedisX, all of them as its options call them. */
export interface RedisXPolicy {
  failureThreshold: number;
  windowMs: number;
  openDurationMs: number;
  halfOpenMaxCalls: number;
  successThreshold: number;
  probeTimeoutMs: number;
}

/**
 * What 1.x of NestJS RedisX publishes of its circuits: which keys they have, what each operation does to them, and what it
 * answers. The words are ours; a test of a move needs its behaviour, not its code.
 */
const OLD = `
local circuit, failures, probes = KEYS[1], KEYS[2], KEYS[3]
local operation, now, member = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local policy = cjson.decode(ARGV[4])
local life = 2 * math.max(policy.windowMs, policy.openDurationMs) + 60000
local state = redis.call('HGET', circuit, 'state') or 'closed'

local function trip()
  redis.call('HSET', circuit, 'state', 'open', 'opened_at', now, 'ho_succ', 0)
  redis.call('DEL', failures, probes)
  redis.call('PEXPIRE', circuit, life)
  return 'open'
end

local function forget(key, older_than) redis.call('ZREMRANGEBYSCORE', key, '-inf', now - older_than) end

if operation == 'getState' then return state end

if operation == 'canRequest' then
  if state == 'open' then
    if now - (tonumber(redis.call('HGET', circuit, 'opened_at')) or 0) < policy.openDurationMs then return 'refused' end
    redis.call('HSET', circuit, 'state', 'half-open', 'ho_succ', 0)
    redis.call('DEL', probes)
    redis.call('PEXPIRE', circuit, life)
    state = 'half-open'
  end
  if state == 'closed' then
    forget(failures, policy.windowMs)
    return 'admitted'
  end
  forget(probes, policy.probeTimeoutMs)
  if redis.call('ZCARD', probes) >= policy.halfOpenMaxCalls then return 'refused' end
  redis.call('ZADD', probes, now, member)
  redis.call('PEXPIRE', probes, life)
  redis.call('PEXPIRE', circuit, life)
  return 'admitted'
end

if operation == 'recordSuccess' then
  if state ~= 'half-open' then return state end
  forget(probes, policy.probeTimeoutMs)
  local newest = redis.call('ZRANGE', probes, -1, -1)[1]
  if newest then redis.call('ZREM', probes, newest) end
  local successes = (tonumber(redis.call('HGET', circuit, 'ho_succ')) or 0) + 1
  if successes >= policy.successThreshold then
    redis.call('DEL', circuit, failures, probes)
    return 'closed'
  end
  redis.call('HSET', circuit, 'ho_succ', successes)
  redis.call('PEXPIRE', circuit, life)
  return state
end

if state == 'open' then return state end
if state == 'half-open' then return trip() end
redis.call('ZADD', failures, now, member)
forget(failures, policy.windowMs)
if redis.call('ZCARD', failures) >= policy.failureThreshold then return trip() end
redis.call('PEXPIRE', failures, life)
return state
`;

/** An instance of NestJS RedisX 1.x: what its service does for one key, on a clock that the test sets. */
export class RedisXInstance {
  private members = 0;

  constructor(
    private readonly redis: Redis,
    /** The circuit's key with its prefix, as it stands between the braces. */
    private readonly key: string,
    private readonly policy: RedisXPolicy,
    private readonly now: () => number,
  ) {}

  async canRequest(): Promise<boolean> {
    return (await this.run("canRequest")) === "admitted";
  }

  async recordSuccess(): Promise<void> {
    await this.run("recordSuccess");
  }

  async recordFailure(): Promise<void> {
    await this.run("recordFailure");
  }

  async getState(): Promise<string> {
    return await this.run("getState");
  }

  async reset(): Promise<void> {
    await this.redis.del(`{${this.key}}`, `{${this.key}}:f`);
  }

  private async run(operation: string): Promise<string> {
    this.members += 1;
    const [now, tag] = [this.now(), `{${this.key}}`];
    const member = `${now}-${this.members.toString(36)}${Math.random().toString(36).slice(2)}`;
    const answer = await this.redis.eval(
      OLD,
      3,
      tag,
      `${tag}:f`,
      `${tag}:p`,
      operation,
      now,
      member,
      JSON.stringify(this.policy),
    );
    return String(answer);
  }
}
