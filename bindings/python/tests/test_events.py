"""What is told, in which order, and what listeners cannot break."""

from __future__ import annotations

import asyncio
import os
import threading
from functools import partial
from typing import Any, NoReturn
from unittest.mock import AsyncMock
from uuid import uuid4

import pytest
from support.clock import ManualClock
from support.logs import logged
from switchgear import CallEvent, CircuitBreaker, CircuitBreakerGroup, CircuitOpenError, StateChange, _native


class BoomError(Exception):
    """A failure of the dependency."""


def fail() -> NoReturn:
    raise BoomError("down")


EVENTS = ("state_change", "success", "failure", "ignored", "refused")


def listened(breaker: CircuitBreaker) -> list[tuple[str, Any]]:
    """All that a breaker tells from now on."""
    heard: list[tuple[str, Any]] = []
    for event in EVENTS:
        breaker.on(event, lambda told, event=event: heard.append((event, told)))  # type: ignore[call-overload]  # each
    return heard


def test_a_life_as_it_is_told() -> None:
    clock = ManualClock(1000)
    breaker = CircuitBreaker("billing", failure_threshold=2, open_duration_ms=100, clock=clock, ignore=LookupError)
    heard = listened(breaker)

    def slow() -> int:
        clock.now += 7
        return 1

    def ignored() -> NoReturn:
        raise LookupError

    breaker.execute(slow)
    with pytest.raises(LookupError):
        breaker.execute(ignored)
    for _ in range(2):
        with pytest.raises(BoomError):
            breaker.execute(fail)
    with pytest.raises(CircuitOpenError):
        breaker.execute(slow)
    clock.now += 100
    breaker.execute(slow)
    breaker.force_open()

    assert [event for event, _ in heard] == [
        "success",
        "ignored",
        "failure",
        "state_change",
        "failure",
        "refused",
        "state_change",
        "state_change",
        "success",
        "state_change",
    ]
    told = [told for _, told in heard]
    assert told[0] == CallEvent("billing", 1007, 7)
    assert isinstance(told[1].error, LookupError)
    assert told[3] == StateChange("billing", "closed", "open", 1007, 2, 100, "threshold")
    assert isinstance(told[4].error, BoomError)
    assert isinstance(told[5].error, CircuitOpenError)
    assert told[5].duration_ms is None
    assert told[6] == StateChange("billing", "open", "half-open", 1107, 0, None, "cooldown")
    assert told[7] == StateChange("billing", "half-open", "closed", 1114, 0, None, "probes-succeeded")
    assert told[9] == StateChange("billing", "closed", "open", 1114, 0, None, "manual")
    assert told[9].source == "local"
    assert told[9].instance is None


def test_who_hears_of_a_trip_is_told_why() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1)
    reasons: list[str | None] = []

    def refused_already(change: StateChange) -> None:
        if change.to_state == "open":
            with pytest.raises(CircuitOpenError) as caught:
                breaker.acquire()
            reasons.append(caught.value.last_failure)

    breaker.on("state_change", refused_already)
    with pytest.raises(BoomError):
        breaker.execute(fail)
    assert reasons == ["down"]


def test_a_close_forgets_the_last_failure() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1)
    with pytest.raises(BoomError):
        breaker.execute(fail)
    breaker.reset()
    breaker.trip()
    with pytest.raises(CircuitOpenError) as caught:
        breaker.acquire()
    assert caught.value.last_failure is None


def test_a_stale_failure_is_not_the_last_one() -> None:
    breaker = CircuitBreaker("c")
    permit = breaker.acquire()
    breaker.trip()
    assert permit.record_failure(BoomError("late")) == "stale"
    with pytest.raises(CircuitOpenError) as caught:
        breaker.acquire()
    assert caught.value.last_failure is None


def test_unsubscribing() -> None:
    breaker = CircuitBreaker("c")
    heard: list[CallEvent] = []
    off = breaker.on("success", heard.append)
    again = breaker.on("success", heard.append)
    breaker.execute(lambda: 1)
    assert len(heard) == 2
    off()
    off()
    breaker.execute(lambda: 1)
    assert len(heard) == 3
    again()
    breaker.execute(lambda: 1)
    assert len(heard) == 3
    assert breaker._machine.hot is not None


def test_a_listener_may_unsubscribe_itself_and_others() -> None:
    breaker = CircuitBreaker("c")
    heard: list[str] = []

    def once(event: CallEvent) -> None:
        heard.append("once")
        off()

    off = breaker.on("success", once)
    breaker.on("success", lambda event: heard.append("always"))
    breaker.execute(lambda: 1)
    breaker.execute(lambda: 1)
    assert heard == ["once", "always", "always"]


@pytest.mark.parametrize("event", ["stateChange", "sucess", "", 5, None, ["success"]])
def test_an_event_that_does_not_exist(event: Any) -> None:
    for source in (CircuitBreaker("c"), CircuitBreakerGroup()):
        with pytest.raises(TypeError, match="state_change"):
            source.on(event, lambda told: None)


def test_what_cannot_listen() -> None:
    breaker = CircuitBreaker("c")

    async def later(event: CallEvent) -> None:
        raise AssertionError("nobody awaits it")

    class Later:
        async def __call__(self, event: CallEvent) -> None:
            raise AssertionError("nobody awaits it")

    for wrong in (later, partial(later), Later(), AsyncMock(), 5, None):
        with pytest.raises(TypeError, match="listener"):
            breaker.on("success", wrong)  # type: ignore[call-overload]  # that is what is tested
    assert breaker._machine.hot is not None


def test_a_listener_that_gives_an_awaitable_is_reported_and_nothing_of_it_runs() -> None:
    name = str(uuid4())
    breaker = CircuitBreaker(name)

    async def later() -> None:
        raise AssertionError("nobody awaits it")

    with logged("has to be awaited") as warnings:
        breaker.on("success", lambda event: later())
        breaker.execute(lambda: 1)
    assert len(warnings) >= 1


def test_one_that_raises_harms_nobody_and_is_reported_once() -> None:
    breaker = CircuitBreaker("c")
    text = str(uuid4())
    heard: list[CallEvent] = []

    def broken(event: CallEvent) -> None:
        raise BoomError(f"{text} at redis://user:secret@host")

    breaker.on("success", broken)
    breaker.on("success", heard.append)
    with logged(text) as warnings:
        for _ in range(3):
            assert breaker.execute(lambda: "ok") == "ok"
    assert len(heard) == 3
    assert len(warnings) == 1
    assert "BoomError" in warnings[0]
    assert "secret" not in warnings[0]


def test_an_interrupt_in_a_listener_comes_through_and_the_rest_is_told_later() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1)
    heard = listened(breaker)
    interrupts = [KeyboardInterrupt()]

    def interrupted(change: StateChange) -> None:
        if interrupts:
            raise interrupts.pop()

    breaker.on("state_change", interrupted)
    with pytest.raises(KeyboardInterrupt):
        breaker.execute(fail)
    assert breaker.get_state() == "open"
    breaker.reset()
    assert [told.to_state for event, told in heard if event == "state_change"] == ["open", "closed"]


def test_a_listener_that_causes_events_hears_them_in_order() -> None:
    breaker = CircuitBreaker("c")
    heard: list[str] = []

    def causes(change: StateChange) -> None:
        heard.append(f"first {change.to_state}")
        if change.to_state == "open" and len(heard) < 4:
            breaker.reset()
            breaker.trip()

    breaker.on("state_change", causes)
    breaker.on("state_change", lambda change: heard.append(f"second {change.to_state}"))
    breaker.trip()
    assert heard == [f"{who} {what}" for what in ("open", "closed", "open") for who in ("first", "second")]


def test_no_lock_is_held_while_a_listener_runs() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1)
    told = threading.Event()
    go_on = threading.Event()

    def waits(change: StateChange) -> None:
        told.set()
        assert go_on.wait(60)

    off = breaker.on("state_change", waits)
    thread = threading.Thread(target=breaker.trip)
    thread.start()
    assert told.wait(60)
    off()
    assert breaker.get_state() == "open"
    breaker.reset()
    assert breaker.execute(lambda: 1) == 1
    breaker.on("success", lambda event: None)
    go_on.set()
    thread.join()


def test_each_call_tells_once_whatever_way_it_came() -> None:
    breaker = CircuitBreaker("c", failure_threshold=100)
    heard = listened(breaker)

    @breaker
    def guarded() -> int:
        return 1

    @breaker
    async def guarded_async() -> int:
        return 1

    @breaker
    def steps() -> Any:
        yield 1

    async def main() -> None:
        await guarded_async()
        await breaker.execute_async(guarded_async.__wrapped__)  # type: ignore[attr-defined]  # what it is made of
        async with breaker:
            pass

    guarded()
    breaker.execute(lambda: 1)
    with breaker:
        pass
    with breaker.acquire():
        pass
    list(steps())
    asyncio.run(main())
    assert [event for event, _ in heard] == ["success"] * 8
    assert all(told.duration_ms is not None for _, told in heard)


def test_a_clock_that_fails_at_the_end_of_a_call_hides_nothing_and_is_reported_once() -> None:
    name = str(uuid4())
    clock = ManualClock()
    breaker = CircuitBreaker(name, failure_threshold=1, clock=clock)
    heard = listened(breaker)

    def breaks_the_clock() -> NoReturn:
        clock.now = -1
        fail()

    with logged(name) as warnings:
        for _ in range(2):
            clock.now = 1000
            with pytest.raises(BoomError):
                breaker.execute(breaks_the_clock)
    assert len(warnings) == 1
    assert [event for event, _ in heard] == ["failure", "failure"]
    assert breaker.get_state() == "closed"
    clock.now = 1000
    assert breaker.execute(lambda: 1) == 1


def test_events_are_values() -> None:
    event = CallEvent("c", 1, None)
    assert event == CallEvent("c", 1, None, None)
    with pytest.raises(AttributeError):
        event.at = 2  # type: ignore[misc]  # that is what is tested


def test_listeners_that_are_too_slow_cost_no_memory_and_lose_no_state_change() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1_000_000)
    go_on, told, changes = threading.Event(), 0, []

    def slow(event: CallEvent) -> None:
        nonlocal told
        told += 1
        go_on.wait()

    breaker.on("success", slow)
    breaker.on("state_change", lambda change: changes.append(change.to_state))
    teller = threading.Thread(target=breaker.execute, args=(lambda: 1,))
    teller.start()
    while told == 0:
        go_on.wait(0.001)
    with logged("take longer than the calls they hear of") as warnings:
        for _ in range(10_100):
            breaker.execute(lambda: 1)
        breaker.trip()
    go_on.set()
    teller.join()
    breaker.reset()
    assert told == 10_001
    assert changes == ["open", "closed"]
    assert warnings


def test_a_turn_to_tell_ends_while_others_go_on_bringing() -> None:
    queue = _native.Queue()
    told: list[int] = []
    assert queue.begin() is None
    queue.push(lambda: told.append(1), True)
    with_others = threading.Thread(target=lambda: queue.push(lambda: told.append(2), True))
    with_others.start()
    with_others.join()
    turn = queue.begin()
    assert turn is not None
    assert queue.begin() is None
    for tell in turn:
        tell()
    assert turn.end()
    assert told == [1, 2]
    assert queue.begin() is None


@pytest.mark.thread_unsafe(reason="forks")
def test_a_child_does_not_tell_what_its_parent_has_not_told_yet() -> None:
    queue = _native.Queue()
    told: list[str] = []
    queue.push(lambda: told.append("parent's"), False)
    child = os.fork()
    if child == 0:
        queue.push(lambda: told.append("child's"), False)
        turn = queue.begin()
        for tell in turn or ():
            tell()
        os._exit(0 if told == ["child's"] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(queue) == 1
