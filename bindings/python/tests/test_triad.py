"""Asking and reporting by hand."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.clock import ManualClock
from switchgear import CallEvent, CircuitBreaker, CircuitOpenError, InvalidTimeError


class BoomError(Exception):
    """A failure of the dependency."""


def test_the_triad_follows_the_same_rules_as_execute() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", failure_threshold=2, open_duration_ms=1000, half_open_max_calls=2, clock=clock)
    assert breaker.can_execute()
    assert breaker.record_success() == "applied"
    assert breaker.record_failure() == "applied"
    assert breaker.record_failure() == "applied"
    assert breaker.get_state() == "open"
    assert not breaker.can_execute()
    assert breaker.record_success() == breaker.record_failure() == breaker.release() == "stale"
    clock.now += 1000
    assert [breaker.can_execute() for _ in range(3)] == [True, True, False]
    assert breaker.release() == "applied"
    assert breaker.can_execute()
    assert breaker.record_success() == "applied"
    assert breaker.get_state() == "closed"


def test_with_an_error_the_classification_decides() -> None:
    breaker = CircuitBreaker(
        "c", failure_threshold=1, ignore=LookupError, is_failure=lambda error: "mine" not in str(error)
    )
    for neutral in (KeyError("x"), ValueError("mine"), KeyboardInterrupt(), asyncio.CancelledError()):
        assert breaker.record_failure(neutral) == "applied"
        assert breaker.acquire().record_failure(neutral) == "applied"
        assert breaker.get_state() == "closed"
    assert breaker.record_failure(ValueError("theirs")) == "applied"
    assert breaker.get_state() == "open"


@pytest.mark.parametrize("wrong", ["text", 5, ValueError])
def test_what_is_no_error(wrong: Any) -> None:
    breaker = CircuitBreaker("c")
    permit = breaker.acquire()
    for report in (breaker.record_failure, permit.record_failure):
        with pytest.raises(TypeError, match="`error` must be an exception"):
            report(wrong)
    assert permit.release() == "applied"
    assert breaker.get_snapshot().failures_in_window == 0


def test_acquire_raises_the_refusal() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("billing", failure_threshold=1, open_duration_ms=1000, clock=clock)
    breaker.record_failure(BoomError("down"))
    clock.now += 1
    with pytest.raises(CircuitOpenError) as caught:
        breaker.acquire()
    refusal = caught.value
    assert (refusal.circuit, refusal.state, refusal.retry_after_ms) == ("billing", "open", 999)
    assert refusal.last_failure == "down"
    clock.now += 999
    permit = breaker.acquire()
    assert permit.probe
    with pytest.raises(CircuitOpenError) as caught:
        breaker.acquire()
    assert (caught.value.state, caught.value.retry_after_ms) == ("half-open", 1000)
    assert permit.record_success() == "applied"
    assert not breaker.acquire().probe


def test_a_permit_of_an_earlier_period_is_stale() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", failure_threshold=1, open_duration_ms=1000, clock=clock)
    early = breaker.acquire()
    breaker.trip()
    clock.now += 1000
    probe = breaker.acquire()
    assert early.record_success() == "stale"
    assert early.record_success() == "duplicate"
    assert breaker.get_state() == "half-open"
    assert probe.record_success() == "applied"


def test_manual_control() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", open_duration_ms=1000, clock=clock)
    breaker.trip(for_ms=50)
    assert breaker.get_snapshot().remaining_open_ms == 50
    breaker.trip()
    assert breaker.get_snapshot().remaining_open_ms == 1000
    breaker.force_open()
    assert (breaker.get_state(), breaker.get_snapshot().mode) == ("open", "forced-open")
    clock.now += 10**9
    with pytest.raises(CircuitOpenError) as caught:
        breaker.acquire()
    assert (caught.value.retry_after_ms, caught.value.headers) == (None, {})
    breaker.disable()
    assert (breaker.get_state(), breaker.get_snapshot().mode) == ("closed", "disabled")
    assert breaker.acquire().record_failure() == "stale"
    breaker.reset()
    snapshot = breaker.get_snapshot()
    assert (snapshot.state, snapshot.mode, snapshot.trips, snapshot.opened_at) == ("closed", "auto", 0, None)


def test_what_is_recorded_by_hand_is_told() -> None:
    breaker = CircuitBreaker("c")
    heard: list[tuple[str, CallEvent]] = []
    for event in ("success", "failure", "ignored", "refused"):
        breaker.on(event, lambda told, event=event: heard.append((event, told)))
    breaker.record_success()
    breaker.record_failure(BoomError())
    breaker.release()
    breaker.force_open()
    breaker.can_execute()
    assert [event for event, _ in heard] == ["success", "failure", "ignored", "refused"]
    assert all(told.duration_ms is None for _, told in heard)
    assert [type(told.error) for _, told in heard] == [type(None), BoomError, type(None), CircuitOpenError]


def test_a_clock_that_fails_later_is_reported_where_it_is_asked() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", failure_threshold=1, clock=clock)
    clock.now = -1
    for ask in (breaker.record_failure, breaker.get_snapshot, breaker.reset, breaker.trip, breaker.force_open):
        with pytest.raises(InvalidTimeError):
            ask()
    assert breaker.get_state() == "closed"
    clock.now = 1
    breaker.trip()
    clock.now = -1
    for call in (breaker.acquire, breaker.can_execute, lambda: breaker.execute(lambda: 1)):
        with pytest.raises(InvalidTimeError):
            call()
