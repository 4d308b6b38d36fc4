"""Blocks: which permit each runs under, whatever else is under the same breaker at the time."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from types import TracebackType
from typing import Any

import pytest
from support.clock import ManualClock
from switchgear import CallEvent, CircuitBreaker, CircuitOpenError, Permit


class BoomError(Exception):
    """A failure of the dependency."""


def probing(calls: int = 10, **policy: Any) -> CircuitBreaker:
    """A breaker whose next calls are probes, so that each permit matters."""
    clock = ManualClock()
    options = {"open_duration_ms": 1000, "half_open_max_calls": calls, "success_threshold": calls, **policy}
    breaker = CircuitBreaker("c", clock=clock, **options)
    breaker.trip()
    clock.now += 1000
    return breaker


def in_flight(breaker: CircuitBreaker) -> int:
    return breaker.get_snapshot().half_open_in_flight


def successes(breaker: CircuitBreaker) -> int:
    return breaker.get_snapshot().half_open_successes


def run(main: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(main())


POLICIES: dict[str, dict[str, Any]] = {
    "rolling": {},
    "consecutive": {"trip_on": "consecutive"},
    "rate": {"trip_on": "rate"},
    "timed": {"slow_call_ms": 60_000},
}
policies = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)


@policies
def test_a_block_is_one_call(policy: dict[str, Any]) -> None:
    breaker = probing(calls=1, **policy)
    with breaker as permit:
        assert permit.probe
        assert in_flight(breaker) == 1
    assert breaker.get_state() == "closed"
    with breaker as permit:
        assert not permit.probe
    if "trip_on" not in policy:
        for _ in range(5):
            with pytest.raises(BoomError), breaker:
                raise BoomError
        assert breaker.get_state() == "open"
    breaker.force_open()
    with pytest.raises(CircuitOpenError), breaker:
        raise AssertionError("it is refused")


@policies
def test_an_exception_comes_through_as_it_is(policy: dict[str, Any]) -> None:
    breaker = CircuitBreaker("c", **policy)
    boom = BoomError()
    with pytest.raises(BoomError) as caught, breaker:
        raise boom
    assert caught.value is boom
    assert boom.__context__ is None
    snapshot = breaker.get_snapshot()
    assert max(snapshot.failures_in_window, snapshot.consecutive_failures) == 1


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError])
def test_what_is_no_exception_is_neutral(kind: type[BaseException]) -> None:
    breaker = probing(calls=1)
    with pytest.raises(kind), breaker:
        raise kind
    assert (in_flight(breaker), breaker.get_state()) == (0, "half-open")


def test_leaving_a_block_in_the_ordinary_ways_is_a_success() -> None:
    breaker = probing()

    def returns() -> str:
        with breaker:
            return "returned"

    for _ in range(1):
        with breaker:
            break
    for _ in range(1):
        with breaker:
            continue
    assert returns() == "returned"
    assert (in_flight(breaker), successes(breaker)) == (0, 3)


@policies
@pytest.mark.parametrize("way", ["record_success", "record_failure", "release"])
def test_a_permit_settled_by_hand_is_not_settled_again(policy: dict[str, Any], way: str) -> None:
    heard: list[str] = []
    breaker = CircuitBreaker("c", **policy)
    for event in ("success", "failure", "ignored"):
        breaker.on(event, lambda _, event=event: heard.append(event))
    with breaker as permit:
        assert getattr(permit, way)() == "applied"
    with pytest.raises(BoomError), breaker as other:
        assert getattr(other, way)() == "applied"
        raise BoomError
    assert heard == [{"record_success": "success", "record_failure": "failure", "release": "ignored"}[way]] * 2
    for one in (permit, other):
        assert one.record_success() == one.record_failure() == one.release() == "duplicate"


def test_blocks_within_blocks_of_one_function() -> None:
    breaker = probing()
    with breaker as first:
        with breaker as second:
            with breaker as third:
                assert len({id(first), id(second), id(third)}) == 3
                assert in_flight(breaker) == 3
                third.release()
            assert in_flight(breaker) == 2
            with pytest.raises(KeyboardInterrupt), breaker:
                raise KeyboardInterrupt
            assert in_flight(breaker) == 2
        assert (in_flight(breaker), successes(breaker)) == (1, 1)
    with breaker, breaker, breaker:
        assert in_flight(breaker) == 3
    assert (in_flight(breaker), successes(breaker)) == (0, 5)
    assert first.release() == second.release() == "duplicate"


def test_the_outer_of_two_blocks_may_be_settled_by_hand() -> None:
    breaker = probing()
    with breaker as outer, breaker:
        outer.release()
    assert (in_flight(breaker), successes(breaker)) == (0, 1)


def test_recursion() -> None:
    breaker = probing(calls=20)
    permits: list[Permit] = []

    def down(depth: int) -> None:
        with breaker as permit:
            permits.append(permit)
            if depth:
                down(depth - 1)
            assert in_flight(breaker) == 11 - depth
        assert permit.release() == "duplicate"

    down(10)
    assert len(permits) == successes(breaker) == 11


def test_generators_with_a_block_interleaved_on_one_thread() -> None:
    breaker = probing()

    def held() -> Generator[Permit, None, None]:
        with breaker as permit:
            yield permit

    one, other = held(), held()
    first, second = next(one), next(other)
    one.close()  # the elder first: its own permit, neutral
    assert first.release() == "duplicate"
    assert in_flight(breaker) == 1
    assert list(other) == []
    assert second.release() == "duplicate"
    assert (in_flight(breaker), successes(breaker)) == (0, 1)


def test_a_generator_with_a_block_that_is_dropped() -> None:
    breaker = probing()

    def held() -> Iterator[Permit]:
        with breaker as permit:
            yield permit

    steps = held()
    permit = next(steps)
    with breaker:
        del steps
        gc.collect()
        assert in_flight(breaker) == 1
    assert permit.release() == "duplicate"


def test_a_generator_that_is_resumed_by_another_thread() -> None:
    breaker = probing()

    def held() -> Iterator[Permit]:
        with breaker as permit:
            yield permit

    steps = held()
    with breaker:
        permit = next(steps)
        thread = threading.Thread(target=lambda: list(steps))
        thread.start()
        thread.join()
        assert permit.release() == "duplicate"
        assert (in_flight(breaker), successes(breaker)) == (1, 1)
    assert (in_flight(breaker), successes(breaker)) == (0, 2)


def test_threads() -> None:
    breaker = probing(calls=8)
    inside = threading.Barrier(8)

    def block(number: int) -> None:
        try:
            with breaker as permit:
                permits.append(permit)
                inside.wait(60)
                if number % 2:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            pass

    permits: list[Permit] = []
    threads = [threading.Thread(target=block, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (in_flight(breaker), successes(breaker)) == (0, 4)
    assert all(permit.release() == "duplicate" for permit in permits)


def test_tasks() -> None:
    async def main() -> None:
        breaker = probing(calls=8)
        gates = [asyncio.Event() for _ in range(8)]

        async def block(number: int) -> None:
            if number % 2:
                async with breaker:
                    await gates[number].wait()
            else:
                with breaker:
                    await gates[number].wait()

        tasks = [asyncio.ensure_future(block(number)) for number in range(8)]
        await asyncio.sleep(0)
        assert in_flight(breaker) == 8
        for number in (3, 0, 7, 4):
            tasks[number].cancel()
            with pytest.raises(asyncio.CancelledError):
                await tasks[number]
        assert (in_flight(breaker), successes(breaker)) == (4, 0)
        for number in (6, 1, 5, 2):
            gates[number].set()
            await tasks[number]
        assert (in_flight(breaker), successes(breaker)) == (0, 4)

    run(main)


class TestStacks:
    def test_an_exit_stack(self) -> None:
        breaker = probing()
        with ExitStack() as stack:
            first = stack.enter_context(breaker)
            second = stack.enter_context(breaker)
            assert first is not second
            with breaker:
                assert in_flight(breaker) == 3
            assert first.release() == "applied"
            assert in_flight(breaker) == 1
        assert (in_flight(breaker), successes(breaker)) == (0, 2)
        assert second.release() == "duplicate"

    def test_an_exception_within_an_exit_stack(self) -> None:
        breaker = probing()
        with pytest.raises(BoomError), ExitStack() as stack:
            stack.enter_context(breaker)
            raise BoomError
        assert breaker.get_state() == "open"

    def test_a_stack_that_is_closed_elsewhere(self) -> None:
        breaker = probing()

        def opened() -> ExitStack:
            stack = ExitStack()
            stack.enter_context(breaker)
            return stack

        stack = opened()
        with breaker:
            stack.close()
            assert (in_flight(breaker), successes(breaker)) == (1, 1)
        other = opened()
        thread = threading.Thread(target=other.close)
        thread.start()
        thread.join()
        assert (in_flight(breaker), successes(breaker)) == (0, 3)

    def test_stacks_of_threads_do_not_mix(self) -> None:
        breaker = probing(calls=4)
        entered, left = threading.Barrier(4), threading.Barrier(4)
        wrong: list[object] = []

        def block() -> None:
            with ExitStack() as stack:
                permit = stack.enter_context(breaker)
                entered.wait(60)
            if permit.release() != "duplicate":
                wrong.append(permit)
            left.wait(60)

        threads = [threading.Thread(target=block) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert wrong == []
        assert breaker.get_state() == "closed"

    def test_async_exit_stacks_of_tasks_do_not_mix(self) -> None:
        async def main() -> None:
            breaker = probing(calls=4)
            gates = [asyncio.Event() for _ in range(4)]

            async def block(number: int) -> None:
                async with AsyncExitStack() as stack:
                    permit = await stack.enter_async_context(breaker)
                    stack.enter_context(breaker).release()
                    await gates[number].wait()
                assert permit.release() == "duplicate"

            breaker.reset()
            tasks = [asyncio.ensure_future(block(number)) for number in range(4)]
            await asyncio.sleep(0)
            for number in (0, 3, 1, 2):
                gates[number].set()
                await tasks[number]

        run(main)

    def test_a_context_manager_made_of_a_generator(self) -> None:
        breaker = probing()

        @contextmanager
        def connection() -> Iterator[str]:
            with breaker:
                yield "connected"

        with connection(), connection():
            assert in_flight(breaker) == 2
        with pytest.raises(BoomError), connection():
            raise BoomError
        assert breaker.get_state() == "open"


class Part:
    """A context manager that has a breaker for a part."""

    def __init__(self, breaker: CircuitBreaker) -> None:
        self.breaker = breaker

    def __enter__(self) -> Permit:
        return self.breaker.__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.breaker.__exit__(kind, error, trace)


class Child(CircuitBreaker):
    """A breaker whose blocks do more."""

    def __enter__(self) -> Permit:
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)


def test_a_breaker_within_another_context_manager() -> None:
    breaker = probing()
    part = Part(breaker)
    with part as first:
        with part as second, breaker as third:
            assert in_flight(breaker) == 3
        assert second.release() == third.release() == "duplicate"
        assert in_flight(breaker) == 1
    assert first.release() == "duplicate"
    assert (in_flight(breaker), successes(breaker)) == (0, 3)


def test_a_subclass() -> None:
    child = Child("c", failure_threshold=1)
    with child, child as permit:
        pass
    assert permit.release() == "duplicate"
    with pytest.raises(BoomError), child:
        raise BoomError
    assert child.get_state() == "open"


def test_called_by_hand() -> None:
    breaker = probing()

    def begin() -> Permit:
        return breaker.__enter__()

    def end() -> None:
        breaker.__exit__(None, None, None)

    permit = begin()
    with breaker:
        end()
        assert permit.release() == "duplicate"
        assert in_flight(breaker) == 1
    with pytest.raises(RuntimeError):
        end()


class TestPermits:
    @policies
    def test_a_permit_is_a_context_manager(self, policy: dict[str, Any]) -> None:
        breaker = probing(calls=1, **policy)
        with breaker.acquire() as permit:
            assert permit.probe
        assert breaker.get_state() == "closed"
        assert permit.release() == "duplicate"

    def test_what_leaves_its_block_is_classified(self) -> None:
        breaker = CircuitBreaker("c", failure_threshold=1, ignore=LookupError)
        with pytest.raises(LookupError), breaker.acquire():
            raise LookupError
        assert breaker.get_state() == "closed"
        with pytest.raises(BoomError), breaker.acquire():
            raise BoomError
        assert breaker.get_state() == "open"

    def test_it_settles_once_whichever_thread_comes_first(self) -> None:
        for _ in range(20):
            breaker = probing(calls=2)
            permit = breaker.acquire()
            ready = threading.Barrier(4)
            answers: list[str] = []

            def settle(permit: Permit = permit, ready: threading.Barrier = ready, answers: list[str] = answers) -> None:
                ready.wait(60)
                answers.append(permit.record_success())

            threads = [threading.Thread(target=settle) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(answers) == ["applied", "duplicate", "duplicate", "duplicate"]
            assert successes(breaker) == 1

    def test_a_clock_that_fails_settles_nothing(self) -> None:
        clock = ManualClock()
        breaker = CircuitBreaker("c", failure_threshold=1, clock=clock)
        permit = breaker.acquire()
        clock.now = -1
        with pytest.raises(ValueError, match="now"):
            permit.record_failure()
        clock.now = 1
        assert permit.record_failure() == "applied"

    def test_a_listener_that_settles_again_finds_it_settled(self) -> None:
        breaker = CircuitBreaker("c")
        answers: list[str] = []
        permit = breaker.acquire()

        def settle_again(event: CallEvent) -> None:
            answers.append(permit.record_failure())

        breaker.on("failure", settle_again)
        assert permit.record_failure() == "applied"
        assert answers == ["duplicate"]

    def test_it_shows_itself(self) -> None:
        breaker = CircuitBreaker("billing")
        permit = breaker.acquire()
        assert "billing" in repr(permit)
        assert "settled" not in repr(permit)
        permit.release()
        assert "settled" in repr(permit)


def test_a_stale_block_changes_nothing() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1)
    with pytest.raises(BoomError), breaker:
        breaker.reset()
        raise BoomError
    assert breaker.get_state() == "closed"


def aged(breaker: CircuitBreaker, clock: ManualClock) -> None:
    """Trips, and waits until the next call is a probe."""
    breaker.trip()
    clock.now += 1000


def test_stacks_that_end_in_another_order_than_they_began() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", open_duration_ms=1000, clock=clock)
    old, probe = ExitStack(), ExitStack()
    old.enter_context(breaker)
    aged(breaker, clock)
    assert probe.enter_context(breaker).probe
    old.close()
    assert breaker.get_state() == "half-open"
    assert in_flight(breaker) == 1
    probe.close()
    assert breaker.get_state() == "closed"


def test_a_stack_that_was_emptied_into_another_one() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", open_duration_ms=1000, clock=clock)
    aged(breaker, clock)
    with ExitStack() as stack:
        stack.enter_context(breaker)
        other = stack.pop_all()
    assert in_flight(breaker) == 1
    other.close()
    assert breaker.get_state() == "closed"


def test_objects_that_enter_it_for_themselves_and_leave_in_any_order() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", open_duration_ms=1000, clock=clock)

    class Session:
        def __enter__(self) -> Permit:
            return breaker.__enter__()

        def __exit__(self, *raised: Any) -> None:  # noqa: PYI036 - handed on
            breaker.__exit__(*raised)

    old, young = Session(), Session()
    assert not old.__enter__().probe
    aged(breaker, clock)
    assert young.__enter__().probe
    old.__exit__(None, None, None)
    assert breaker.get_state() == "half-open"
    young.__exit__(None, None, None)
    assert breaker.get_state() == "closed"


def test_async_stacks_that_end_in_another_order_than_they_began() -> None:
    async def main() -> None:
        clock = ManualClock()
        breaker = CircuitBreaker("c", open_duration_ms=1000, clock=clock)
        old, probe = AsyncExitStack(), AsyncExitStack()
        await old.enter_async_context(breaker)
        aged(breaker, clock)
        assert (await probe.enter_async_context(breaker)).probe
        await old.aclose()
        assert breaker.get_state() == "half-open"
        await probe.aclose()
        assert breaker.get_state() == "closed"

    asyncio.run(main())


def test_a_stack_handed_on_by_a_constructor() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", open_duration_ms=1000, clock=clock)

    class Session:
        def __init__(self) -> None:
            with ExitStack() as stack:
                self.permit = stack.enter_context(breaker)
                self._stack = stack.pop_all()

        def close(self) -> None:
            self._stack.close()

    old = Session()
    aged(breaker, clock)
    young = Session()
    assert young.permit.probe
    old.close()
    assert breaker.get_state() == "half-open"
    young.close()
    assert breaker.get_state() == "closed"


def test_begun_and_ended_by_hand_in_methods_of_one_object() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", open_duration_ms=1000, clock=clock)

    class Case:
        def set_up(self) -> None:
            breaker.__enter__()

        def tear_down(self) -> None:
            breaker.__exit__(None, None, None)

    old, young = Case(), Case()
    old.set_up()
    aged(breaker, clock)
    young.set_up()
    old.tear_down()
    assert breaker.get_state() == "half-open"
    young.tear_down()
    assert breaker.get_state() == "closed"


class Subclass(CircuitBreaker):
    def __enter__(self) -> Permit:
        return super().__enter__()

    def __exit__(self, *raised: Any) -> None:  # noqa: PYI036 - handed on
        super().__exit__(*raised)


class Wrapper:
    def __init__(self, breaker: CircuitBreaker) -> None:
        self.breaker = breaker

    def __enter__(self) -> Permit:
        return self.breaker.__enter__()

    def __exit__(self, *raised: Any) -> None:  # noqa: PYI036 - handed on
        self.breaker.__exit__(*raised)


@pytest.mark.parametrize("wrap", [lambda breaker: breaker, Wrapper], ids=["a subclass", "a wrapper"])
def test_generators_whose_blocks_come_in_through_another_method(wrap: Callable[[CircuitBreaker], Any]) -> None:
    clock = ManualClock()
    breaker = Subclass("c", open_duration_ms=1000, clock=clock)
    entered = wrap(breaker)

    def block() -> Generator[Permit, None, None]:
        with entered as permit:
            yield permit

    old = block()
    assert not next(old).probe
    aged(breaker, clock)
    young = block()
    assert next(young).probe
    assert next(old, None) is None
    assert breaker.get_state() == "half-open"
    assert next(young, None) is None
    assert breaker.get_state() == "closed"
