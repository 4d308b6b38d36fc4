"""What nobody settles any more gives its slot back: an exception can come between any two steps of Python."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from support.clock import ManualClock
from switchgear import CircuitBreaker, CircuitBreakerState, StateChange


def probing(clock: Callable[[], int], **policy: Any) -> CircuitBreaker:
    breaker = CircuitBreaker("c", open_duration_ms=1000, half_open_max_calls=2, clock=clock, **policy)
    breaker.trip()
    return breaker


def in_flight(breaker: CircuitBreaker) -> int:
    return breaker.get_snapshot().half_open_in_flight


@contextmanager
def recursion_limit(limit: int) -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(limit)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


class LostError(BaseException):
    """Between an admission and the call."""


def lose(breaker: CircuitBreaker) -> None:
    """An admission that nobody gets to hear of."""

    def interrupt(change: StateChange) -> None:
        raise LostError

    off = breaker.on("state_change", interrupt)
    with pytest.raises(LostError):
        breaker.acquire()
    off()


def test_an_admission_that_nobody_hears_of_is_released() -> None:
    clock = ManualClock()
    breaker = probing(clock)
    clock.now += 1000
    lose(breaker)
    gc.collect()
    assert in_flight(breaker) == 0
    assert breaker.get_state() == "half-open"


def test_it_takes_no_other_probes_slot_however_old_it_is() -> None:
    clock = ManualClock()
    breaker = probing(clock, probe_timeout_ms=1_000_000)
    clock.now += 1000
    old = breaker.execute(lambda: (number for number in (1, 2)))
    clock.now += 120_000
    young = breaker.acquire()
    assert in_flight(breaker) == 2
    old.close()
    assert in_flight(breaker) == 1
    assert young.release() == "applied"
    assert in_flight(breaker) == 0


def test_what_was_handed_out_keeps_its_slot_for_it_may_be_settled_without() -> None:
    clock = ManualClock()
    breaker = probing(clock)
    clock.now += 1000
    breaker.acquire()
    assert breaker.can_execute()
    gc.collect()
    assert in_flight(breaker) == 2
    assert breaker.record_success() == "applied"
    assert breaker.get_state() == "closed"


def test_so_it_does_in_the_bare_machine() -> None:
    state = CircuitBreakerState(failure_threshold=1, open_duration_ms=1000)
    state.trip(0)
    assert state.acquire(1000) is not None
    assert not state.can_request(1000)
    gc.collect()
    assert state.snapshot(1000).half_open_in_flight == 1


def call(breaker: CircuitBreaker) -> None:
    breaker.execute(lambda: None)


def block(breaker: CircuitBreaker) -> None:
    with breaker:
        pass


def acquire(breaker: CircuitBreaker) -> None:
    breaker.acquire().record_success()


@pytest.mark.parametrize("way", [call, block, acquire])
def test_an_interrupt_between_admission_and_call(way: Callable[[CircuitBreaker], None]) -> None:
    clock = ManualClock()
    breaker = probing(clock)
    clock.now += 1000

    def interrupt(change: StateChange) -> None:
        if change.to_state == "half-open":
            raise KeyboardInterrupt

    breaker.on("state_change", interrupt)
    with pytest.raises(KeyboardInterrupt):
        way(breaker)
    gc.collect()
    assert breaker.get_state() == "half-open"
    assert in_flight(breaker) == 0


@pytest.mark.thread_unsafe(reason="changes the recursion limit of all threads")
@pytest.mark.parametrize("way", [call, block])
def test_the_end_of_the_stack_at_any_depth(way: Callable[[CircuitBreaker], None]) -> None:
    def deeper(depth: int, breaker: CircuitBreaker) -> None:
        if depth > 0:
            deeper(depth - 1, breaker)
        else:
            way(breaker)

    clock = ManualClock()
    met_the_end = 0
    for depth in range(140, 200):
        breaker = probing(clock, success_threshold=2)
        clock.now += 1000
        other = breaker.acquire()
        with recursion_limit(220):
            try:
                deeper(depth, breaker)
            except RecursionError:
                met_the_end += 1
        if in_flight(breaker) > 1:
            gc.collect()
        assert in_flight(breaker) == 1, depth
        other.release()
    assert met_the_end > 0


@pytest.mark.parametrize("policy", [{}, {"slow_call_ms": 5}])
def test_a_clock_of_whole_floats(policy: dict[str, Any]) -> None:
    clock = ManualClock()
    breaker = probing(lambda: float(clock.now), **policy)  # type: ignore[arg-type,return-value]  # as people write it
    heard: list[object] = []
    breaker.on("success", heard.append)
    clock.now += 1000
    with suppress(TypeError), breaker:
        pass
    assert len(heard) == 1
    assert in_flight(breaker) == 0
    assert breaker.get_state() == "closed"
