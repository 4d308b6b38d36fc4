"""What a process of a fleet does: in a module of its own, so that it can be started by name."""

from __future__ import annotations

import sys

import redis
from support.clock import ManualClock
from support.stores import PATIENT
from switchgear.redis import DistributedCircuitBreaker, RedisStore


def ask_for_a_probe(port: int, circuit: str, now: int) -> None:
    """Ends with 11 if it got one, with 10 if not."""
    with redis.Redis(port=port) as client:
        store = RedisStore(client, clock=ManualClock(now), timeout_ms=PATIENT)
        breaker = DistributedCircuitBreaker(circuit, store, open_duration_ms=1000, half_open_max_calls=2)
        granted = breaker.can_execute()
    sys.exit(10 + granted)
