"""The users' scenarios about what counts, cancellation and fallbacks, on local and on shared breakers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from typing import Any

import pytest
from support.async_world import AnyAsyncBreaker, AsyncWorld, answer, snapshot_of
from support.world import DownError, Heard, NotFoundError, World, fail, guarded, refusal_of, succeed
from switchgear import CallTimeoutError, CircuitBreaker, CircuitOpenError

NewWorld = Callable[[], AbstractContextManager[World]]
NewAsyncWorld = Callable[[], AbstractAsyncContextManager[AsyncWorld]]


async def fail_async() -> None:
    raise DownError("ECONNREFUSED")


async def succeed_async() -> str:
    return "ok"


async def slots_are_free(breaker: AnyAsyncBreaker) -> None:
    """Waits for it: a shared breaker gives a slot back while nobody waits for that."""
    while (snapshot := await snapshot_of(breaker)).half_open_in_flight:  # noqa: ASYNC110 - it says nothing when it is done
        await asyncio.sleep(0)
    assert snapshot.state == "half-open"


def test_scenario_14_after_a_cancelled_probe_the_next_call_is_admitted_at_once(new_async_world: NewAsyncWorld) -> None:
    async def main() -> None:
        async with new_async_world() as world:
            breaker = await world.tripped()
            begun = asyncio.Event()

            async def hang() -> None:
                begun.set()
                await asyncio.Event().wait()

            probe = asyncio.create_task(breaker.execute_async(hang))
            await begun.wait()
            assert (await snapshot_of(breaker)).half_open_in_flight == 1
            probe.cancel()
            with pytest.raises(asyncio.CancelledError):
                await probe
            await slots_are_free(breaker)
            assert await breaker.execute_async(succeed_async) == "ok"
            assert (await snapshot_of(breaker)).state == "closed"

    asyncio.run(main())


def test_scenario_25_32_calls_cancelled_by_their_callers_count_nothing(new_async_world: NewAsyncWorld) -> None:
    async def main() -> None:
        async with new_async_world() as world:
            breaker = world.breaker(failure_threshold=1)
            events = Heard.of(breaker).events
            begun = 0
            all_begun = asyncio.Event()

            async def hang() -> None:
                nonlocal begun
                begun += 1
                if begun == 32:
                    all_begun.set()
                await asyncio.Event().wait()

            calls = [asyncio.create_task(breaker.execute_async(hang)) for _ in range(32)]
            await all_begun.wait()
            for call in calls:
                call.cancel()
            ended = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(end) for end in ended] == [asyncio.CancelledError] * 32
            snapshot = await snapshot_of(breaker)
            assert (snapshot.state, snapshot.failures_in_window) == ("closed", 0)
            assert events == ["ignored"] * 32

    asyncio.run(main())


@pytest.mark.parametrize(
    "kind", [TimeoutError, asyncio.TimeoutError, ConnectionResetError], ids=["builtin", "asyncio", "connection"]
)
def test_scenario_26_a_deadline_raised_by_the_dependency_counts(
    new_async_world: NewAsyncWorld, kind: type[Exception]
) -> None:
    async def main() -> None:
        async with new_async_world() as world:
            breaker = world.breaker(timeout_ms=60_000)
            theirs = kind("the dependency took too long")

            async def late() -> None:
                raise theirs

            with pytest.raises(kind) as raised:
                await breaker.execute_async(late)
            assert raised.value is theirs
            assert (await snapshot_of(breaker)).failures_in_window == 1

    asyncio.run(main())


def test_scenario_26_the_callers_own_deadline_does_not_count(new_async_world: NewAsyncWorld) -> None:
    async def main() -> None:
        async with new_async_world() as world:
            breaker = world.breaker(timeout_ms=60_000)
            begun = asyncio.Event()

            async def hang() -> None:
                begun.set()
                await asyncio.Event().wait()

            call = asyncio.create_task(breaker.execute_async(hang))
            await begun.wait()
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(call, timeout=0.02)
            assert (await snapshot_of(breaker)).failures_in_window == 0

    asyncio.run(main())


def test_scenario_26_a_deadline_that_the_call_sets_itself_counts(new_async_world: NewAsyncWorld) -> None:
    async def main() -> None:
        async with new_async_world() as world:
            breaker = world.breaker()
            with pytest.raises(asyncio.TimeoutError):
                await breaker.execute_async(lambda: asyncio.wait_for(asyncio.Event().wait(), timeout=0.02))
            assert (await snapshot_of(breaker)).failures_in_window == 1

    asyncio.run(main())


@pytest.mark.parametrize(
    "policy",
    [
        {"ignore": DownError},
        {"ignore": (OSError, DownError)},
        {"is_failure": lambda error: not isinstance(error, DownError)},
    ],
    ids=["ignore", "ignore-several", "is_failure"],
)
def test_scenario_27_an_ignored_error_reaches_the_caller_as_it_is(new_world: NewWorld, policy: dict[str, Any]) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=1, **policy)
        events = Heard.of(breaker).events
        error = DownError()

        def raising() -> str:
            raise error

        fell_back: list[BaseException] = []

        def fallback(given: BaseException) -> str:
            fell_back.append(given)
            return "instead"

        with pytest.raises(DownError) as raised:
            breaker.execute(raising, fallback=fallback, fallback_on="failure")
        assert raised.value is error
        assert (error.__cause__, error.__context__) == (None, None)
        assert fell_back == []
        assert events == ["ignored"]
        assert breaker.get_snapshot().failures_in_window == 0


def test_scenario_28_a_call_that_times_out_is_one_failure_and_one_fallback(new_async_world: NewAsyncWorld) -> None:
    async def main() -> None:
        async with new_async_world() as world:
            breaker = world.breaker(failure_threshold=2, timeout_ms=20)
            fell_back: list[BaseException] = []

            async def stubborn() -> str:
                try:
                    await asyncio.Event().wait()
                finally:
                    raise DownError

            def fallback(error: BaseException) -> str:
                fell_back.append(error)
                return "instead"

            assert await breaker.execute_async(stubborn, fallback=fallback, fallback_on="failure") == "instead"
            assert [type(error) for error in fell_back] == [CallTimeoutError]
            assert (await snapshot_of(breaker)).failures_in_window == 1

    asyncio.run(main())


def test_scenario_29_a_timeout_of_one_call_ends_no_other(new_async_world: NewAsyncWorld) -> None:
    async def main() -> None:
        async with new_async_world() as world:
            breaker = world.breaker()
            end = asyncio.Event()
            patient = asyncio.create_task(breaker.execute_async(end.wait, timeout_ms=60_000))
            with pytest.raises(CallTimeoutError) as raised:
                await breaker.execute_async(end.wait, timeout_ms=20)
            assert raised.value.timeout_ms == 20
            end.set()
            assert await patient

    asyncio.run(main())


def test_scenario_30_a_retry_loop_stops_at_the_refusal(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=3, open_duration_ms=12_300)
        attempts = 0
        last: Exception | None = None
        while attempts < 100 and getattr(last, "retryable", True):
            attempts += 1
            try:
                breaker.execute(fail)
            except Exception as error:
                last = error
        assert attempts == 4
        assert isinstance(last, CircuitOpenError)
        assert (last.retry_after_ms, last.retry_after, last.status_code) == (12_300, 12.3, 503)
        assert last.headers == {"Retry-After": "13"}
        assert str(last) == f"circuit `{breaker.name}` is open, retry in 12.3 s (last failure: ECONNREFUSED)"
        # Nor does it look like what retries usually wait for.
        assert not isinstance(last, (OSError, TimeoutError, asyncio.TimeoutError))


@pytest.mark.filterwarnings("ignore")
def test_scenario_31_a_classifier_that_raises_leaves_the_caller_the_original_error(new_world: NewWorld) -> None:
    with new_world() as world:

        def broken(error: BaseException) -> bool:
            raise RuntimeError("a bug in the classifier")

        breaker = world.tripped(is_failure=broken)
        with pytest.raises(DownError):
            breaker.execute(fail)
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.half_open_in_flight, snapshot.trips) == ("open", 0, 2)


def test_scenario_31_a_classifier_of_results_that_raises_leaves_the_caller_the_value(new_world: NewWorld) -> None:
    with new_world() as world:

        def broken(value: object) -> bool:
            raise RuntimeError("a bug in the classifier")

        breaker = world.breaker(is_failure_result=broken)
        assert breaker.execute(succeed) == "ok"
        assert breaker.get_snapshot().failures_in_window == 1


def test_scenario_32_a_function_that_returns_none_is_a_success(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped()
        assert breaker.execute(lambda: None) is None
        assert breaker.get_state() == "closed"
        events = Heard.of(breaker).events

        def nothing() -> None:
            pass

        assert guarded(breaker, nothing)() is None
        assert events == ["success"]


def test_scenario_33_a_decorated_coroutine_function_counts_when_it_fails_not_when_it_is_called() -> None:
    async def main() -> None:
        breaker = CircuitBreaker("c", failure_threshold=1)
        guarded = breaker(fail_async)
        call = guarded()
        assert breaker.get_state() == "closed"
        with pytest.raises(DownError):
            await call
        assert breaker.get_state() == "open"
        with pytest.raises(CircuitOpenError):
            await guarded()

    asyncio.run(main())


@pytest.mark.parametrize("how", ["execute", "decorator"])
def test_scenario_33_a_sync_function_that_returns_an_awaitable_is_refused_loudly(new_world: NewWorld, how: str) -> None:
    with new_world() as world:
        breaker = world.tripped()

        def returns_a_coroutine() -> object:
            return fail_async()

        call = breaker(returns_a_coroutine) if how == "decorator" else lambda: breaker.execute(returns_a_coroutine)
        with pytest.raises(TypeError, match=r"execute_async|switchgear\.redis\.asyncio"):
            call()
        # The mistake is the caller's: nothing is counted, and the slot is free. The coroutine was closed: no warning.
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.half_open_in_flight) == ("half-open", 0)


def yields_then_fails() -> Generator[int, None, str]:
    yield 1
    raise DownError


def yields_then_returns() -> Generator[int, None, str]:
    yield 1
    yield 2
    return "three"


async def yields_then_fails_async() -> AsyncGenerator[int, None]:
    yield 1
    raise DownError


def test_scenario_34_a_generator_that_yields_once_and_then_raises_counts(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=1)
        steps = breaker(yields_then_fails)()
        assert next(steps) == 1
        assert breaker.get_state() == "closed"
        with pytest.raises(DownError):
            next(steps)
        assert breaker.get_state() == "open"


def test_scenario_34_exhausting_a_generator_keeps_its_return_value(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped()

        def whole() -> Generator[int, None, str]:
            return (yield from breaker(yields_then_returns)())

        steps = whole()
        assert next(steps) == 1
        assert breaker.get_snapshot().half_open_in_flight == 1
        assert next(steps) == 2
        with pytest.raises(StopIteration) as ended:
            next(steps)
        assert ended.value.value == "three"
        assert breaker.get_state() == "closed"


def test_scenario_34_closing_a_generator_early_is_neutral(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped()
        steps = breaker(yields_then_fails)()
        assert next(steps) == 1
        assert breaker.get_snapshot().half_open_in_flight == 1
        steps.close()
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.half_open_in_flight, snapshot.half_open_successes) == ("half-open", 0, 0)


def test_scenario_34_an_async_generator_alike(new_async_world: NewAsyncWorld) -> None:
    async def main() -> None:
        async with new_async_world() as world:
            breaker = world.breaker(failure_threshold=1, open_duration_ms=1000)
            steps = breaker(yields_then_fails_async)()
            assert await anext(steps) == 1
            with pytest.raises(DownError):
                await anext(steps)
            assert (await snapshot_of(breaker)).state == "open"
            with pytest.raises(CircuitOpenError):
                await anext(breaker(yields_then_fails_async)())
            world.clock.now += 1000
            probe = breaker(yields_then_fails_async)()
            assert await anext(probe) == 1
            await probe.aclose()
            await slots_are_free(breaker)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("how", "event"),
    [
        ("success", "success"),
        ("failure", "failure"),
        ("ignored", "ignored"),
        ("refused", "refused"),
        ("slow", "failure"),
        ("bad result", "failure"),
        ("interrupt", "ignored"),
    ],
)
def test_scenario_36_each_call_emits_exactly_one_event_and_runs_once(new_world: NewWorld, how: str, event: str) -> None:
    with new_world() as world:
        breaker = world.breaker(ignore=NotFoundError, slow_call_ms=10, is_failure_result=lambda value: value == "bad")
        heard = Heard.of(breaker)
        if how == "refused":
            breaker.force_open()
        ran: list[str] = []

        def body() -> str:
            ran.append(how)
            if how == "failure":
                raise DownError
            if how == "ignored":
                raise NotFoundError
            if how == "interrupt":
                raise KeyboardInterrupt
            if how == "slow":
                world.clock.now += 11
            return "bad" if how == "bad result" else "ok"

        with suppress(DownError, NotFoundError, CircuitOpenError, KeyboardInterrupt):
            breaker.execute(body)
        assert heard.events == [event]
        assert len(ran) == (0 if how == "refused" else 1)


@pytest.mark.parametrize(("how", "event"), [("timeout", "failure"), ("cancelled", "ignored")])
def test_scenario_36_so_does_each_awaited_call(new_async_world: NewAsyncWorld, how: str, event: str) -> None:
    async def main() -> None:
        async with new_async_world() as world:
            breaker = world.breaker()
            heard = Heard.of(breaker)
            ran: list[str] = []
            begun = asyncio.Event()

            async def body() -> None:
                ran.append(how)
                begun.set()
                await asyncio.Event().wait()

            call = asyncio.create_task(breaker.execute_async(body, timeout_ms=5 if how == "timeout" else None))
            await begun.wait()
            if how == "cancelled":
                call.cancel()
            with pytest.raises((CallTimeoutError, asyncio.CancelledError)):
                await call
            assert heard.events == [event]
            assert ran == [how]

    asyncio.run(main())


def test_scenario_43_an_ignored_class_with_a_metaclass_ignores_only_itself(new_world: NewWorld) -> None:
    with new_world() as world:
        from abc import ABCMeta

        class OursError(Exception, metaclass=ABCMeta):
            pass

        breaker = world.breaker(ignore=OursError)

        def raising(error: Exception) -> Callable[[], None]:
            def call() -> None:
                raise error

            return call

        for error in (OursError(), DownError(), KeyError("k"), OursError()):
            with pytest.raises(type(error)):
                breaker.execute(raising(error))
        assert breaker.get_snapshot().failures_in_window == 2


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_scenario_43_what_ends_the_program_stays_what_it_is_at_the_threshold(
    new_world: NewWorld, kind: type[BaseException]
) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=2)
        breaker.record_failure()
        error = kind()

        def ending() -> None:
            raise error

        calls: list[Callable[[], None]] = [lambda: breaker.execute(ending), guarded(breaker, ending)]
        for call in calls:
            with pytest.raises(kind) as raised:
                call()
            assert raised.value is error
        with pytest.raises(kind), breaker:
            raise error
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.failures_in_window) == ("closed", 1)


def test_a_refused_call_runs_nothing(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker()
        breaker.force_open()
        ran: list[str] = []
        refusal = refusal_of(lambda: breaker.execute(lambda: ran.append("ran")))
        assert (refusal.retry_after_ms, refusal.retry_after, refusal.headers) == (None, None, {})
        assert ran == []


def test_answers_of_an_async_world_are_awaited() -> None:
    assert asyncio.run(answer(succeed_async())) == "ok"
    assert asyncio.run(answer("ok")) == "ok"
