"""The Python process of part 2: what fleet-process.mjs is, on the same circuit in the same Redis."""

from __future__ import annotations

import json
import sys
import time
from urllib.error import HTTPError
from urllib.request import urlopen

from redis import Redis
from switchgear import CircuitBreaker, CircuitOpenError, Policy, StateChange
from switchgear.redis import DistributedCircuitBreaker, RedisStore

# The same policy as that of the processes in Node.
POLICY: Policy = {"failure_threshold": 5, "open_duration_ms": 1000}

instance, redis_url, url, shared = sys.argv[1:]


def say(**message: object) -> None:
    """One line to the parent."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def on_change(change: StateChange) -> None:
    say(
        change={
            "fromState": change.from_state,
            "toState": change.to_state,
            "at": change.at,
            "reason": change.reason,
            "failures": change.failures,
            "openMs": change.open_ms,
            "instance": change.instance,
        }
    )


def charge() -> str:
    """Calls the dependency."""
    try:
        with urlopen(url) as response:
            return f"HTTP {response.read().decode()}"
    except HTTPError as error:
        raise RuntimeError(f"HTTP {error.code}") from error


def guarded_call() -> dict[str, object]:
    """Calls the dependency through the breaker; what became of it, as guardedCall in call.mjs says it."""
    begin = time.perf_counter()
    try:
        told: dict[str, object] = {"outcome": "answered", "text": breaker.execute(charge)}
    except CircuitOpenError as refusal:
        told = {"outcome": "refused", "text": str(refusal), "retryAfterMs": refusal.retry_after_ms}
    except RuntimeError as error:
        told = {"outcome": "failed", "text": str(error)}
    return {**told, "ms": (time.perf_counter() - begin) * 1000}


client = Redis.from_url(redis_url)
# The deadline is far beyond the default: how busy this machine is shall not decide what the demo shows. Nor shall
# it decide how well each process knows the server's time: all of them are on one host, which has one clock.
store = RedisStore(client, instance=instance, timeout_ms=20_000, clock="system")
breaker: CircuitBreaker | DistributedCircuitBreaker = (
    DistributedCircuitBreaker("billing", store, **POLICY) if shared == "shared" else CircuitBreaker("billing", **POLICY)
)
breaker.on("state_change", on_change)
client.ping()
say(ready=True)

# Until the parent closes its end.
for line in sys.stdin:
    say(call=json.loads(line)["call"], result=guarded_call())
client.close()
