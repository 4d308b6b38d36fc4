"""The path of a shared circuit that is known to be closed, on the host's own clock: it takes no decision of its own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Any, TypeAlias, TypeVar

import pytest
import redis
import switchgear.redis.asyncio
from support.calls import BoomError, fail, names_of, ok, questions, refused
from support.servers import Server
from support.stores import PATIENT, name
from switchgear import CircuitOpenError
from switchgear.redis import DistributedCircuitBreaker, RedisStore

T = TypeVar("T")

pytestmark = pytest.mark.thread_unsafe(reason="the tests count the commands of a client")

Call: TypeAlias = "Callable[[Any, Any, Callable[[], Any]], Any]"

LONG = 600_000
"""Milliseconds for which nothing has to be asked in any test."""


def executed(side: Any, breaker: Any, fn: Callable[[], T]) -> T:
    answer: T = side.run(breaker, fn)
    return answer


def decorated(side: Any, breaker: Any, fn: Callable[[], T]) -> T:
    answer: T = side.decorated(breaker, fn)()
    return answer


@pytest.fixture(params=[executed, decorated])
def call(request: pytest.FixtureRequest) -> Call:
    """A way into a breaker."""
    param: Call = request.param
    return param


def known(side: Any, client: Any = None, **policy: Any) -> Any:
    """A breaker whose circuit is known to be closed, for long."""
    client = side.tapped() if client is None else client
    breaker = side.breaker(name(), side.store(client, timeout_ms=PATIENT), closed_cache_ms=LONG, **policy)
    side.run(breaker, ok)
    client.sent.clear()
    return breaker


def _given(value: object) -> object:
    return value


def test_a_success_sends_nothing(side: Any, call: Call) -> None:
    client = side.tapped()
    breaker = known(side, client)
    values: tuple[object, ...] = ("ok", None, 7, b"", [], {}, (), object, Exception("a value"), frozenset({1}))
    for value in values:
        assert call(side, breaker, partial(_given, value)) is value
    assert names_of(client) == []


def test_a_failure_is_told_and_ends_it(side: Any, call: Call) -> None:
    client = side.tapped()
    breaker = known(side, client, failure_threshold=2)
    for _ in range(2):
        with pytest.raises(BoomError):
            call(side, breaker, fail)
    assert questions(client) == ["EVALSHA", "EVALSHA"]
    assert str(refused(side, breaker).last_failure) == "BoomError"
    with pytest.raises(CircuitOpenError):
        call(side, breaker, ok)
    other = side.breaker(breaker.name, side.store(timeout_ms=PATIENT))
    assert side.do(other.get_state) == "open"


@pytest.mark.parametrize("ended", [KeyboardInterrupt, SystemExit])
def test_what_is_neutral_counts_nowhere(side: Any, call: Call, ended: type[BaseException]) -> None:
    breaker = known(side, failure_threshold=1)

    def end() -> None:
        raise ended

    with pytest.raises(ended):
        call(side, breaker, end)
    assert call(side, breaker, ok) == "ok"


def test_errors_are_classified_as_ever(side: Any, call: Call) -> None:
    breaker = known(side, failure_threshold=1, ignore=(LookupError,), is_failure=lambda error: str(error) != "fine")
    for error in (KeyError("a"), BoomError("fine")):

        def give(error: Exception = error) -> None:
            raise error

        with pytest.raises(type(error)):
            call(side, breaker, give)
    assert call(side, breaker, ok) == "ok"
    with pytest.raises(BoomError):
        call(side, breaker, fail)
    refused(side, breaker)


def test_results_are_classified_as_ever(side: Any, call: Call) -> None:
    breaker = known(side, failure_threshold=1, is_failure_result=lambda result: result == "bad")
    assert call(side, breaker, lambda: "bad") == "bad"
    refused(side, breaker)


def test_whoever_listens_hears_of_each_call(side: Any, call: Call) -> None:
    breaker = known(side)
    heard: list[str] = []
    off = [breaker.on(event, lambda _, event=event: heard.append(event)) for event in ("success", "failure")]
    call(side, breaker, ok)
    with pytest.raises(BoomError):
        call(side, breaker, fail)
    for end in off:
        end()
    call(side, breaker, ok)
    assert heard == ["success", "failure"]


@pytest.mark.parametrize("trip_on", ["consecutive", "rate"])
def test_where_successes_count_they_are_told(side: Any, call: Call, trip_on: str) -> None:
    client = side.tapped()
    policy: dict[str, Any] = {"trip_on": trip_on}
    if trip_on == "rate":
        policy |= {"failure_rate": 0.9, "minimum_calls": 2}
    breaker = known(side, client, **policy)
    with pytest.raises(BoomError):
        call(side, breaker, fail)
    sent = len(client.sent)
    call(side, breaker, ok)
    side.until(lambda: len(client.sent) > sent)


def test_what_this_process_decides_holds_at_once(side: Any, call: Call) -> None:
    breaker = known(side)
    for operation in (breaker.trip, breaker.force_open):
        side.do(operation)
        with pytest.raises(CircuitOpenError):
            call(side, breaker, ok)
        side.do(breaker.reset)
        assert call(side, breaker, ok) == "ok"
    side.do(breaker.disable)
    for _ in range(3):
        with pytest.raises(BoomError):
            call(side, breaker, fail)
    assert side.do(breaker.get_state) == "closed"


def test_it_ends_after_closed_cache_ms(side: Any, call: Call) -> None:
    client = side.tapped()
    store = side.store(client, timeout_ms=PATIENT)
    breaker = side.breaker(name(), store, closed_cache_ms=1)
    call(side, breaker, ok)

    def asked() -> bool:
        client.sent.clear()
        call(side, breaker, ok)
        return bool(client.sent)

    side.until(asked)
    side.until(asked)


def test_what_cannot_be_called_is_refused_and_counts_nowhere(side: Any) -> None:
    breaker = known(side, failure_threshold=1)
    with pytest.raises(TypeError, match="must be callable, got 7"):
        side.do(breaker.execute, 7)
    assert side.run(breaker, ok) == "ok"


@pytest.fixture
def client(redis_server: Server) -> Iterator[redis.Redis]:
    with redis.Redis(port=redis_server.port) as client:
        yield client


def closed(client: redis.Redis, **policy: Any) -> DistributedCircuitBreaker:
    """The same for sync code, without a tap."""
    breaker = DistributedCircuitBreaker(
        name(), RedisStore(client, timeout_ms=PATIENT), closed_cache_ms=LONG, failure_threshold=1, **policy
    )
    breaker.execute(ok)
    return breaker


@asynccontextmanager
async def closed_awaiting(server: Server) -> AsyncIterator[switchgear.redis.asyncio.DistributedCircuitBreaker]:
    """The same for asyncio."""
    async with (
        redis.asyncio.Redis(port=server.port) as client,
        switchgear.redis.asyncio.RedisStore(client, timeout_ms=PATIENT) as store,
    ):
        breaker = switchgear.redis.asyncio.DistributedCircuitBreaker(
            name(), store, closed_cache_ms=LONG, failure_threshold=1
        )
        await breaker.execute(ok)
        yield breaker


@pytest.mark.parametrize("way", ["execute", "decorator"])
def test_what_would_have_to_be_awaited_is_refused_by_the_sync_entry(client: redis.Redis, way: str) -> None:
    breaker = closed(client)

    async def answer() -> str:
        return "ok"

    def give() -> Any:
        return answer()

    with pytest.raises(TypeError, match=r"switchgear\.redis\.asyncio\.DistributedCircuitBreaker"):
        breaker.execute(give) if way == "execute" else breaker(give)()
    assert breaker.execute(ok) == "ok"


def test_a_generator_is_guarded_until_it_ends(client: redis.Redis) -> None:
    breaker = closed(client)

    def steps() -> Iterator[int]:
        yield 1
        raise BoomError

    def give() -> Any:
        return steps()

    ways: list[Callable[[], Any]] = [lambda: breaker.execute(steps), breaker(give)]
    for way in ways:
        given = way()
        assert next(given) == 1
        assert breaker.execute(ok) == "ok"
        with pytest.raises(BoomError):
            next(given)
        assert breaker.get_state() == "open"
        breaker.reset()
        breaker.execute(ok)


def test_an_async_generator_is_guarded_until_it_ends(redis_server: Server) -> None:
    async def steps() -> AsyncIterator[int]:
        yield 1
        raise BoomError

    async def main() -> None:
        async with closed_awaiting(redis_server) as breaker:
            given = await breaker.execute(steps)
            assert await anext(given) == 1
            assert await breaker.execute(ok) == "ok"
            with pytest.raises(BoomError):
                await anext(given)
            assert await breaker.get_state() == "open"

    asyncio.run(main())


def test_a_cancelled_call_counts_nowhere(redis_server: Server) -> None:
    async def main() -> None:
        async with closed_awaiting(redis_server) as breaker:
            inside = asyncio.Event()

            async def hang() -> None:
                inside.set()
                await asyncio.Event().wait()

            ways: list[Callable[[], Awaitable[None]]] = [lambda: breaker.execute(hang), breaker(hang)]
            for way in ways:
                inside.clear()
                task = asyncio.ensure_future(way())
                await inside.wait()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert await breaker.execute(ok) == "ok"

    asyncio.run(main())


def test_an_outcome_of_before_a_reset_is_stale(client: redis.Redis) -> None:
    breaker = closed(client)

    def reset_and_fail() -> None:
        breaker.reset()
        raise BoomError

    with pytest.raises(BoomError):
        breaker.execute(reset_and_fail)
    with pytest.raises(BoomError):
        breaker(reset_and_fail)()
    assert breaker.execute(ok) == "ok"
    assert breaker.get_snapshot().failures_in_window == 0


def test_threads_see_its_end_together(client: redis.Redis) -> None:
    breaker = closed(client)
    guarded = breaker(ok)
    stop = threading.Event()
    seen: list[str] = []

    def run() -> None:
        # Whatever the other threads do: a call that begins after the trip is refused.
        while not stop.is_set():
            tripped = is_open
            try:
                guarded()
            except CircuitOpenError:
                seen.append("refused")
            else:
                if tripped:
                    seen.append("let through")

    is_open = False
    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    breaker.force_open()
    is_open = True
    while len(seen) < 100:
        time.sleep(0.001)
    stop.set()
    for thread in threads:
        thread.join()
    assert set(seen) == {"refused"}


def test_it_is_taken_where_nothing_more_is_to_be_known_of_a_call(side: Any) -> None:
    def is_hot(breaker: Any) -> bool:
        return breaker._circuit.hints.hot is not None

    breaker = known(side)
    assert is_hot(breaker)
    off = breaker.on("success", lambda _: None)
    assert not is_hot(breaker)
    off()
    assert is_hot(breaker)
    side.do(breaker.trip)
    assert not is_hot(breaker)
    for policy in (
        {"slow_call_ms": 1000},
        {"is_failure_result": lambda _: False},
        {"trip_on": "consecutive"},
        {"clock": lambda: 1_700_000_000_000},
    ):
        assert not is_hot(known(side, **policy))
