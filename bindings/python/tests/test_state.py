"""The machine alone: the caller has the time."""

from __future__ import annotations

from typing import Any

import pytest
from switchgear import CircuitBreakerState, InvalidTimeError, Snapshot


def test_it_runs_by_the_time_it_is_given() -> None:
    state = CircuitBreakerState(failure_threshold=2, open_duration_ms=1000)
    assert state.can_request(0)
    assert state.record_failure(1) == "applied"
    assert state.record_failure(2) == "applied"
    assert state.get_state() == "open"
    assert not state.can_request(1001)
    assert state.retry_after_ms(1001) == 1
    assert state.snapshot(1002) == Snapshot("open", "auto", 0, 0, 0, 0, 0, 2, 0, 1, 2)
    permit = state.acquire(1002)
    assert permit is not None
    assert permit.probe
    assert state.acquire(1002) is None
    assert permit.record_success(1003) == "applied"
    assert permit.record_success(1003) == "duplicate"
    assert state.get_state() == "closed"
    assert state.retry_after_ms(1003) == 0


def test_manual_control() -> None:
    state = CircuitBreakerState(open_duration_ms=1000)
    state.trip(5, 50)
    assert state.retry_after_ms(5) == 50
    state.trip(5)
    assert state.retry_after_ms(5) == 1000
    state.force_open(5)
    assert state.retry_after_ms(5) is None
    assert not state.can_request(10**9)
    state.disable(5)
    assert state.can_request(5)
    assert state.record_failure(5) == "stale"
    state.reset(6)
    assert state.snapshot(6).mode == "auto"
    assert state.release(6) == state.record_success(6) == "applied"
    assert repr(state) == "<CircuitBreakerState: closed>"
    state.force_open(1_000_000)
    assert repr(state) == "<CircuitBreakerState: open (forced-open)>"


@pytest.mark.parametrize("now", [-1, 2**52 + 1, 0.5, float("nan"), "0", None, True, 10**30])
def test_what_is_no_time_changes_nothing(now: Any) -> None:
    state = CircuitBreakerState(failure_threshold=1)
    permit = state.acquire(0)
    assert permit is not None
    for ask in (
        state.can_request,
        state.record_success,
        state.record_failure,
        state.release,
        state.acquire,
        state.retry_after_ms,
        state.snapshot,
        state.reset,
        state.trip,
        state.force_open,
        state.disable,
        permit.record_failure,
    ):
        with pytest.raises(InvalidTimeError):
            ask(now)
    assert state.get_state() == "closed"
    assert permit.record_failure(0) == "applied"


def test_a_whole_float_is_a_time() -> None:
    state = CircuitBreakerState()
    assert state.can_request(5.0)  # type: ignore[arg-type]  # as a clock in seconds times 1000 may give
    assert state.can_request(2**52)


def test_a_long_life_leaves_nothing_behind() -> None:
    state = CircuitBreakerState(failure_threshold=1, open_duration_ms=1)
    for now in range(0, 2000, 2):
        assert state.can_request(now)
        state.record_failure(now)
    assert state._machine.take_transitions() == []
