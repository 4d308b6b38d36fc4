"""The users' scenarios about half-open circuits, permits and stuck states, on local and on shared breakers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import pytest
from support.threads import in_threads
from support.world import DownError, NotFoundError, World, changes_of, fail, refusal_of, succeed

NewWorld = Callable[[], AbstractContextManager[World]]


@pytest.mark.parametrize("minimum_calls", [1, 1_000_000])
def test_scenario_01_minimum_calls_never_apply_to_a_probe(new_world: NewWorld, minimum_calls: int) -> None:
    with new_world() as world:
        rate = {"trip_on": "rate", "failure_rate": 0.01, "minimum_calls": minimum_calls}
        breaker = world.breaker(**rate, open_duration_ms=1000)
        breaker.trip()
        world.clock.now += 50_000_000
        with pytest.raises(DownError):
            breaker.execute(fail)
        assert breaker.get_state() == "open"


def test_scenario_02_six_fail_the_fifth_trips_once_and_the_probe_comes_at_exactly_its_time(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=5, open_duration_ms=1000)
        changes = changes_of(breaker)
        zero = world.clock.now
        for number, permit in enumerate([breaker.acquire() for _ in range(6)]):
            world.clock.now = zero + 10 + number
            assert permit.record_failure() == ("applied" if number < 5 else "stale")
        assert [(change.to_state, change.at - zero, change.failures, change.open_ms) for change in changes] == [
            ("open", 14, 5, 1000)
        ]
        world.clock.now = zero + 1013
        assert not breaker.can_execute()
        world.clock.now = zero + 1014
        assert breaker.can_execute()


def test_scenario_03_a_hundred_times_fail_fail_succeed(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped()
        for _ in range(100):
            for _ in range(2):
                with pytest.raises(DownError):
                    breaker.execute(fail)
                assert breaker.get_state() == "open"
                world.clock.now += 1000
            assert breaker.execute(succeed) == "ok"
            assert breaker.get_state() == "closed"
            with pytest.raises(DownError):
                breaker.execute(fail)
            world.clock.now += 1000


def test_scenario_04_two_probes_end_neutrally_two_new_ones_close(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped(half_open_max_calls=2, success_threshold=2, ignore=NotFoundError)
        probes = [breaker.acquire(), breaker.acquire()]
        assert breaker.get_snapshot().half_open_in_flight == 2
        for probe in probes:
            assert probe.record_failure(NotFoundError()) == "applied"
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.half_open_in_flight, snapshot.half_open_successes) == ("half-open", 0, 0)
        assert [breaker.execute(succeed), breaker.execute(succeed)] == ["ok", "ok"]
        assert breaker.get_state() == "closed"


def test_scenario_05_a_probe_that_never_reports_loses_its_slot(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped(probe_timeout_ms=5000)
        assert breaker.acquire().probe
        world.clock.now += 4999
        assert not breaker.can_execute()
        world.clock.now += 1
        assert breaker.can_execute()


def test_scenario_06_a_thousand_peeks_eat_no_slot(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped(half_open_max_calls=2, success_threshold=2)
        assert breaker.can_execute()
        for _ in range(500):
            assert breaker.get_state() == "half-open"
            assert breaker.get_snapshot().half_open_in_flight == 1
        assert breaker.can_execute()
        assert not breaker.can_execute()


def test_scenario_07_of_64_admissions_from_threads_exactly_the_probes_go_through(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped(half_open_max_calls=3, success_threshold=3)
        together = threading.Barrier(64)
        admitted: list[bool] = []

        def admit() -> None:
            together.wait()
            admitted.append(breaker.can_execute())

        in_threads([admit] * 64)
        assert sorted(admitted) == [False] * 61 + [True] * 3


def test_scenario_07_probes_in_flight_from_threads_never_exceed_the_limit(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped(half_open_max_calls=2, success_threshold=1_000_000)
        lock = threading.Lock()
        running: set[int] = set()
        most: list[int] = []

        def probe() -> None:
            with lock:
                running.add(threading.get_ident())
                most.append(len(running))
            with lock:
                running.remove(threading.get_ident())

        def call() -> None:
            for _ in range(50):
                breaker.execute(probe, fallback=lambda refusal: None)

        in_threads([call] * 4)
        assert 1 <= max(most) <= 2
        snapshot = breaker.get_snapshot()
        assert (snapshot.half_open_in_flight, snapshot.half_open_successes) == (0, len(most))


@pytest.mark.parametrize("late", ["record_success", "record_failure"])
def test_scenario_08_a_call_admitted_while_closed_does_not_decide_a_half_open_circuit(
    new_world: NewWorld, late: str
) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=1, open_duration_ms=1000)
        call = breaker.acquire()
        with pytest.raises(DownError):
            breaker.execute(fail)
        world.clock.now += 1000
        probe = breaker.acquire()
        settled = getattr(call, late)()
        # A shared breaker need not ask what a success of a closed circuit changes: nothing.
        assert settled == ("applied" if world.is_shared and late == "record_success" else "stale")
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.half_open_in_flight, snapshot.half_open_successes) == ("half-open", 1, 0)
        assert probe.record_success() == "applied"
        assert breaker.get_state() == "closed"


@pytest.mark.parametrize("late", ["succeeds", "fails"])
def test_scenario_08_nor_does_one_that_runs_in_another_thread(new_world: NewWorld, late: str) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=1, open_duration_ms=1000)
        begun, end = threading.Event(), threading.Event()

        def long() -> None:
            begun.set()
            end.wait()
            if late == "fails":
                raise DownError

        def call() -> None:
            with pytest.raises(DownError) if late == "fails" else nullcontext():
                breaker.execute(long)

        thread = threading.Thread(target=call)
        thread.start()
        try:
            begun.wait()
            breaker.record_failure()
            world.clock.now += 1000
            probe = breaker.acquire()
        finally:
            end.set()
            thread.join()
        assert breaker.get_snapshot().half_open_in_flight == 1
        assert probe.record_success() == "applied"
        assert breaker.get_state() == "closed"


def test_scenario_09_ten_in_flight_one_trip_unmoved_by_late_failures(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=5)
        changes = changes_of(breaker)
        zero = world.clock.now
        settled: list[str] = []
        for permit in [breaker.acquire() for _ in range(10)]:
            settled.append(permit.record_failure())
            world.clock.now += 1
        assert settled == ["applied"] * 5 + ["stale"] * 5
        assert len(changes) == 1
        change = changes[0]
        assert (change.circuit, change.from_state, change.to_state) == (breaker.name, "closed", "open")
        assert (change.reason, change.failures) == ("threshold", 5)
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.opened_at, snapshot.trips) == ("open", zero + 4, 1)


def test_scenario_10_the_caller_is_told_when_its_outcome_did_not_count(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=1, open_duration_ms=1000)
        late = breaker.acquire()
        assert breaker.record_failure(DownError()) == "applied"
        assert breaker.record_failure(DownError()) == "stale"
        assert breaker.record_success() == "stale"
        assert breaker.release() == "stale"
        assert late.record_failure(DownError()) == "stale"
        assert late.record_failure(DownError()) == "duplicate"
        world.clock.now += 1000
        probe = breaker.acquire()
        assert probe.probe
        assert probe.release() == "applied"
        assert probe.record_success() == "duplicate"
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.half_open_in_flight) == ("half-open", 0)


def test_scenario_11_of_a_hundred_probes_the_first_that_fails_reopens(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped(half_open_max_calls=100, success_threshold=100)
        probes = [breaker.acquire() for _ in range(100)]
        assert {probe.record_success() for probe in probes[:41]} == {"applied"}
        assert probes[41].record_failure() == "applied"
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.trips) == ("open", 2)


def test_scenario_12_the_triad_obeys_the_same_limits_as_execute(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped(half_open_max_calls=2, success_threshold=2)
        assert breaker.can_execute()

        def inside() -> None:
            assert not breaker.can_execute()
            assert refusal_of(lambda: breaker.execute(succeed)).state == "half-open"
            assert refusal_of(breaker.acquire).state == "half-open"

        breaker.execute(inside)
        assert breaker.get_state() == "half-open"
        assert breaker.record_success() == "applied"
        assert breaker.get_state() == "closed"


def test_scenario_13_an_error_is_classified_alike_when_closed_and_when_half_open(new_world: NewWorld) -> None:
    with new_world() as world:
        policy: dict[str, Any] = {"is_failure": lambda error: not isinstance(error, NotFoundError)}
        breaker = world.breaker(failure_threshold=1, open_duration_ms=1000, **policy)

        def not_found() -> None:
            raise NotFoundError

        with pytest.raises(NotFoundError):
            breaker.execute(not_found)
        assert breaker.record_failure(NotFoundError()) == "applied"
        assert breaker.get_state() == "closed"
        breaker.trip()
        world.clock.now += 1000
        with pytest.raises(NotFoundError):
            breaker.execute(not_found)
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.half_open_in_flight) == ("half-open", 0)
        with pytest.raises(DownError):
            breaker.execute(fail)
        assert breaker.get_state() == "open"


def test_scenario_15_a_late_success_while_open_changes_no_deadline(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=1, open_duration_ms=1000)
        late = breaker.acquire()
        breaker.record_failure()
        world.clock.now += 400
        assert late.record_success() == ("applied" if world.is_shared else "stale")
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.remaining_open_ms) == ("open", 600)


def test_scenario_16_the_call_that_begins_the_half_open_period_is_one_of_the_three(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped(half_open_max_calls=3, success_threshold=3)
        assert [breaker.can_execute() for _ in range(4)] == [True, True, True, False]


def test_scenario_17_a_probe_that_succeeds_frees_its_own_slot(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.tripped(half_open_max_calls=2, success_threshold=5, probe_timeout_ms=10_000)
        zero = world.clock.now
        first = breaker.acquire()
        world.clock.now = zero + 9000
        breaker.acquire()
        world.clock.now = zero + 9500
        assert first.record_success() == "applied"
        assert breaker.get_snapshot().half_open_in_flight == 1
        world.clock.now = zero + 10_001
        assert [breaker.can_execute(), breaker.can_execute()] == [True, False]
