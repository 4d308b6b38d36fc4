"""Retries by tenacity: they end at a refusal, or sleep exactly as long as it says."""

import asyncio
from collections.abc import Awaitable, Callable
from uuid import uuid4

import pytest
import switchgear.redis
import switchgear.redis.asyncio
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from support.clock import ManualClock
from support.servers import Server
from support.stores import Away
from switchgear import CircuitBreaker, CircuitOpenError, Refusal
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    Retrying,
    retry_if_exception,
    retry_if_exception_type,
    retry_if_not_exception_type,
    stop_after_attempt,
    wait_fixed,
)

START = 1_000_000
#: How long a store may take: the machine may be busy with other tests.
PATIENT_MS = 10_000


class Dependency:
    """Fails so many times, then answers."""

    def __init__(self, failures: int) -> None:
        self.failures = failures
        self.calls = 0

    def __call__(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError("no route")
        return "answered"


class Sleep:
    """Notes what it is told to sleep, and lets the clock pass by that much."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.slept: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.now += round(seconds * 1000)

    async def in_a_coroutine(self, seconds: float) -> None:
        self(seconds)


def wait_as_told(state: RetryCallState) -> float:
    assert state.outcome is not None
    error = state.outcome.exception()
    if isinstance(error, Refusal) and error.retry_after is not None:
        return error.retry_after
    return 0.5


def worth_another_try(error: BaseException) -> bool:
    if isinstance(error, CircuitOpenError):
        return error.retry_after is not None
    return isinstance(error, OSError)


def test_a_retry_of_what_failed_stops_at_the_refusal() -> None:
    clock = ManualClock(START)
    breaker = CircuitBreaker("billing", failure_threshold=3, clock=clock)
    dependency = Dependency(failures=100)
    sleep = Sleep(clock)
    retrying = Retrying(
        retry=retry_if_exception_type(OSError),
        wait=wait_fixed(0.5),
        stop=stop_after_attempt(10),
        sleep=sleep,
        reraise=True,
    )
    with pytest.raises(CircuitOpenError) as refused:
        retrying(breaker.execute, dependency)
    assert dependency.calls == 3
    assert sleep.slept == [0.5, 0.5, 0.5]
    assert refused.value.retry_after == 29.5
    assert refused.value.last_failure == "no route"


def test_a_retry_of_everything_but_a_refusal_stops_at_it() -> None:
    clock = ManualClock(START)
    breaker = CircuitBreaker("billing", failure_threshold=2, clock=clock)
    dependency = Dependency(failures=100)
    retrying = Retrying(retry=retry_if_not_exception_type(CircuitOpenError), sleep=Sleep(clock), reraise=True)
    with pytest.raises(CircuitOpenError):
        retrying(breaker.execute, dependency)
    assert dependency.calls == 2


def test_a_retry_waits_exactly_what_the_refusal_says_and_is_the_probe() -> None:
    clock = ManualClock(START)
    breaker = CircuitBreaker("billing", failure_threshold=2, open_duration_ms=30_000, clock=clock)
    states: list[tuple[int, str]] = []
    breaker.on("state_change", lambda change: states.append((change.at - START, change.to_state)))
    dependency = Dependency(failures=2)
    sleep = Sleep(clock)
    retrying = Retrying(retry=retry_if_exception(worth_another_try), wait=wait_as_told, sleep=sleep, reraise=True)
    assert retrying(breaker.execute, dependency) == "answered"
    assert dependency.calls == 3
    # Half a second after each failure; the circuit opened at the second one, 500 ms in.
    assert sleep.slept == [0.5, 0.5, 29.5]
    assert states == [(500, "open"), (30_500, "half-open"), (30_500, "closed")]


def test_a_retry_one_millisecond_earlier_is_refused_again() -> None:
    clock = ManualClock(START)
    breaker = CircuitBreaker("billing", failure_threshold=1, open_duration_ms=30_000, clock=clock)
    dependency = Dependency(failures=1)
    hurried = True

    def wait(state: RetryCallState) -> float:
        nonlocal hurried
        seconds = wait_as_told(state)
        if hurried and seconds > 0.5:
            hurried = False
            return seconds - 0.001
        return seconds

    sleep = Sleep(clock)
    retrying = Retrying(retry=retry_if_exception(worth_another_try), wait=wait, sleep=sleep, reraise=True)
    assert retrying(breaker.execute, dependency) == "answered"
    assert dependency.calls == 2
    assert sleep.slept == [0.5, 29.499, 0.001]


def test_a_probe_that_fails_makes_the_retry_wait_the_next_opening() -> None:
    clock = ManualClock(START)
    breaker = CircuitBreaker("billing", failure_threshold=1, open_duration_ms=1_000, open_backoff=2, clock=clock)
    dependency = Dependency(failures=3)
    sleep = Sleep(clock)
    retrying = Retrying(retry=retry_if_exception(worth_another_try), wait=wait_as_told, sleep=sleep, reraise=True)
    assert retrying(breaker.execute, dependency) == "answered"
    assert sleep.slept == [0.5, 0.5, 0.5, 1.5, 0.5, 3.5]


def test_a_circuit_that_an_operator_holds_open_ends_the_retry() -> None:
    clock = ManualClock(START)
    breaker = CircuitBreaker("billing", clock=clock)
    breaker.force_open()
    sleep = Sleep(clock)
    retrying = Retrying(retry=retry_if_exception(worth_another_try), wait=wait_as_told, sleep=sleep, reraise=True)
    with pytest.raises(CircuitOpenError) as refused:
        retrying(breaker.execute, Dependency(failures=0))
    assert refused.value.retry_after is None
    assert sleep.slept == []


def test_a_breaker_around_the_retry_counts_the_whole_series_once() -> None:
    clock = ManualClock(START)
    breaker = CircuitBreaker("billing", failure_threshold=2, clock=clock)
    dependency = Dependency(failures=100)

    @breaker
    def persistent() -> str:
        retrying = Retrying(stop=stop_after_attempt(4), wait=wait_fixed(0.5), sleep=Sleep(clock), reraise=True)
        return retrying(dependency)

    with pytest.raises(ConnectionError):
        persistent()
    assert dependency.calls == 4
    assert breaker.get_snapshot().failures_in_window == 1


def test_a_retry_of_a_coroutine_waits_exactly_what_the_refusal_says() -> None:
    clock = ManualClock(START)
    breaker = CircuitBreaker("billing", failure_threshold=1, open_duration_ms=30_000, clock=clock)
    dependency = Dependency(failures=1)
    sleep = Sleep(clock)

    @breaker
    async def ask() -> str:
        return dependency()

    assert asyncio.run(persistently(ask, sleep)) == "answered"
    assert dependency.calls == 2
    assert sleep.slept == [0.5, 29.5]


def test_a_retry_through_a_shared_circuit_waits_exactly_what_the_refusal_says(redis_server: Server) -> None:
    clock = ManualClock(START)
    dependency = Dependency(failures=1)
    sleep = Sleep(clock)
    with (
        Redis.from_url(redis_server.url) as redis,
        switchgear.redis.RedisStore(redis, clock=clock, timeout_ms=PATIENT_MS) as store,
    ):
        breaker = switchgear.redis.DistributedCircuitBreaker(name(), store, failure_threshold=1)
        retrying = Retrying(retry=retry_if_exception(worth_another_try), wait=wait_as_told, sleep=sleep, reraise=True)
        assert retrying(breaker.execute, dependency) == "answered"
        assert breaker.get_state() == "closed"
    assert dependency.calls == 2
    assert sleep.slept == [0.5, 29.5]


def test_a_retry_through_a_shared_circuit_of_asyncio_waits_exactly_what_the_refusal_says(redis_server: Server) -> None:
    clock = ManualClock(START)
    dependency = Dependency(failures=1)
    sleep = Sleep(clock)

    async def through_redis() -> str:
        async with (
            AsyncRedis.from_url(redis_server.url) as redis,
            switchgear.redis.asyncio.RedisStore(redis, clock=clock, timeout_ms=PATIENT_MS) as store,
        ):
            breaker = switchgear.redis.asyncio.DistributedCircuitBreaker(name(), store, failure_threshold=1)

            @breaker
            async def ask() -> str:
                return dependency()

            return await persistently(ask, sleep)

    assert asyncio.run(through_redis()) == "answered"
    assert dependency.calls == 2
    assert sleep.slept == [0.5, 29.5]


async def persistently(ask: Callable[[], Awaitable[str]], sleep: Sleep) -> str:
    retrying = AsyncRetrying(
        retry=retry_if_exception(worth_another_try), wait=wait_as_told, sleep=sleep.in_a_coroutine, reraise=True
    )
    return await retrying(ask)


def name() -> str:
    """One that no other test has: they share the server."""
    return uuid4().hex


def test_a_retry_waits_as_after_any_error_while_the_store_is_away(redis_server: Server) -> None:
    away = Away(2, redis_server.port)
    with away.client:
        breaker = switchgear.redis.DistributedCircuitBreaker(
            name(), switchgear.redis.RedisStore(away, timeout_ms=PATIENT_MS), on_store_failure="fail-closed"
        )
        sleep = Sleep(ManualClock(START))
        retrying = Retrying(
            retry=retry_if_exception_type((OSError, Refusal)),
            wait=wait_as_told,
            stop=stop_after_attempt(5),
            sleep=sleep,
            reraise=True,
        )
        assert retrying(breaker.execute, lambda: "answered") == "answered"
        assert sleep.slept == [0.5, 0.5]
