"""Threads: nothing is lost, nothing is told out of order, no lock is held while user code runs."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, NoReturn

import pytest
from support.clock import ManualClock
from support.threads import in_threads
from switchgear import CallEvent, CircuitBreaker, CircuitOpenError, StateChange


class BoomError(Exception):
    """A failure of the dependency."""


def fail() -> NoReturn:
    raise BoomError


@contextmanager
def impatient() -> Iterator[None]:
    """Has the threads take turns far more often than usual."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@pytest.mark.parametrize("trip_on", ["rolling", "consecutive"])
def test_a_threshold_is_reached_once(trip_on: Literal["rolling", "consecutive"]) -> None:
    breaker = CircuitBreaker("c", trip_on=trip_on, failure_threshold=40, clock=ManualClock())
    changes: list[StateChange] = []
    breaker.on("state_change", changes.append)
    ready = threading.Barrier(4)

    def calls() -> None:
        ready.wait(60)
        for _ in range(20):
            with pytest.raises((BoomError, CircuitOpenError)):
                breaker.execute(fail)

    with impatient():
        in_threads([calls] * 4)
    assert [(change.to_state, change.failures) for change in changes] == [("open", 40)]


def test_events_of_all_threads_are_told_each_once() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1_000_000)
    heard: list[CallEvent] = []
    breaker.on("success", heard.append)
    breaker.on("failure", heard.append)
    guarded = breaker(fail)

    def calls() -> None:
        for _ in range(50):
            breaker.execute(lambda: 1)
            with pytest.raises(BoomError):
                guarded()

    with impatient():
        in_threads([calls] * 4)
    assert len(heard) == 400
    assert sum(event.error is not None for event in heard) == 200


def test_listening_and_unlistening_from_many_threads() -> None:
    breaker = CircuitBreaker("c")
    heard: list[CallEvent] = []

    def comes_and_goes() -> None:
        for _ in range(100):
            off = breaker.on("success", heard.append)
            breaker.execute(lambda: 1)
            off()

    with impatient():
        in_threads([comes_and_goes] * 4)
    assert len(heard) >= 400
    assert breaker._machine.hot is not None


def test_probes_are_never_too_many() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", open_duration_ms=1000, half_open_max_calls=3, success_threshold=100, clock=clock)
    breaker.trip()
    clock.now += 1000
    inside: list[int] = []
    most: list[int] = []

    def probes() -> None:
        for _ in range(50):
            try:
                with breaker:
                    inside.append(1)
                    most.append(len(inside))
                    inside.pop()
            except CircuitOpenError:
                pass

    with impatient():
        in_threads([probes] * 4)
    assert max(most) <= 3
    assert breaker.get_snapshot().half_open_in_flight == 0


@pytest.mark.thread_unsafe(reason="the collector is the whole process's")
def test_a_generator_that_the_collector_closes_may_tell_listeners() -> None:
    breaker = CircuitBreaker("c")
    heard: list[CallEvent] = []

    def listener(event: CallEvent) -> None:
        heard.append(event)
        assert breaker.execute(lambda: 1) == 1
        breaker.trip()

    @breaker
    def steps() -> Iterator[int]:
        yield 1

    breaker.on("ignored", listener)
    for _ in range(2):
        ring: list[Any] = [steps()]
        ring.append(ring)
        next(ring[0])
        del ring
        gc.collect()
        breaker.reset()
    assert len(heard) == 2


def test_no_lock_is_held_while_a_function_runs() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1)
    breaker.on("success", lambda event: None)
    inside = threading.Barrier(3)
    in_threads([lambda: breaker.execute(lambda: inside.wait(60))] * 3)
    assert not inside.broken
