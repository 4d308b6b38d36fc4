"""A call that the hints let through is like one that has to ask: the same result, error and counts."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator
from typing import Any
from unittest.mock import AsyncMock, MagicMock

import pytest
import redis
import redis.asyncio
import switchgear.redis
import switchgear.redis.asyncio
from support.servers import Server
from support.stores import PATIENT, name
from switchgear import CircuitBreaker, CircuitOpenError

pytestmark = pytest.mark.thread_unsafe(reason="one pass through all callables is enough")

LONG = 600_000


class BoomError(Exception):
    """Counts."""


class FineError(Exception):
    """Does not count."""


class Unhashable(type):
    def __eq__(cls, other: object) -> bool:
        return NotImplemented

    __hash__ = None  # type: ignore[assignment]  # as Python itself sets it


class Raising(type):
    def __getattr__(cls, name: str) -> Any:
        raise RuntimeError(name)


class Agreeing(type):
    def __getattr__(cls, name: str) -> Any:
        return lambda *_: iter(())


class OfUnhashable(metaclass=Unhashable):
    pass


class OfRaising(metaclass=Raising):
    pass


class OfAgreeing(metaclass=Agreeing):
    pass


class Text(str):
    """Not quite plain."""

    __slots__ = ()


class Later:
    """Gives its result when it is awaited."""

    def __await__(self) -> Generator[Any, Any, str]:
        yield from ()
        return "later"


VALUES: tuple[object, ...] = (
    *(None, True, 7, 0.5, "text", b"bytes", [], {}, (), set()),
    *(object(), Text("t"), int, BoomError("a value"), OfUnhashable(), OfUnhashable, OfRaising(), OfAgreeing()),
    *(MagicMock(), iter([1]), NotImplemented, Ellipsis),
)


def boom() -> None:
    raise BoomError("boom")


def boom_because() -> None:
    try:
        raise KeyError("first")
    except KeyError as error:
        raise BoomError("second") from error


def boom_meanwhile() -> None:
    try:
        raise KeyError("first")
    except KeyError:
        raise BoomError("second")  # noqa: B904 - that is what is shown


def fine() -> None:
    raise FineError


def raiser(kind: type[BaseException]) -> Callable[[], None]:
    def give() -> None:
        raise kind

    return give


def of_another() -> None:
    raise CircuitOpenError("another", "open")


class Callables:
    """What there is to guard."""

    def method(self) -> str:
        return "method"

    def __call__(self) -> str:
        return "called"

    @classmethod
    def of_class(cls) -> str:
        return cls.__name__

    def fails(self) -> None:
        raise BoomError("method")


def steps() -> Iterator[int]:
    yield 1
    yield 2


def failing_steps() -> Iterator[int]:
    yield 1
    raise BoomError("steps")


async def answer() -> str:
    return "answer"


async def async_steps() -> AsyncIterator[int]:
    yield 1
    yield 2


async def failing_async_steps() -> AsyncIterator[int]:
    yield 1
    raise BoomError("async steps")


def mark(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a function as one whose result is to be awaited, whatever it gives."""
    if sys.version_info >= (3, 12):
        return inspect.markcoroutinefunction(fn)
    fn._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined]  # older Pythons have it
    return fn


def giving(fn: Callable[[], Any]) -> Callable[[], Any]:
    """A plain function that gives what another kind of callable gives."""

    def give() -> Any:
        return fn()

    return give


FAILING = (boom, boom_because, boom_meanwhile, fine, of_another, Callables().fails)
KINDS = (KeyboardInterrupt, SystemExit, StopIteration, StopAsyncIteration, GeneratorExit, RecursionError, MemoryError)
SYNC: tuple[Any, ...] = (
    *(functools.partial(lambda value: value, value) for value in VALUES),
    *FAILING,
    *map(raiser, KINDS),
    *(Callables().method, Callables(), Callables.of_class, Callables, functools.partial(int, "x"), lambda: 1 // 0),
    *(lambda _missing: None, steps, failing_steps, giving(steps), giving(failing_steps), giving(async_steps)),
    *(answer, giving(answer), giving(Later), 7, None, "text"),
)


def awaited(fn: Callable[[], Any]) -> Callable[[], Awaitable[Any]]:
    """The same, as a coroutine function."""

    async def give() -> Any:
        await asyncio.sleep(0)
        return fn()

    return give


ASYNC: tuple[Any, ...] = (
    *(awaited(functools.partial(lambda value: value, value)) for value in VALUES),
    *map(awaited, FAILING),
    *(awaited(raiser(kind)) for kind in (*KINDS[3:], asyncio.CancelledError)),
    *(
        answer,
        functools.partial(answer),
        giving(Later),
        mark(giving(Later)),
        async_steps,
        failing_async_steps,
        giving(async_steps),
        awaited(steps),
    ),
    *(AsyncMock(return_value=5), AsyncMock(side_effect=BoomError), mark(lambda: 5), mark(giving(steps))),
    *(mark(giving(boom)), mark(giving(async_steps)), 7, None),
    *(boom, lambda: "at once", steps, failing_steps, lambda _missing: None),
)


def told(error: BaseException, seen: int = 0) -> tuple[object, ...]:
    """What an error says: itself, where it comes from, and what it came of."""
    frames = [
        frame.name for frame in traceback.extract_tb(error.__traceback__) if frame.filename == __file__ and not seen
    ]
    linked = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return (type(error), str(error), frames[1:], told(linked, seen + 1) if linked is not None and seen < 3 else None)


def value_of(value: object) -> object:
    """A value to compare: what is made anew by each call, by its class."""
    return (type(value), id(value)) if any(value is one for one in VALUES) else (type(value), str(value)[:12])


def consumed(given: Any) -> object:
    if inspect.iscoroutine(given):
        given.close()
    return [type(given), *given] if inspect.isgenerator(given) else value_of(given)


async def consumed_async(given: Any) -> object:
    if inspect.isasyncgen(given):
        return [type(given), *[item async for item in given]]
    return consumed(given)


def outcome(do: Callable[[], object]) -> object:
    try:
        return do()
    except BaseException as error:
        return told(error)


async def outcome_async(do: Callable[[], Awaitable[object]]) -> object:
    try:
        return await do()
    except BaseException as error:
        return told(error)


POLICY: dict[str, Any] = {"failure_threshold": 2, "ignore": (FineError,)}
ASKS: dict[str, Any] = {"slow_call_ms": LONG}
"""What has each call looked at: no hint lets it through."""


def no_error(refusal: Exception, *_: object) -> str:
    return "instead"


WAYS: dict[str, Callable[[Any, Any], Any]] = {
    "execute": lambda breaker, fn: breaker.execute(fn),
    "decorator": lambda breaker, fn: breaker(fn)(),
    "guard": lambda breaker, fn: breaker.guard(fallback=no_error)(fn)(),
    "guard-failure": lambda breaker, fn: breaker.guard(fallback=no_error, fallback_on="failure")(fn)(),
}


def lives(breaker: Any, way: Callable[[Any, Any], Any], fn: Any) -> list[object]:
    """What three calls of a circuit that trips with the second failure come to."""
    said = [outcome(lambda: consumed(way(breaker, fn))) for _ in range(3)]
    snapshot = breaker.get_snapshot()
    refusal = outcome(lambda: breaker.execute(lambda: "ok"))
    return [*said, snapshot.state, snapshot.failures_in_window, snapshot.trips, refusal]


async def lives_async(breaker: Any, way: Callable[[Any, Any], Any], fn: Any) -> list[object]:
    async def called() -> object:
        try:
            given = way(breaker, fn)
            return await consumed_async(await given if inspect.isawaitable(given) else given)
        finally:
            # What a generator came to, which awaits nothing, is told in a task of its own.
            if hasattr(breaker._circuit, "_line"):
                await breaker._circuit._line.rest()

    said = [await outcome_async(called) for _ in range(3)]
    snapshot = breaker.get_snapshot()
    snapshot = await snapshot if inspect.isawaitable(snapshot) else snapshot
    refusal = await outcome_async(lambda: breaker.execute_async(answer))
    return [*said, snapshot.state, snapshot.failures_in_window, snapshot.trips, refusal]


def same(hot: list[object], asked: list[object], fn: object) -> None:
    # How long it is still open is no matter of this.
    assert _timeless(hot) == _timeless(asked), fn


def _timeless(said: list[object]) -> object:
    return [*map(_without_wait, said)]


def _without_wait(said: object) -> object:
    if isinstance(said, tuple) and said[:1] == (CircuitOpenError,):
        return (CircuitOpenError, said[1].split(" retry")[0].split(" in ")[0], *said[2:])
    return said


@pytest.mark.parametrize("way", WAYS)
def test_local_sync_calls(way: str) -> None:
    for fn in SYNC:
        one = name()
        hot, asking = CircuitBreaker(one, **POLICY), CircuitBreaker(one, **POLICY, **ASKS)
        assert hot._machine.hot is not None
        assert asking._machine.hot is None
        same(lives(hot, WAYS[way], fn), lives(asking, WAYS[way], fn), fn)


@pytest.mark.parametrize("way", WAYS)
def test_local_async_calls(way: str) -> None:
    def through(breaker: Any, fn: Any) -> Any:
        return breaker.execute_async(fn) if way == "execute" else WAYS[way](breaker, fn)

    async def main() -> None:
        for fn in ASYNC:
            one = name()
            hot, asking = CircuitBreaker(one, **POLICY), CircuitBreaker(one, **POLICY, **ASKS)
            same(await lives_async(hot, through, fn), await lives_async(asking, through, fn), fn)

    asyncio.run(main())


@pytest.mark.parametrize("way", WAYS)
def test_shared_sync_calls(redis_server: Server, way: str) -> None:
    with redis.Redis(port=redis_server.port) as client:
        store = switchgear.redis.RedisStore(client, timeout_ms=PATIENT)
        for fn in SYNC:
            one = name()
            said = []
            for more in ({"closed_cache_ms": LONG}, ASKS):
                breaker = switchgear.redis.DistributedCircuitBreaker(one, store, **POLICY, **more)
                breaker.reset()
                breaker.execute(int)
                assert (breaker._circuit.hints.hot is not None) is (more is not ASKS)
                said.append(lives(breaker, WAYS[way], fn))
            same(*_since_reset(said), fn)


@pytest.mark.parametrize("way", WAYS)
def test_shared_async_calls(redis_server: Server, way: str) -> None:
    async def main() -> None:
        async with redis.asyncio.Redis(port=redis_server.port) as client:
            store = switchgear.redis.asyncio.RedisStore(client, timeout_ms=PATIENT)
            for fn in ASYNC:
                one = name()
                said = []
                for more in ({"closed_cache_ms": LONG}, ASKS):
                    breaker = switchgear.redis.asyncio.DistributedCircuitBreaker(one, store, **POLICY, **more)
                    await breaker.reset()
                    await breaker.execute(answer)
                    assert (breaker._circuit.hints.hot is not None) is (more is not ASKS)
                    said.append(await lives_async(breaker, WAYS[way], fn))
                same(*_since_reset(said), fn)
            await store.close()

    asyncio.run(main())


def _since_reset(said: list[list[object]]) -> tuple[list[object], list[object]]:
    # The second one goes on where the first has been: what it counts of all time is no matter of this.
    first, second = said
    return first[:-2] + first[-1:], second[:-2] + second[-1:]
