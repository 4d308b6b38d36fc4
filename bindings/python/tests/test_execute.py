"""What `execute` and `execute_async` promise about values, errors, fallbacks and timeouts."""

from __future__ import annotations

import asyncio
import gc
import inspect
import sys
import weakref
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from typing import Any, NoReturn
from unittest.mock import AsyncMock, MagicMock
from uuid import uuid4

import pytest
from support.clock import ManualClock
from support.logs import logged
from switchgear import CallEvent, CallTimeoutError, CircuitBreaker, CircuitOpenError

PATHS: dict[str, dict[str, Any]] = {
    "rolling, healthy": {},
    "consecutive, healthy": {"trip_on": "consecutive"},
    "rate": {"trip_on": "rate"},
    "with a timeout": {"timeout_ms": 60_000},
    "with slow_call_ms": {"slow_call_ms": 60_000},
    "with is_failure_result": {"is_failure_result": lambda value: value == "bad"},
    "observed only": {"observe": True},
}
each_path = pytest.mark.parametrize("policy", PATHS.values(), ids=PATHS)


class BoomError(Exception):
    """A failure of the dependency."""


def fail() -> NoReturn:
    raise BoomError("ECONNREFUSED")


async def fail_async() -> NoReturn:
    await asyncio.sleep(0)
    raise BoomError("ECONNREFUSED")


async def hang() -> NoReturn:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets it")


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(main())


class Late:
    """What can be awaited and is no coroutine."""

    def __init__(self, value: object) -> None:
        self.value = value
        self.awaited = 0

    def __await__(self) -> Generator[None, None, object]:
        self.awaited += 1
        yield
        return self.value


@each_path
def test_values_arrive(policy: dict[str, Any]) -> None:
    breaker = CircuitBreaker("c", **policy)

    class Point:
        pass

    for value in (None, 0, "text", [1], Point(), Point, MagicMock(), len, breaker):
        assert breaker.execute(lambda value=value: value) is value  # type: ignore[misc]  # mypy cannot infer the lambda

    async def main() -> None:
        late = Late("rows")
        assert await breaker.execute_async(lambda: late) == "rows"
        assert late.awaited == 1
        assert await breaker.execute_async(AsyncMock(return_value=3)) == 3
        assert await breaker.execute_async(lambda: asyncio.sleep(0, "slept")) == "slept"
        assert await breaker.execute_async(lambda: asyncio.ensure_future(asyncio.sleep(0, "task"))) == "task"
        for value in (None, 0, "text", [1], Point(), Point):
            assert await breaker.execute_async(lambda value=value: value) is value  # type: ignore[misc]  # as above

    run(main)


@each_path
def test_the_original_error_arrives(policy: dict[str, Any]) -> None:
    breaker = CircuitBreaker("c", **policy)
    boom = BoomError("it")

    def throw() -> NoReturn:
        raise boom

    async def throw_async() -> NoReturn:
        await asyncio.sleep(0)
        raise boom

    async def main() -> None:
        with pytest.raises(BoomError) as caught:
            await breaker.execute_async(throw_async)
        assert caught.value is boom
        with pytest.raises(BoomError) as caught:
            await breaker.execute_async(throw)
        assert caught.value is boom

    with pytest.raises(BoomError) as caught:
        breaker.execute(throw)
    assert caught.value is boom
    assert boom.__cause__ is None
    assert boom.__context__ is None
    run(main)
    snapshot = breaker.get_snapshot()
    assert max(snapshot.failures_in_window, snapshot.consecutive_failures) == 3


@pytest.mark.parametrize("trip_on", ["rolling", "consecutive"])
def test_a_healthy_call_reads_no_clock(trip_on: Any) -> None:
    reads = [0]

    def clock() -> int:
        reads[0] += 1
        return 1000

    breaker = CircuitBreaker("c", trip_on=trip_on, clock=clock)

    @breaker
    def guarded() -> int:
        return 1

    @breaker
    async def guarded_async() -> int:
        return 1

    async def main() -> None:
        await guarded_async()
        await breaker.execute_async(guarded_async)
        async with breaker:
            pass

    reads[0] = 0
    for _ in range(5):
        guarded()
        breaker.execute(guarded)
        breaker.execute(guarded, fallback=lambda refusal: 0)
        with breaker:
            pass
        assert breaker.can_execute()
        assert breaker.record_success() == "applied"
        assert breaker.acquire().record_success() == "applied"
        run(main)
    assert reads == [0]
    with pytest.raises(BoomError):
        breaker.execute(fail)
    assert reads == [1]


def test_consecutive_a_success_that_began_while_healthy_still_ends_the_row_that_began_meanwhile() -> None:
    async def main() -> None:
        breaker = CircuitBreaker("c", trip_on="consecutive", failure_threshold=3)

        async def one(inside: Callable[[], Awaitable[object]]) -> None:
            gate = asyncio.Event()
            pending = asyncio.ensure_future(inside_of(gate, inside))
            await asyncio.sleep(0)
            with pytest.raises(BoomError):
                breaker.execute(fail)
            assert breaker.get_snapshot().consecutive_failures == 1
            gate.set()
            await pending
            assert breaker.get_snapshot().consecutive_failures == 0

        async def inside_of(gate: asyncio.Event, inside: Callable[[], Awaitable[object]]) -> None:
            gates.append(gate)
            await inside()

        gates: list[asyncio.Event] = []

        async def body() -> None:
            await gates[-1].wait()

        async def block() -> None:
            async with breaker:
                await body()

        for inside in (lambda: breaker.execute_async(body), breaker(body), block):
            await one(inside)

        def fails_within() -> str:
            with pytest.raises(BoomError):
                breaker.execute(fail)
            assert breaker.get_snapshot().consecutive_failures == 1
            return "ok"

        assert breaker.execute(fails_within) == "ok"
        assert breaker.get_snapshot().consecutive_failures == 0
        assert breaker(fails_within)() == "ok"
        assert breaker.get_snapshot().consecutive_failures == 0

    run(main)


@each_path
def test_a_function_that_ends_the_period_of_its_own_call(policy: dict[str, Any]) -> None:
    clock = ManualClock()
    breaker = CircuitBreaker(
        "c", **{"failure_threshold": 1, **policy} if "trip_on" not in policy else policy, clock=clock
    )

    def resets_and_fails() -> NoReturn:
        clock.now += 1
        breaker.reset()
        raise BoomError

    async def resets_and_fails_async() -> NoReturn:
        resets_and_fails()

    async def main() -> None:
        with pytest.raises(BoomError):
            await breaker.execute_async(resets_and_fails_async)

    with pytest.raises(BoomError):
        breaker.execute(resets_and_fails)
    run(main)
    snapshot = breaker.get_snapshot()
    assert (snapshot.state, snapshot.failures_in_window, snapshot.consecutive_failures) == ("closed", 0, 0)


class TestFallbacks:
    def test_for_refusals_failures_are_raised(self) -> None:
        breaker = CircuitBreaker("c", failure_threshold=1)
        got: list[Exception] = []

        def fallback(error: Exception) -> str:
            got.append(error)
            return "cached"

        with pytest.raises(BoomError):
            breaker.execute(fail, fallback=fallback)
        assert got == []
        assert breaker.execute(lambda: "ok", fallback=fallback) == "cached"
        assert breaker.execute(lambda: "ok", fallback=fallback, fallback_on="refusal") == "cached"
        assert [type(error) for error in got] == [CircuitOpenError] * 2

    def test_for_failures_also_counted_errors_and_timeouts(self) -> None:
        breaker = CircuitBreaker("c")
        assert breaker.execute(fail, fallback=lambda error: error.args, fallback_on="failure") == ("ECONNREFUSED",)

        async def later(error: Exception) -> str:
            await asyncio.sleep(0)
            return type(error).__name__

        async def main() -> None:
            assert await breaker.execute_async(fail_async, fallback=later, fallback_on="failure") == "BoomError"
            timed_out = await breaker.execute_async(hang, fallback=later, fallback_on="failure", timeout_ms=1)
            assert timed_out == "CallTimeoutError"
            breaker.force_open()
            assert await breaker.execute_async(hang, fallback=later, fallback_on="failure") == "CircuitOpenError"

        run(main)
        assert breaker.execute(fail, fallback=lambda error: "forced", fallback_on="failure") == "forced"

    def test_for_failures_not_for_what_is_neutral_or_returned(self) -> None:
        breaker = CircuitBreaker("c", ignore=BoomError, is_failure_result=lambda value: value == "503")

        def fallback(error: Exception) -> str:
            raise AssertionError("nothing failed")

        with pytest.raises(BoomError):
            breaker.execute(fail, fallback=fallback, fallback_on="failure")
        assert breaker.execute(lambda: "503", fallback=fallback, fallback_on="failure") == "503"
        for interruption in (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError):

            def interrupted(interruption: type[BaseException] = interruption) -> NoReturn:
                raise interruption

            with pytest.raises(interruption):
                breaker.execute(interrupted, fallback=fallback, fallback_on="failure")
        assert breaker.get_snapshot().failures_in_window == 1

    def test_one_that_raises_names_the_original_as_its_cause(self) -> None:
        breaker = CircuitBreaker("c", failure_threshold=100)

        class CacheDownError(Exception):
            pass

        def broken(error: Exception) -> NoReturn:
            raise CacheDownError

        def broken_from_elsewhere(error: Exception) -> NoReturn:
            raise CacheDownError from LookupError()

        def silent(error: Exception) -> NoReturn:
            raise CacheDownError from None

        def again(error: Exception) -> NoReturn:
            raise error

        def cause_of(call: Callable[[], object], kind: type[Exception] = CacheDownError) -> BaseException | None:
            with pytest.raises(kind) as caught:
                call()
            return caught.value.__cause__

        def failing(fallback: Any) -> Callable[[], object]:
            return lambda: breaker.execute(fail, fallback=fallback, fallback_on="failure")

        def failing_async(fallback: Any) -> Callable[[], object]:
            return lambda: run(lambda: breaker.execute_async(fail_async, fallback=fallback, fallback_on="failure"))

        async def broken_later(error: Exception) -> NoReturn:
            await asyncio.sleep(0)
            raise CacheDownError

        for way in (failing, failing_async):
            assert isinstance(cause_of(way(broken)), BoomError)
            assert isinstance(cause_of(way(broken_from_elsewhere)), LookupError)
            assert cause_of(way(silent)) is None
            assert cause_of(way(again), BoomError) is None
        assert isinstance(cause_of(failing_async(broken_later)), BoomError)
        breaker.force_open()
        assert isinstance(cause_of(lambda: breaker.execute(fail, fallback=broken)), CircuitOpenError)
        assert isinstance(
            cause_of(lambda: run(lambda: breaker.execute_async(fail_async, fallback=broken_later))), CircuitOpenError
        )

    def test_an_async_one_of_a_sync_call_is_refused(self) -> None:
        breaker = CircuitBreaker("c")
        breaker.force_open()

        async def later(refusal: object) -> str:
            raise AssertionError("it is never begun")

        with pytest.raises(TypeError, match="has to be awaited") as caught:
            breaker.execute(lambda: "ok", fallback=later)
        assert isinstance(caught.value.__cause__, CircuitOpenError)


class TestAwaitablesInASyncCall:
    @each_path
    def test_a_coroutine_function_is_refused_with_the_other_name(self, policy: dict[str, Any]) -> None:
        breaker = CircuitBreaker("c", **policy)
        began: list[int] = []

        async def charge() -> None:
            began.append(1)

        loop = asyncio.new_event_loop()
        future: asyncio.Future[None] = loop.create_future()
        hidden = MagicMock(side_effect=charge)
        for function in (charge, hidden, lambda: Late(1), lambda: future, AsyncMock()):
            with pytest.raises(TypeError, match="execute_async"):
                breaker.execute(function)
        loop.close()
        assert not future.cancelled()
        assert began == []
        gc.collect()  # a coroutine that was never awaited would complain by now

    def test_it_counts_nowhere_and_frees_the_slot(self) -> None:
        clock = ManualClock()
        breaker = CircuitBreaker("c", open_duration_ms=1000, clock=clock)
        breaker.trip()
        clock.now += 1000

        async def charge() -> None:
            raise AssertionError("it is never begun")

        with pytest.raises(TypeError):
            breaker.execute(MagicMock(side_effect=charge))
        assert breaker.get_snapshot().half_open_in_flight == 0
        assert breaker.get_state() == "half-open"
        assert breaker.execute(lambda: "probe") == "probe"
        assert breaker.get_state() == "closed"

    def test_a_coroutine_function_is_refused_while_open_too(self) -> None:
        breaker = CircuitBreaker("c")
        breaker.force_open()

        async def charge() -> None:
            raise AssertionError("it is never begun")

        with pytest.raises(TypeError, match="execute_async"):
            assert breaker.execute(charge)

    @each_path
    def test_what_cannot_be_called(self, policy: dict[str, Any]) -> None:
        breaker = CircuitBreaker("c", **policy)

        async def charge() -> None:
            raise AssertionError("it is never begun")

        def given(wrong: Any) -> Any:
            return wrong

        with pytest.raises(TypeError, match="hand over the function") as caught:
            breaker.execute(given(charge()))
        assert caught.value.__suppress_context__
        with pytest.raises(TypeError, match="must be callable, got 5"):
            breaker.execute(given(5))
        with pytest.raises(TypeError, match="hand over the function"):
            run(lambda: breaker.execute_async(given(charge())))
        with pytest.raises(TypeError, match="must be callable"):
            run(lambda: breaker.execute_async(given(None)))
        snapshot = breaker.get_snapshot()
        assert (snapshot.failures_in_window, snapshot.consecutive_failures) == (0, 0)
        gc.collect()

    def test_a_type_error_of_the_function_itself_counts(self) -> None:
        breaker = CircuitBreaker("c")

        def wrong() -> NoReturn:
            raise TypeError("its own")

        with pytest.raises(TypeError, match="its own"):
            breaker.execute(wrong)
        assert breaker.get_snapshot().failures_in_window == 1


class TestTimeouts:
    def test_a_call_that_takes_too_long_is_cancelled_and_counts(self) -> None:
        async def main() -> None:
            breaker = CircuitBreaker("c", timeout_ms=1, is_failure=lambda error: False)
            with pytest.raises(CallTimeoutError) as caught:
                await breaker.execute_async(hang)
            assert (caught.value.circuit, caught.value.timeout_ms) == ("c", 1)
            assert breaker.get_snapshot().failures_in_window == 1
            task = asyncio.current_task()
            assert task is not None
            if sys.version_info >= (3, 11):
                assert task.cancelling() == 0

        run(main)

    def test_the_calls_own_beats_the_policys(self) -> None:
        async def main() -> None:
            breaker = CircuitBreaker("c", timeout_ms=60_000)
            with pytest.raises(CallTimeoutError) as caught:
                await breaker.execute_async(hang, timeout_ms=2)
            assert caught.value.timeout_ms == 2

        run(main)

    @pytest.mark.parametrize("then", ["returns", "raises", "raises a timeout"])
    def test_what_the_function_makes_of_its_cancellation_is_ignored(self, then: str) -> None:
        async def stubborn() -> str:
            try:
                await hang()
            except asyncio.CancelledError:
                await asyncio.sleep(0)
                if then == "raises":
                    raise LookupError("its own") from None
                if then == "raises a timeout":
                    raise asyncio.TimeoutError from None
            return "late"

        async def main() -> None:
            breaker = CircuitBreaker("c", is_failure=lambda error: False)
            with pytest.raises(CallTimeoutError):
                await breaker.execute_async(stubborn, timeout_ms=1)
            assert breaker.get_snapshot().failures_in_window == 1
            await asyncio.sleep(0)

        run(main)

    def test_one_that_ends_in_time_leaves_nothing(self) -> None:
        async def main() -> None:
            breaker = CircuitBreaker("c", timeout_ms=60_000)
            assert await breaker.execute_async(lambda: asyncio.sleep(0, "ok")) == "ok"
            with pytest.raises(TimeoutError, match="its own"):
                await breaker.execute_async(own_timeout)
            assert breaker.get_snapshot().failures_in_window == 1

        async def own_timeout() -> NoReturn:
            raise TimeoutError("its own")

        run(main)

    def test_the_timeout_of_an_inner_breaker_is_an_error_like_any_other(self) -> None:
        async def main() -> None:
            inner = CircuitBreaker("inner", timeout_ms=1)
            outer = CircuitBreaker("outer", timeout_ms=60_000, ignore=CallTimeoutError)
            with pytest.raises(CallTimeoutError) as caught:
                await outer.execute_async(lambda: inner.execute_async(hang))
            assert caught.value.circuit == "inner"
            assert inner.get_snapshot().failures_in_window == 1
            assert outer.get_snapshot().failures_in_window == 0

        run(main)

    @pytest.mark.parametrize("timeout_ms", [None, 60_000])
    def test_a_cancellation_from_outside_comes_through_and_counts_nowhere(self, timeout_ms: int | None) -> None:
        async def main() -> None:
            breaker = CircuitBreaker("c", failure_threshold=1)
            calls: list[Callable[[], Coroutine[Any, Any, object]]] = [
                lambda: breaker.execute_async(hang, timeout_ms=timeout_ms),
                breaker.guard(timeout_ms=timeout_ms)(hang),
            ]
            for call in calls:
                task = asyncio.ensure_future(call())
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert breaker.get_state() == "closed"

        run(main)

    def test_a_sync_function_has_none(self) -> None:
        breaker = CircuitBreaker("c", timeout_ms=1)
        assert breaker.execute(lambda: "ok") == "ok"
        assert breaker(lambda: "ok")() == "ok"
        with pytest.raises(TypeError):
            breaker.execute(lambda: "ok", timeout_ms=1)  # type: ignore[call-overload]  # there is none


class TestClassification:
    def test_is_failure_and_ignore(self) -> None:
        breaker = CircuitBreaker("c", is_failure=lambda error: "mine" not in str(error), ignore=(LookupError, OSError))
        for error, counts in (
            (ValueError("mine"), False),
            (ValueError("theirs"), True),
            (KeyError("theirs"), False),
            (ConnectionError("theirs"), False),
        ):
            before = breaker.get_snapshot().failures_in_window

            def throw(error: Exception = error) -> NoReturn:
                raise error

            with pytest.raises(type(error)):
                breaker.execute(throw)
            assert breaker.get_snapshot().failures_in_window - before == int(counts)

    @pytest.mark.parametrize("answer", [None, 0, "", []])
    def test_only_false_is_neutral(self, answer: Any) -> None:
        breaker = CircuitBreaker("c", is_failure=lambda error: answer)
        with pytest.raises(BoomError):
            breaker.execute(fail)
        assert breaker.get_snapshot().failures_in_window == 1

    def test_what_is_no_exception_is_neutral_and_not_asked_about(self) -> None:
        def is_failure(error: BaseException) -> bool:
            raise AssertionError("it is not asked")

        class Abort(BaseException):
            pass

        breaker = CircuitBreaker("c", failure_threshold=1, is_failure=is_failure)
        for kind in (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError, Abort):

            def throw(kind: type[BaseException] = kind) -> NoReturn:
                raise kind

            with pytest.raises(kind):
                breaker.execute(throw)
            with pytest.raises(kind), breaker:
                throw()
        assert breaker.get_state() == "closed"

    @pytest.mark.parametrize("option", ["is_failure", "is_failure_result"])
    @pytest.mark.parametrize("fault", ["raises", "gives a coroutine"])
    def test_a_classifier_at_fault_counts_the_call_and_is_reported_once(self, option: str, fault: str) -> None:
        name = str(uuid4())

        async def later(about: object) -> bool:
            raise AssertionError("it is never begun")

        def broken(about: object) -> bool:
            raise LookupError("the classifier's own")

        breaker = CircuitBreaker(name, **{option: broken if fault == "raises" else later})  # type: ignore[arg-type]  # so
        with logged(name) as warnings:
            for _ in range(2):
                if option == "is_failure":
                    with pytest.raises(BoomError):
                        breaker.execute(fail)
                else:
                    assert breaker.execute(lambda: "value") == "value"
        assert len(warnings) == 1
        assert f"`{option}`" in warnings[0]
        assert breaker.get_snapshot().failures_in_window == 2

    def test_a_value_whose_truth_cannot_be_asked(self) -> None:
        class Vague:
            def __bool__(self) -> bool:
                raise ValueError("neither")

        breaker = CircuitBreaker("c", is_failure_result=lambda value: Vague())  # type: ignore[arg-type, return-value]  # so
        assert breaker.execute(lambda: "value") == "value"
        assert breaker.get_snapshot().failures_in_window == 1

    def test_an_interrupt_that_hits_a_classifier_comes_through_and_frees_the_slot(self) -> None:
        clock = ManualClock()

        def interrupted(about: object) -> bool:
            raise KeyboardInterrupt

        breaker = CircuitBreaker(
            "c", is_failure=interrupted, is_failure_result=interrupted, open_duration_ms=1000, clock=clock
        )
        for call in (lambda: breaker.execute(fail), lambda: breaker.execute(lambda: 1), lambda: block_of(breaker)):
            breaker.trip()
            clock.now += 1000
            with pytest.raises(KeyboardInterrupt):
                call()
            snapshot = breaker.get_snapshot()
            assert (snapshot.state, snapshot.half_open_in_flight) == ("half-open", 0)

    def test_is_failure_result_and_slow_calls_are_still_returned(self) -> None:
        clock = ManualClock()
        breaker = CircuitBreaker(
            "c", is_failure_result=lambda status: status >= 500, slow_call_ms=100, clock=clock, failure_threshold=100
        )

        def slow(ms: int, status: int = 200) -> Callable[[], int]:
            def call() -> int:
                clock.now += ms
                return status

            return call

        for call, failures in ((slow(100), 0), (slow(101), 1), (slow(0, 503), 2), (slow(0), 2)):
            assert breaker.execute(call) in {200, 503}
            assert breaker.get_snapshot().failures_in_window == failures

        async def main() -> None:
            await breaker.execute_async(slow(101))
            assert breaker.get_snapshot().failures_in_window == 3

        run(main)
        with breaker:
            clock.now += 101
        assert breaker.get_snapshot().failures_in_window == 4
        with breaker.acquire():
            clock.now += 101
        assert breaker.get_snapshot().failures_in_window == 5
        breaker.trip()
        with pytest.raises(CircuitOpenError) as caught:
            breaker.execute(slow(0))
        assert caught.value.last_failure == "slower than 100 ms"


def block_of(breaker: CircuitBreaker) -> None:
    with breaker:
        fail()


def test_observe_announces_and_enforces_nothing() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1, observe=True)
    events: list[CallEvent] = []
    breaker.on("refused", events.append)
    with pytest.raises(BoomError):
        breaker.execute(fail)
    assert breaker.get_state() == "open"
    epoch = breaker.get_snapshot().epoch
    assert breaker.execute(lambda: "ok") == "ok"
    assert breaker.can_execute()
    assert breaker.acquire().record_failure() == "stale"
    with breaker as permit:
        assert permit.release() == "stale"
    with pytest.raises(BoomError):
        breaker(fail)()
    assert len(events) == 5
    assert all(isinstance(event.error, CircuitOpenError) for event in events)
    assert breaker.get_snapshot().epoch == epoch


def test_the_last_failure_says_why() -> None:
    import errno

    for error, text in (
        (OSError(errno.ECONNREFUSED, "Connection refused"), "ECONNREFUSED"),
        (OSError("no number"), "no number"),
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError(), "ValueError"),
        (ValueError("a\nb\x1b[31mc"), "a b [31mc"),
        (ValueError("redis://user:secret@host/0 is down"), None),
        (ValueError("x" * 1000), f"{'x' * 200}..."),
        (ValueError("\ud800"), "ValueError"),
    ):
        breaker = CircuitBreaker("c", failure_threshold=1)

        def throw(error: Exception = error) -> NoReturn:
            raise error

        with pytest.raises(type(error)):
            breaker.execute(throw)
        with pytest.raises(CircuitOpenError) as caught:
            breaker.execute(throw)
        assert caught.value.last_failure is not None
        assert "secret" not in caught.value.last_failure
        if text is not None:
            assert caught.value.last_failure == text


def test_an_error_that_cannot_be_shown_does_no_harm() -> None:
    class HiddenError(Exception):
        def __str__(self) -> str:
            raise LookupError("not even this")

    breaker = CircuitBreaker("c", failure_threshold=1)

    def throw() -> NoReturn:
        raise HiddenError

    with pytest.raises(HiddenError):
        breaker.execute(throw)
    with pytest.raises(CircuitOpenError, match="cannot be shown"):
        breaker.execute(throw)


@pytest.mark.thread_unsafe(reason="the collector is the whole process's")
@each_path
def test_an_error_is_gone_when_its_handler_is(policy: dict[str, Any]) -> None:
    breaker = CircuitBreaker("c", **policy)
    opened = CircuitBreaker("c")
    opened.force_open()
    kept: list[weakref.ref[BaseException]] = []

    def noted(call: Callable[[], object]) -> None:
        breaker.reset()
        try:
            call()
        except Exception as error:
            kept.append(weakref.ref(error))
        else:
            raise AssertionError("it raised nothing")

    async def noted_async(call: Callable[[], Awaitable[object]]) -> None:
        breaker.reset()
        try:
            await call()
        except Exception as error:
            kept.append(weakref.ref(error))

    async def fail_now() -> NoReturn:
        raise BoomError

    def failed() -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_exception(BoomError())
        return future

    def fail_in_generator() -> Generator[int, None, None]:
        yield 1
        raise BoomError

    def endless() -> Generator[int, None, None]:
        while True:
            yield 1

    async def endless_async() -> AsyncGenerator[int, None]:
        while True:
            yield 1

    def thrown_in() -> None:
        steps = breaker(endless)()
        next(steps)
        steps.throw(BoomError())

    async def thrown_in_async() -> None:
        steps = breaker(endless_async)()
        await anext(steps)
        await steps.athrow(BoomError())

    async def main() -> None:
        await noted_async(thrown_in_async)
        for one in (breaker, opened):
            await noted_async(lambda one=one: one.execute_async(fail_now))  # type: ignore[misc]  # as above
            await noted_async(one(fail_now))
            # A future has hold of its error.
            await noted_async(lambda one=one: one.execute_async(failed))  # type: ignore[misc]  # as above
            await noted_async(lambda one=one: one.execute_async(failed, timeout_ms=60_000))  # type: ignore[misc]  # as above
        await noted_async(lambda: opened.execute_async(fail_now, fallback=lambda _: failed()))

    gc.collect()
    gc.disable()
    try:
        for one in (breaker, opened):
            noted(lambda one=one: one.execute(fail))  # type: ignore[misc]  # as above
            noted(one(fail))
            noted(lambda one=one: block_of(one))  # type: ignore[misc]  # as above
            noted(lambda one=one: list(one(fail_in_generator)()))  # type: ignore[misc]  # as above
        noted(opened.acquire)
        noted(thrown_in)
        run(main)
        assert [reference for reference in kept if reference() is not None] == []
        assert len(kept) == 20
    finally:
        gc.enable()


def test_names_of_what_runs() -> None:
    breaker = CircuitBreaker("billing")
    assert repr(breaker) == "<CircuitBreaker 'billing': closed>"
    breaker.trip()
    assert repr(breaker) == "<CircuitBreaker 'billing': open>"
    breaker.force_open()
    assert repr(breaker) == "<CircuitBreaker 'billing': open (forced-open)>"
    breaker.disable()
    assert repr(breaker) == "<CircuitBreaker 'billing': closed (disabled)>"
    assert inspect.iscoroutinefunction(breaker.execute_async)
    assert not inspect.iscoroutinefunction(breaker.execute)


def test_a_timeout_needs_a_task_of_asyncio_and_says_so_before_anything_is_admitted() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1, timeout_ms=1_000)
    ran: list[int] = []

    @breaker
    async def charge() -> None:
        ran.append(1)

    @breaker
    async def rows() -> AsyncGenerator[int, None]:
        ran.append(1)
        yield 1

    breaker.trip(for_ms=1)
    for call in (charge(), breaker.execute_async(charge), rows().asend(None)):
        # As another library's loop does, trio's for one.
        with pytest.raises(RuntimeError, match="`timeout_ms` needs a task of asyncio"):
            call.send(None)
    assert ran == []
    assert breaker.get_snapshot().half_open_in_flight == 0

    async def free() -> str:
        return "ok"

    with pytest.raises(StopIteration) as done:
        CircuitBreaker("c").execute_async(free).send(None)
    assert done.value.value == "ok"
