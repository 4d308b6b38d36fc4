"""The same as support/world.py, for calls that are awaited."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeAlias
from uuid import uuid4

from redis.asyncio import Redis
from support.clock import ManualClock
from support.servers import Server
from support.stores import PATIENT
from switchgear import CircuitBreaker, Snapshot
from switchgear.redis.asyncio import DistributedCircuitBreaker, RedisStore

AnyAsyncBreaker: TypeAlias = "CircuitBreaker | DistributedCircuitBreaker"


@dataclass(frozen=True)
class AsyncWorld:
    """Where a scenario takes place."""

    clock: ManualClock
    breaker: Callable[..., AnyAsyncBreaker]
    """Another breaker on the clock, each of a circuit of its own; takes a policy."""

    async def tripped(self, **policy: Any) -> AnyAsyncBreaker:
        """A breaker that was tripped, at the moment when probes are admitted."""
        breaker = self.breaker(**{"failure_threshold": 1, "open_duration_ms": 1000, **policy})
        await answer(breaker.trip())
        self.clock.now += 1000
        return breaker


@asynccontextmanager
async def local_async_world() -> AsyncIterator[AsyncWorld]:
    clock = ManualClock()
    yield AsyncWorld(clock, lambda **policy: CircuitBreaker("c", **policy, clock=clock))


@asynccontextmanager
async def shared_async_world(server: Server) -> AsyncIterator[AsyncWorld]:
    clock = ManualClock()
    names = (f"{uuid4()}-{number}" for number in count())
    client = Redis(port=server.port)
    try:
        store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
        yield AsyncWorld(clock, lambda **policy: DistributedCircuitBreaker(next(names), store, **policy))
    finally:
        await client.aclose()


async def answer(given: Any) -> Any:
    """What a local breaker says at once, and a shared one when it is awaited."""
    return await given if inspect.isawaitable(given) else given


async def snapshot_of(breaker: AnyAsyncBreaker) -> Snapshot:
    snapshot = await answer(breaker.get_snapshot())
    assert isinstance(snapshot, Snapshot)
    return snapshot
