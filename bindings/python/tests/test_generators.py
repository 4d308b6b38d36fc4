"""Generators and async generators are guarded over their whole life."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from typing import Any
from unittest.mock import MagicMock

import pytest
from support.clock import ManualClock
from switchgear import CallTimeoutError, CircuitBreaker, CircuitOpenError


class BoomError(Exception):
    """A failure of the dependency."""


def numbers(upto: int = 3) -> Generator[int, None, str]:
    yield from range(upto)
    return "done"


def failing() -> Generator[int, None, None]:
    yield 1
    raise BoomError


def echo() -> Generator[Any, Any, list[Any]]:
    """Gives back what it is sent, and survives what is thrown in."""
    got: list[Any] = []
    value: Any = "begun"
    while True:
        try:
            value = yield value
        except LookupError as error:
            value = type(error).__name__
        if value is None:
            return got
        got.append(value)


async def numbers_async(upto: int = 3) -> AsyncGenerator[int, Any]:
    for number in range(upto):
        await asyncio.sleep(0)
        yield number


async def failing_async() -> AsyncGenerator[int, None]:
    yield 1
    raise BoomError


async def echo_async() -> AsyncGenerator[Any, Any]:
    value: Any = "begun"
    while value is not None:
        try:
            value = yield value
        except LookupError as error:
            value = type(error).__name__


# Each way to guard a generator function: decorated, or by what a guarded call returns.
WAYS: dict[str, Callable[[CircuitBreaker, Callable[..., Any]], Callable[..., Any]]] = {
    "decorated": lambda breaker, fn: breaker(fn),
    "with a fallback": lambda breaker, fn: breaker.guard(fallback=lambda error, *args: iter(()))(fn),
    "executed": lambda breaker, fn: lambda *args: breaker.execute(lambda: fn(*args)),
    "returned by a plain function": lambda breaker, fn: breaker(MagicMock(side_effect=fn)),
}
ways = pytest.mark.parametrize("guard", WAYS.values(), ids=WAYS)
# Each with the healthy path, and without.
POLICIES: dict[str, dict[str, Any]] = {
    "healthy": {},
    "timed": {"slow_call_ms": 60_000},
    "consecutive": {"trip_on": "consecutive"},
    "rate": {"trip_on": "rate"},
}
policies = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)

Guard = Callable[[CircuitBreaker, Callable[..., Any]], Callable[..., Any]]


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(main())


async def collected(steps: AsyncGenerator[Any, Any]) -> list[Any]:
    return [step async for step in steps]


def probing(**policy: Any) -> CircuitBreaker:
    """A breaker whose next call is a probe."""
    clock = ManualClock()
    breaker = CircuitBreaker("c", open_duration_ms=1000, clock=clock, **policy)
    breaker.trip()
    clock.now += 1000
    return breaker


def in_flight(breaker: CircuitBreaker) -> tuple[str, int]:
    snapshot = breaker.get_snapshot()
    return snapshot.state, snapshot.half_open_in_flight


@ways
@policies
class TestGenerators:
    def test_all_of_it_comes_through(self, guard: Guard, policy: dict[str, Any]) -> None:
        guarded = guard(CircuitBreaker("c", **policy), numbers)
        steps = guarded(2)
        assert inspect.isgenerator(steps)
        assert next(steps) == 0
        assert next(steps) == 1
        with pytest.raises(StopIteration) as end:
            next(steps)
        assert end.value.value == "done"
        with pytest.raises(StopIteration):
            next(steps)

    def test_send_and_throw(self, guard: Guard, policy: dict[str, Any]) -> None:
        steps = guard(CircuitBreaker("c", **policy), echo)()
        assert next(steps) == "begun"
        assert steps.send("one") == "one"
        assert steps.throw(KeyError("thrown in")) == "KeyError"
        assert steps.send("two") == "two"
        with pytest.raises(StopIteration) as end:
            steps.send(None)
        assert end.value.value == ["one", "KeyError", "two"]

    def test_exhausted_is_a_success(self, guard: Guard, policy: dict[str, Any]) -> None:
        breaker = probing(**policy)
        steps = guard(breaker, numbers)()
        next(steps)
        assert in_flight(breaker) == ("half-open", 1)
        assert list(steps) == [1, 2]
        assert breaker.get_state() == "closed"

    def test_what_it_raises_counts(self, guard: Guard, policy: dict[str, Any]) -> None:
        breaker = probing(**policy)
        steps = guard(breaker, failing)()
        assert next(steps) == 1
        with pytest.raises(BoomError):
            next(steps)
        assert breaker.get_state() == "open"

    def test_what_is_thrown_in_and_comes_back_counts(self, guard: Guard, policy: dict[str, Any]) -> None:
        breaker = probing(**policy)
        steps = guard(breaker, numbers)()
        next(steps)
        with pytest.raises(BoomError):
            steps.throw(BoomError())
        assert breaker.get_state() == "open"

    @pytest.mark.parametrize("end", ["close", "drop", "interrupt"])
    def test_closing_early_is_neutral(self, guard: Guard, policy: dict[str, Any], end: str) -> None:
        breaker = probing(**policy)
        steps = guard(breaker, numbers)()
        next(steps)
        assert in_flight(breaker) == ("half-open", 1)
        if end == "close":
            steps.close()
        elif end == "interrupt":
            with pytest.raises(KeyboardInterrupt):
                steps.throw(KeyboardInterrupt())
        else:
            del steps
        assert in_flight(breaker) == ("half-open", 0)

    @pytest.mark.parametrize("end", ["close", "drop", "throw"])
    def test_one_that_never_begins_keeps_no_slot(self, guard: Guard, policy: dict[str, Any], end: str) -> None:
        breaker = probing(**policy)
        steps = guard(breaker, numbers)()
        if end == "close":
            steps.close()
            with pytest.raises(StopIteration):
                next(steps)
        elif end == "throw":
            with pytest.raises(BoomError):
                steps.throw(BoomError())
        else:
            del steps
        state, held = in_flight(breaker)
        assert held == 0
        assert state in {"open", "half-open"}
        assert breaker.can_execute()

    def test_what_its_clean_up_raises_counts(self, guard: Guard, policy: dict[str, Any]) -> None:
        def untidy() -> Generator[int, None, None]:
            try:
                yield 1
            finally:
                raise BoomError

        breaker = probing(**policy)
        steps = guard(breaker, untidy)()
        next(steps)
        with pytest.raises(BoomError):
            steps.close()
        assert breaker.get_state() == "open"

    def test_one_that_will_not_close_counts(self, guard: Guard, policy: dict[str, Any]) -> None:
        def stubborn() -> Generator[int, None, None]:
            try:
                yield 1
            except GeneratorExit:
                yield 2

        breaker = probing(**policy)
        steps = guard(breaker, stubborn)()
        next(steps)
        with pytest.raises(RuntimeError, match="ignored GeneratorExit"):
            steps.close()
        assert breaker.get_state() == "open"

    def test_a_value_cannot_be_sent_before_it_begins(self, guard: Guard, policy: dict[str, Any]) -> None:
        breaker = probing(**policy)
        steps = guard(breaker, numbers)()
        with pytest.raises(TypeError, match="just-started"):
            steps.send("too early")
        assert in_flight(breaker)[1] == 0


@ways
@policies
class TestAsyncGenerators:
    def test_all_of_it_comes_through(self, guard: Guard, policy: dict[str, Any]) -> None:
        async def main() -> None:
            steps = guard(CircuitBreaker("c", **policy), numbers_async)(2)
            assert inspect.isasyncgen(steps)
            assert await anext(steps) == 0
            assert await collected(steps) == [1]
            with pytest.raises(StopAsyncIteration):
                await anext(steps)

        run(main)

    def test_asend_and_athrow(self, guard: Guard, policy: dict[str, Any]) -> None:
        async def main() -> None:
            steps = guard(CircuitBreaker("c", **policy), echo_async)()
            assert await anext(steps) == "begun"
            assert await steps.asend("one") == "one"
            assert await steps.athrow(KeyError("thrown in")) == "KeyError"
            with pytest.raises(StopAsyncIteration):
                await steps.asend(None)

        run(main)

    def test_exhausted_is_a_success(self, guard: Guard, policy: dict[str, Any]) -> None:
        async def main() -> None:
            breaker = probing(**policy)
            steps = guard(breaker, numbers_async)()
            await anext(steps)
            assert in_flight(breaker) == ("half-open", 1)
            assert await collected(steps) == [1, 2]
            assert breaker.get_state() == "closed"

        run(main)

    def test_what_it_raises_counts(self, guard: Guard, policy: dict[str, Any]) -> None:
        async def main() -> None:
            breaker = probing(**policy)
            steps = guard(breaker, failing_async)()
            assert await anext(steps) == 1
            with pytest.raises(BoomError):
                await anext(steps)
            assert breaker.get_state() == "open"

        run(main)

    @pytest.mark.parametrize("end", ["close", "drop", "interrupt", "cancel"])
    def test_closing_early_is_neutral(self, guard: Guard, policy: dict[str, Any], end: str) -> None:
        async def main() -> None:
            breaker = probing(**policy)
            steps = guard(breaker, numbers_async)()
            await anext(steps)
            assert in_flight(breaker) == ("half-open", 1)
            if end == "close":
                await steps.aclose()
            elif end == "interrupt":
                with pytest.raises(KeyboardInterrupt):
                    await steps.athrow(KeyboardInterrupt())
            elif end == "cancel":
                step = asyncio.ensure_future(anext(steps))
                await asyncio.sleep(0)
                step.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await step
            else:
                del steps
                for _ in range(5):
                    await asyncio.sleep(0)
            assert in_flight(breaker) == ("half-open", 0)

        run(main)

    @pytest.mark.parametrize("end", ["close", "drop", "throw"])
    def test_one_that_never_begins_keeps_no_slot(self, guard: Guard, policy: dict[str, Any], end: str) -> None:
        async def main() -> None:
            breaker = probing(**policy)
            steps = guard(breaker, numbers_async)()
            if end == "close":
                await steps.aclose()
            elif end == "throw":
                with pytest.raises(BoomError):
                    await steps.athrow(BoomError())
            else:
                del steps
                for _ in range(5):
                    await asyncio.sleep(0)
            assert in_flight(breaker)[1] == 0
            assert breaker.can_execute()

        run(main)

    def test_what_its_clean_up_raises_counts(self, guard: Guard, policy: dict[str, Any]) -> None:
        async def untidy() -> AsyncGenerator[int, None]:
            try:
                yield 1
            finally:
                raise BoomError

        async def main() -> None:
            breaker = probing(**policy)
            steps = guard(breaker, untidy)()
            await anext(steps)
            with pytest.raises(BoomError):
                await steps.aclose()
            assert breaker.get_state() == "open"

        run(main)


def test_what_execute_async_returns_is_guarded_as_well() -> None:
    async def main() -> None:
        breaker = probing()
        steps = await breaker.execute_async(lambda: numbers_async(2))
        assert in_flight(breaker) == ("half-open", 1)
        assert await collected(steps) == [0, 1]
        assert breaker.get_state() == "closed"
        rows = await probing().execute_async(lambda: numbers(2))
        assert list(rows) == [0, 1]

        async def later() -> AsyncGenerator[int, Any]:
            return numbers_async(2)

        # One that had to be awaited is a value.
        breaker = probing()
        steps = await breaker.execute_async(later)
        assert breaker.get_state() == "closed"
        assert await collected(steps) == [0, 1]

    run(main)


@pytest.mark.parametrize("policy", [{}, {"slow_call_ms": 60_000}])
def test_a_decorated_one_asks_at_its_first_step(policy: dict[str, Any]) -> None:
    breaker = CircuitBreaker("c", **policy)
    began: list[int] = []

    @breaker
    def steps() -> Generator[int, None, None]:
        began.append(1)
        yield 1

    @breaker
    async def steps_async() -> AsyncGenerator[int, None]:
        began.append(1)
        yield 1

    async def main() -> None:
        waiting_async = steps_async()
        waiting = steps()
        breaker.force_open()
        with pytest.raises(CircuitOpenError):
            next(waiting)
        with pytest.raises(CircuitOpenError):
            await anext(waiting_async)
        breaker.reset()
        # It is over, as any generator that raised.
        assert list(waiting) == []
        assert await collected(waiting_async) == []

    run(main)
    assert began == []


class TestFallbacks:
    def test_of_a_refused_one(self) -> None:
        breaker = CircuitBreaker("c")
        breaker.force_open()

        def instead(error: Exception, upto: int) -> Generator[str, None, str]:
            assert isinstance(error, CircuitOpenError)
            yield "instead"
            return str(upto)

        guarded = breaker.guard(fallback=instead)(numbers)
        steps: Generator[Any, Any, str] = guarded(7)
        assert next(steps) == "instead"
        with pytest.raises(StopIteration) as end:
            next(steps)
        assert end.value.value == "7"
        rows: list[Any] = list(breaker.guard(fallback=lambda error, upto: ["a", "b"])(numbers)(1))
        assert rows == ["a", "b"]

    def test_of_one_that_fails_gives_the_rest(self) -> None:
        breaker = CircuitBreaker("c")
        guarded = breaker.guard(fallback=lambda error: iter("xy"), fallback_on="failure")(failing)
        assert list(guarded()) == [1, "x", "y"]
        assert breaker.get_snapshot().failures_in_window == 1

    def test_that_gives_nothing_to_iterate(self) -> None:
        breaker = CircuitBreaker("c")
        breaker.force_open()
        with pytest.raises(TypeError, match="iterable"):
            list(breaker.guard(fallback=lambda error: 5)(numbers)())

    def test_of_async_ones(self) -> None:
        async def later(error: Exception) -> list[str]:
            return ["later"]

        async def steps(error: Exception) -> AsyncGenerator[str, None]:
            yield "steps"

        class Rows:
            def __aiter__(self) -> AsyncIterator[int]:
                return numbers_async(1)

        async def main() -> None:
            for fallback, expected in (
                (later, ["later"]),
                (steps, ["steps"]),
                (lambda error: ["plain"], ["plain"]),
                (lambda error: Rows(), [0]),
            ):
                breaker = CircuitBreaker("c")
                options: Any = {"fallback": fallback, "fallback_on": "failure"}
                assert await collected(breaker.guard(**options)(failing_async)()) == [1, *expected]
                assert breaker.get_snapshot().failures_in_window == 1
                breaker.force_open()
                assert await collected(breaker.guard(**options)(failing_async)()) == expected
            breaker = CircuitBreaker("c")
            breaker.force_open()
            with pytest.raises(TypeError, match="iterable"):
                await collected(breaker.guard(fallback=lambda error: 5)(failing_async)())

        run(main)


class TestTime:
    def test_only_the_time_within_counts(self) -> None:
        clock = ManualClock()
        breaker = CircuitBreaker("c", slow_call_ms=100, clock=clock)

        @breaker
        def steps(ms: int) -> Generator[int, None, None]:
            clock.now += ms
            yield 1
            clock.now += ms

        for _ in steps(50):
            clock.now += 10_000
        assert breaker.get_snapshot().failures_in_window == 0
        list(steps(51))
        assert breaker.get_snapshot().failures_in_window == 1

        @breaker
        async def steps_async(ms: int) -> AsyncGenerator[int, None]:
            clock.now += ms
            yield 1
            clock.now += ms

        async def main() -> None:
            async for _ in steps_async(50):
                clock.now += 10_000
            assert breaker.get_snapshot().failures_in_window == 0
            await collected(steps_async(51))
            assert breaker.get_snapshot().failures_in_window == 1

        breaker.reset()
        run(main)

    def test_a_timeout_bounds_each_step_of_an_async_one(self) -> None:
        async def main() -> None:
            breaker = CircuitBreaker("c", timeout_ms=60_000)
            cleaned: list[int] = []

            @breaker.guard(timeout_ms=5)
            async def steps() -> AsyncGenerator[int, None]:
                try:
                    yield 1
                    await asyncio.sleep(60)
                finally:
                    cleaned.append(1)

            running = steps()
            assert await anext(running) == 1
            await asyncio.sleep(0.02)
            with pytest.raises(CallTimeoutError):
                await anext(running)
            assert cleaned == [1]
            assert breaker.get_snapshot().failures_in_window == 1
            assert await collected(running) == []

        run(main)

    @ways
    def test_so_does_that_of_the_policy(self, guard: Guard) -> None:
        async def hangs() -> AsyncGenerator[int, None]:
            yield 1
            await asyncio.sleep(60)

        async def main() -> None:
            breaker = CircuitBreaker("c", timeout_ms=5)
            steps = guard(breaker, hangs)()
            assert await anext(steps) == 1
            with pytest.raises(CallTimeoutError):
                await anext(steps)
            assert breaker.get_snapshot().failures_in_window == 1

        run(main)

    def test_the_value_that_one_returns_is_looked_at(self) -> None:
        breaker = CircuitBreaker("c", is_failure_result=lambda value: value == "done")
        assert list(breaker(numbers)(1)) == [0]
        assert breaker.get_snapshot().failures_in_window == 1


def test_names() -> None:
    breaker = CircuitBreaker("c")
    steps: Any = breaker.execute(numbers)
    steps_async: Any = breaker.execute(numbers_async)
    assert (steps.__name__, steps.__qualname__) == ("numbers", "numbers")
    assert (steps_async.__name__, steps_async.__qualname__) == ("numbers_async", "numbers_async")
    steps.close()


def test_a_generator_may_use_the_breaker_that_guards_it() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1)

    @breaker
    def outer() -> Generator[int, None, None]:
        with breaker:
            yield from inner()

    @breaker
    def inner() -> Generator[int, None, None]:
        yield 1

    assert list(outer()) == [1]
    assert breaker.get_state() == "closed"


@pytest.mark.parametrize("policy", [{}, {"slow_call_ms": 60_000}])
def test_what_the_clean_up_raises_is_for_whoever_closes(policy: dict[str, Any]) -> None:
    breaker = CircuitBreaker("c", failure_threshold=1, **policy)

    def untidy() -> Generator[Any, None, None]:
        try:
            yield 1
        finally:
            raise BoomError

    guarded: Any = breaker.guard(fallback=lambda error: ["instead"], fallback_on="failure")
    steps = guarded(untidy)()
    assert next(steps) == 1
    with pytest.raises(BoomError):
        steps.close()
    assert breaker.get_state() == "open"


def test_a_guarded_generator_with_a_fallback_for_failures_takes_what_is_sent_and_thrown() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1)
    guarded: Any = breaker.guard(fallback=lambda error: ["instead"], fallback_on="failure")
    steps = guarded(echo)()
    assert next(steps) == "begun"
    assert steps.send(1) == 1
    assert steps.throw(KeyError()) == "KeyError"
    with pytest.raises(StopIteration) as end:
        steps.send(None)
    assert end.value.value == [1, "KeyError"]
    steps = guarded(failing)()
    assert list(steps) == [1, "instead"]
