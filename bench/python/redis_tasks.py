"""What is measured in a Python process that shares its circuits through the Redis at BENCH_REDIS_URL, with redis-py.

Each task imports only what it measures, and gives a function that makes one call; a task of asyncio is itself awaited.
Every breaker is as its library makes it without options. Of the libraries, circuitbreaker keeps no circuit in Redis.
pybreaker has no asyncio. purgatory has no threads here: its repository for them makes an asyncio client, and fails at
the first call. interlock-cb asks Redis once a second in the background, and decides what comes between by what it has
heard: so does what is called `closed_cache_ms`.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from time import time
from typing import Any

from tasks import AsyncCall, SyncCall, executed, executed_async, healthy, healthy_async, switchgear

URL = os.environ.get("BENCH_REDIS_URL", "")
BARE = "return 1"
KEY = "{cb:bench}"
CACHE_MS = 1000
# The scheme that switchgear does without: one script asks before the call, another one reports after it. They are those
# of two-scripts.mjs, which says more of them.
TWO_KEYS = ("{two:bench}", "{two:bench}:failures")
OPEN_MS = 30_000
ASK = """
local state = redis.call('HMGET', KEYS[1], 'state', 'opened_at')
if state[1] ~= 'open' then return 1 end
if tonumber(ARGV[1]) - tonumber(state[2]) < tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], 'state', 'half-open')
return 1"""
REPORT_SUCCESS = """
if redis.call('HGET', KEYS[1], 'state') == 'half-open' then redis.call('DEL', KEYS[1], KEYS[2]) end
return 1"""
# Nothing is measured while the machine is too busy to answer.
PATIENT = {"timeout_ms": 5000}


def client() -> Any:
    from redis import Redis

    return Redis.from_url(URL)


def async_client() -> Any:
    from redis.asyncio import Redis

    return Redis.from_url(URL)


def bare() -> SyncCall:
    redis = client()
    digest = redis.script_load(BARE)
    return lambda: redis.evalsha(digest, 1, KEY, int(time() * 1000))


async def bare_async() -> AsyncCall:
    redis = async_client()
    digest = await redis.script_load(BARE)
    return lambda: redis.evalsha(digest, 1, KEY, int(time() * 1000))


def shared(**policy: Any) -> Any:
    from switchgear.redis import DistributedCircuitBreaker, RedisStore

    return DistributedCircuitBreaker("bench", RedisStore(client(), **PATIENT), **policy)


async def shared_async(**policy: Any) -> AsyncCall:
    from switchgear.redis.asyncio import DistributedCircuitBreaker, RedisStore

    breaker = DistributedCircuitBreaker("bench", RedisStore(async_client(), **PATIENT), **policy)
    return executed_async(breaker)


async def local_async() -> AsyncCall:
    return executed_async(switchgear())


def two_scripts() -> SyncCall:
    redis = client()
    ask, report = (redis.script_load(script) for script in (ASK, REPORT_SUCCESS))

    def call() -> str:
        if redis.evalsha(ask, 1, TWO_KEYS[0], int(time() * 1000), OPEN_MS) != 1:
            raise RuntimeError("refused")
        value = healthy()
        redis.evalsha(report, 2, *TWO_KEYS)
        return value

    return call


async def two_scripts_async() -> AsyncCall:
    redis = async_client()
    ask, report = [await redis.script_load(script) for script in (ASK, REPORT_SUCCESS)]

    async def call() -> str:
        if await redis.evalsha(ask, 1, TWO_KEYS[0], int(time() * 1000), OPEN_MS) != 1:
            raise RuntimeError("refused")
        value = await healthy_async()
        await redis.evalsha(report, 2, *TWO_KEYS)
        return value

    return call


def pybreaker() -> SyncCall:
    from pybreaker import STATE_CLOSED, CircuitBreaker, CircuitRedisStorage

    breaker = CircuitBreaker(state_storage=CircuitRedisStorage(STATE_CLOSED, client()))
    return partial(breaker.call, healthy)


async def purgatory_async() -> AsyncCall:
    from purgatory import AsyncCircuitBreakerFactory, AsyncRedisUnitOfWork

    factory = AsyncCircuitBreakerFactory(uow=AsyncRedisUnitOfWork(URL))
    await factory.initialize()
    guarded: AsyncCall = factory("bench")(healthy_async)
    return guarded


def interlock() -> SyncCall:
    from interlock import CircuitBreaker
    from interlock.integrations.redis import RedisStorage

    return partial(CircuitBreaker(name="bench", storage=RedisStorage(client())).call, healthy)


async def interlock_async() -> AsyncCall:
    from interlock import CircuitBreaker
    from interlock.integrations.redis import AsyncRedisStorage

    return partial(CircuitBreaker(name="bench", storage=AsyncRedisStorage(async_client())).call, healthy_async)


SYNC: dict[str, Callable[[], SyncCall]] = {
    "bare EVALSHA, one key": bare,
    "switchgear, guarded success": lambda: executed(shared()),
    "two scripts, guarded success": two_scripts,
    "switchgear, closed_cache_ms": lambda: executed(shared(closed_cache_ms=CACHE_MS)),
    "switchgear, local": lambda: executed(switchgear()),
    "pybreaker 1": pybreaker,
    "interlock-cb 2": interlock,
}

ASYNCIO: dict[str, Callable[[], Awaitable[AsyncCall]]] = {
    "bare EVALSHA, one key": bare_async,
    "switchgear, guarded success": shared_async,
    "two scripts, guarded success": two_scripts_async,
    "switchgear, closed_cache_ms": lambda: shared_async(closed_cache_ms=CACHE_MS),
    "switchgear, local": local_async,
    "purgatory 3": purgatory_async,
    "interlock-cb 2": interlock_async,
}

CROWD: dict[str, Callable[[], Awaitable[AsyncCall]]] = {
    "bare EVALSHA, one key": bare_async,
    "switchgear, guarded success": shared_async,
    "two scripts, guarded success": two_scripts_async,
    "purgatory 3": purgatory_async,
}

GROUPS = {"sync": SYNC, "asyncio": ASYNCIO, "crowd": CROWD}

IN_FLIGHT = {"crowd": int(os.environ.get("BENCH_IN_FLIGHT", "1"))}
