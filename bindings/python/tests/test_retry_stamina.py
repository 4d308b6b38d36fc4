"""Retries by stamina: they end at a refusal, or wait exactly as long as it says.

What stamina is going to sleep it tells its hooks, and then it sleeps: so the waits here are real ones, of milliseconds,
while the circuit's clock is set by what the hook was told.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import pytest
import stamina
import switchgear.redis
import switchgear.redis.asyncio
from redis import Redis
from redis.asyncio import Redis as AsyncRedis
from stamina.instrumentation import RetryDetails, set_on_retry_hooks
from support.clock import ManualClock
from support.servers import Server
from support.stores import Away
from switchgear import CircuitBreaker, CircuitOpenError, StoreUnavailableError

START = 1_000_000
#: How long a store may take: the machine may be busy with other tests.
PATIENT_MS = 10_000
OPEN_MS = 25


class Dependency:
    """Fails so many times, then answers; the clock passes by what stamina says it waits in between."""

    def __init__(self, clock: ManualClock, failures: int) -> None:
        self.clock = clock
        self.failures = failures
        self.calls = 0
        self.waits: list[float] = []

    def answer(self) -> str:
        self.calls += 1
        if self.calls <= self.failures:
            raise ConnectionError("no route")
        return "answered"

    def waiting(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.clock.now += round(seconds * 1000)


def tell(details: RetryDetails) -> None:
    """Hooks are of the process: the retried function's argument says whose retry it is."""
    (dependency,) = details.args
    assert isinstance(dependency, Dependency)
    dependency.waiting(details.wait_for)


@pytest.fixture(autouse=True, scope="module")
def hooks() -> Iterator[None]:
    set_on_retry_hooks([tell])
    yield
    set_on_retry_hooks(None)


def as_told(error: Exception) -> bool | float:
    if isinstance(error, StoreUnavailableError):
        return 0.001
    if isinstance(error, CircuitOpenError):
        return False if error.retry_after is None else error.retry_after
    return 0.0 if isinstance(error, OSError) else False


def test_a_retry_of_what_failed_stops_at_the_refusal() -> None:
    dependency = Dependency(ManualClock(START), failures=100)
    breaker = CircuitBreaker("billing", failure_threshold=3, clock=dependency.clock)

    @stamina.retry(on=OSError, wait_initial=0, wait_jitter=0)
    @breaker
    def ask(dependency: Dependency) -> str:
        return dependency.answer()

    with pytest.raises(CircuitOpenError) as refused:
        ask(dependency)
    assert dependency.calls == 3
    assert dependency.waits == [0.0, 0.0, 0.0]
    assert refused.value.retry_after == 30.0


def test_a_retry_waits_exactly_what_the_refusal_says_and_is_the_probe() -> None:
    dependency = Dependency(ManualClock(START), failures=2)
    breaker = CircuitBreaker("billing", failure_threshold=2, open_duration_ms=OPEN_MS, clock=dependency.clock)
    states: list[tuple[int, str]] = []
    breaker.on("state_change", lambda change: states.append((change.at - START, change.to_state)))

    @stamina.retry(on=as_told)
    @breaker
    def ask(dependency: Dependency) -> str:
        return dependency.answer()

    assert ask(dependency) == "answered"
    assert dependency.calls == 3
    assert dependency.waits == [0.0, 0.0, OPEN_MS / 1000]
    assert states == [(0, "open"), (OPEN_MS, "half-open"), (OPEN_MS, "closed")]


def test_a_retry_one_millisecond_earlier_is_refused_again() -> None:
    dependency = Dependency(ManualClock(START), failures=1)
    breaker = CircuitBreaker("billing", failure_threshold=1, open_duration_ms=OPEN_MS, clock=dependency.clock)

    def hurried(error: Exception) -> bool | float:
        wait = as_told(error)
        return wait if wait is False or wait <= 0.001 else wait - 0.001

    @stamina.retry(on=hurried)
    @breaker
    def ask(dependency: Dependency) -> str:
        return dependency.answer()

    assert ask(dependency) == "answered"
    assert dependency.calls == 2
    assert [round(wait * 1000) for wait in dependency.waits] == [0, OPEN_MS - 1, 1]


def test_a_circuit_that_an_operator_holds_open_ends_the_retry() -> None:
    dependency = Dependency(ManualClock(START), failures=0)
    breaker = CircuitBreaker("billing", clock=dependency.clock)
    breaker.force_open()

    @stamina.retry(on=as_told)
    @breaker
    def ask(dependency: Dependency) -> str:
        return dependency.answer()

    with pytest.raises(CircuitOpenError):
        ask(dependency)
    assert dependency.calls == 0
    assert dependency.waits == []


def test_a_retry_of_a_coroutine_waits_exactly_what_the_refusal_says() -> None:
    dependency = Dependency(ManualClock(START), failures=1)
    breaker = CircuitBreaker("billing", failure_threshold=1, open_duration_ms=OPEN_MS, clock=dependency.clock)

    @stamina.retry(on=as_told)
    @breaker
    async def ask(dependency: Dependency) -> str:
        return dependency.answer()

    assert asyncio.run(ask(dependency)) == "answered"
    assert dependency.calls == 2
    assert dependency.waits == [0.0, OPEN_MS / 1000]


def test_a_retry_of_a_generator_waits_exactly_what_the_refusal_says() -> None:
    dependency = Dependency(ManualClock(START), failures=1)
    breaker = CircuitBreaker("billing", failure_threshold=1, open_duration_ms=OPEN_MS, clock=dependency.clock)

    @stamina.retry(on=as_told)
    @breaker
    def answers(dependency: Dependency) -> Iterator[str]:
        yield dependency.answer()
        yield "and more"

    assert list(answers(dependency)) == ["answered", "and more"]
    assert dependency.waits == [0.0, OPEN_MS / 1000]


def test_a_retry_through_a_shared_circuit_waits_exactly_what_the_refusal_says(redis_server: Server) -> None:
    dependency = Dependency(ManualClock(START), failures=1)
    with shared_breaker(redis_server, dependency) as breaker:

        @stamina.retry(on=as_told)
        @breaker
        def ask(dependency: Dependency) -> str:
            return dependency.answer()

        assert ask(dependency) == "answered"
        assert breaker.get_state() == "closed"
    assert dependency.calls == 2
    assert dependency.waits == [0.0, OPEN_MS / 1000]


def test_a_retry_through_a_shared_circuit_of_asyncio_waits_exactly_what_the_refusal_says(redis_server: Server) -> None:
    dependency = Dependency(ManualClock(START), failures=1)

    async def through_redis() -> str:
        async with (
            AsyncRedis.from_url(redis_server.url) as redis,
            switchgear.redis.asyncio.RedisStore(redis, clock=dependency.clock, timeout_ms=PATIENT_MS) as store,
        ):
            breaker = switchgear.redis.asyncio.DistributedCircuitBreaker(
                name(), store, failure_threshold=1, open_duration_ms=OPEN_MS
            )

            @stamina.retry(on=as_told)
            @breaker
            async def ask(dependency: Dependency) -> str:
                return dependency.answer()

            return await ask(dependency)

    assert asyncio.run(through_redis()) == "answered"
    assert dependency.calls == 2
    assert dependency.waits == [0.0, OPEN_MS / 1000]


@contextmanager
def shared_breaker(
    redis_server: Server, dependency: Dependency
) -> Iterator[switchgear.redis.DistributedCircuitBreaker]:
    with (
        Redis.from_url(redis_server.url) as redis,
        switchgear.redis.RedisStore(redis, clock=dependency.clock, timeout_ms=PATIENT_MS) as store,
    ):
        yield switchgear.redis.DistributedCircuitBreaker(name(), store, failure_threshold=1, open_duration_ms=OPEN_MS)


def name() -> str:
    """One that no other test has: they share the server."""
    return uuid4().hex


def test_a_retry_goes_on_while_the_store_is_away(redis_server: Server) -> None:
    away = Away(2, redis_server.port)
    dependency = Dependency(ManualClock(START), failures=0)
    with away.client:
        breaker = switchgear.redis.DistributedCircuitBreaker(
            name(), switchgear.redis.RedisStore(away, timeout_ms=PATIENT_MS), on_store_failure="fail-closed"
        )

        @stamina.retry(on=as_told)
        @breaker
        def ask(dependency: Dependency) -> str:
            return dependency.answer()

        assert ask(dependency) == "answered"
        assert dependency.waits == [0.001, 0.001]
        assert dependency.calls == 1
