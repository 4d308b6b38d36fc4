"""Makes many circuits in Redis with a library that keeps them there.

`python redis_circuits.py LIBRARY STATE CIRCUITS URL`. Each is made as the library itself makes it, by calls that fail;
interlock-cb writes to Redis where a circuit changes, and not before.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from tasks import failing

FAILURES = {"idle": 0, "active: 4 failures": 4, "open": 5}


def names(circuits: int) -> Iterator[str]:
    return (f"service-{number:06d}" for number in range(circuits))


def make_pybreaker(failures: int, circuits: int, url: str) -> None:
    from pybreaker import STATE_CLOSED, CircuitBreaker, CircuitBreakerError, CircuitRedisStorage
    from redis import Redis

    client = Redis.from_url(url)
    for name in names(circuits):
        breaker = CircuitBreaker(state_storage=CircuitRedisStorage(STATE_CLOSED, client, namespace=name))
        for _ in range(failures):
            with suppress(OSError, CircuitBreakerError):
                breaker.call(failing)


def make_purgatory(failures: int, circuits: int, url: str) -> None:
    async def failing_async() -> None:
        failing()

    async def make() -> None:
        from purgatory import AsyncCircuitBreakerFactory, AsyncRedisUnitOfWork

        factory = AsyncCircuitBreakerFactory(uow=AsyncRedisUnitOfWork(url))
        await factory.initialize()
        for name in names(circuits):
            await factory.get_breaker(name)
            for _ in range(failures):
                with suppress(OSError):
                    await factory(name)(failing_async)()

    asyncio.run(make())


def make_interlock(failures: int, circuits: int, url: str) -> None:
    from interlock.integrations.redis import RedisStorage
    from redis import Redis

    storage = RedisStorage(Redis.from_url(url))
    for name in names(circuits):
        if failures < 5:
            # What a closed breaker does: it looks once a second.
            storage.read(name)
        else:
            storage.trip_open(name=name, ttl=storage.state_ttl)


MAKERS: dict[str, Any] = {
    "pybreaker 1": make_pybreaker,
    "purgatory 3": make_purgatory,
    "interlock-cb 2": make_interlock,
}

GROUPS = dict.fromkeys(MAKERS, FAILURES)


def main(library: str, state: str, circuits: str, url: str) -> None:
    MAKERS[library](FAILURES[state], int(circuits), url)


if __name__ == "__main__":
    main(*sys.argv[1:])
