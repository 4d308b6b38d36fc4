"""The users' scenarios about time and windows, on local and on shared breakers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from support.child import Ran, run_script
from support.clock import ManualClock
from support.world import DownError, World, changes_of, fail, refusal_of, succeed
from switchgear import CircuitBreaker, CircuitBreakerState, ConfigError

NewWorld = Callable[[], AbstractContextManager[World]]


def test_scenario_18_an_open_duration_that_is_over_reads_as_0_left(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=1, open_duration_ms=10_000)
        changes = changes_of(breaker)
        breaker.record_failure()
        world.clock.now += 10_000
        before = breaker.get_snapshot()
        assert (before.state, before.remaining_open_ms) == ("open", 0)
        assert breaker.get_snapshot() == before
        assert len(changes) == 1
        assert breaker.acquire().probe
        change = changes[1]
        assert (change.from_state, change.to_state, change.reason) == ("open", "half-open", "cooldown")
        assert (change.at, change.open_ms) == (world.clock.now, None)


def test_scenario_19_a_clock_that_steps_back_a_minute_while_open_makes_nobody_wait_longer() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", failure_threshold=1, open_duration_ms=30_000, clock=clock)
    breaker.record_failure()
    clock.now -= 60_001
    assert breaker.get_snapshot().remaining_open_ms == 30_000
    assert not breaker.can_execute()
    clock.now += 30_000
    assert breaker.can_execute()


@pytest.mark.thread_unsafe(reason="it starts a process of its own: four at once show no more")
def test_scenario_19_without_a_clock_of_its_own_a_breaker_does_not_follow_the_wall_clock() -> None:
    ran = run_script("""
        import time
        from switchgear import CircuitBreaker

        breaker = CircuitBreaker("c", failure_threshold=1, open_duration_ms=3_600_000)
        real, real_ns = time.time, time.time_ns
        opened_after = real() * 1000
        breaker.record_failure()
        day = 86_400
        time.time, time.time_ns = lambda: real() - day, lambda: real_ns() - day * 10**9
        assert breaker.get_snapshot().remaining_open_ms <= 3_600_000
        time.time, time.time_ns = lambda: real() + day, lambda: real_ns() + day * 10**9
        assert not breaker.can_execute()
        # Anchored to the wall clock once; somebody may adjust that meanwhile, but not by a minute.
        assert abs(breaker.get_snapshot().opened_at - opened_after) < 60_000
    """)
    assert ran == Ran(0, "", "")


def test_scenario_20_failures_around_a_windows_end_count_together(new_world: NewWorld) -> None:
    with new_world() as world:
        zero = world.clock.now
        straddling = world.breaker(failure_threshold=10, window_ms=10_000)
        for at in (9900, 10_100):
            world.clock.now = zero + at
            for _ in range(5):
                straddling.record_failure()
        assert straddling.get_state() == "open"


def test_scenario_20_a_failure_that_is_a_window_old_is_out(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=2, window_ms=10_000)
        breaker.record_failure()
        world.clock.now += 10_000
        breaker.record_failure()
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.failures_in_window) == ("closed", 1)
        world.clock.now += 9999
        breaker.record_failure()
        assert breaker.get_state() == "open"


def test_scenario_21_consecutive_failures_trip_however_far_apart(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker(trip_on="consecutive", failure_threshold=5)
        for _ in range(4):
            breaker.record_failure()
            world.clock.now += 30_000
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.consecutive_failures) == ("closed", 4)
        breaker.record_failure()
        assert breaker.get_state() == "open"


def test_scenario_22_the_backoff_grows_to_its_cap_and_starts_anew_after_a_close(new_world: NewWorld) -> None:
    with new_world() as world:
        backoff = {"open_duration_ms": 1000, "open_backoff": 2, "open_duration_max_ms": 8000}
        breaker = world.breaker(**backoff, failure_threshold=1)
        waits: list[int] = []
        for _ in range(5):
            with pytest.raises(DownError):
                breaker.execute(fail)
            waits.append(breaker.get_snapshot().remaining_open_ms)
            world.clock.now += waits[-1]
        assert waits == [1000, 2000, 4000, 8000, 8000]
        assert breaker.execute(succeed) == "ok"
        with pytest.raises(DownError):
            breaker.execute(fail)
        assert breaker.get_snapshot().remaining_open_ms == 1000


def test_scenario_22_after_ten_thousand_reopenings_the_wait_is_the_cap() -> None:
    state = CircuitBreakerState(failure_threshold=1, open_duration_ms=1000, open_backoff=100, open_duration_max_ms=8000)
    for number in range(10_000):
        state.record_failure(number * 10_000)
        assert state.can_request((number + 1) * 10_000)
    state.record_failure(100_000_000)
    assert state.snapshot(100_000_000).remaining_open_ms == 8000


@pytest.mark.parametrize("field", ["failure_threshold", "window_ms", "open_duration_ms", "half_open_max_calls"])
def test_scenario_23_a_given_0_is_refused_never_made_a_default(new_world: NewWorld, field: str) -> None:
    with new_world() as world, pytest.raises(ConfigError, match=f"`{field}` must be .* got `0`") as raised:
        world.breaker(**{field: 0})
    assert raised.value.field == field


@pytest.mark.parametrize("field", ["timeout_ms", "slow_call_ms"])
def test_scenario_23_nor_is_a_0_of_a_hosts_own_option(new_world: NewWorld, field: str) -> None:
    with new_world() as world, pytest.raises(ConfigError, match=f"`{field}` must be .* got `0`"):
        world.breaker(**{field: 0})


def test_scenario_24_opening_times_keep_milliseconds(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=1, open_duration_ms=1000)
        world.clock.now += 900
        breaker.record_failure()
        world.clock.now += 100
        assert refusal_of(lambda: breaker.execute(succeed)).retry_after_ms == 900
        world.clock.now += 899
        assert refusal_of(lambda: breaker.execute(succeed)).retry_after_ms == 1
        world.clock.now += 1
        assert breaker.acquire().probe
