"""What a shared circuit does while nobody answers (DESIGN 5.4, 5.8): in sync code and in asyncio alike."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest
import redis
import redis.asyncio
from support.calls import BoomError, fail, failed, names_of, ok, port_of, questions, refused, told_by
from support.clock import ManualClock
from support.servers import start_server
from support.sides import side_of
from support.stores import PATIENT, heard, name, set_deadline
from switchgear import CircuitOpenError, ConfigError, StoreUnavailableError

pytestmark = pytest.mark.thread_unsafe(reason="the tests stop, pause and flush their servers, and count commands")


def test_scenario_47_who_knew_that_it_was_open_refuses_until_it_may_look_again(kind: str) -> None:
    with start_server() as server, side_of(kind, server.port) as side:
        clock = ManualClock()
        breaker = side.breaker(name(), side.store(clock=clock, timeout_ms=PATIENT), failure_threshold=1)
        failed(side, breaker)
        server.cli("flushall")
        clock.now += 999
        refused(side, breaker)
        clock.now += 1
        assert side.run(breaker, ok) == "ok"
        assert side.do(breaker.get_snapshot).epoch == 0


def test_scenario_48_while_redis_is_gone_callers_see_their_own_errors_until_this_process_trips(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="switchgear")
    clock = ManualClock()
    server = start_server()
    with side_of(kind, server.port) as side:
        prefix = f"{name()}:"
        store = side.store(clock=clock, timeout_ms=PATIENT, prefix=prefix)
        events, told = heard(store), told_by(store)
        breaker = side.breaker(name(), store, failure_threshold=5, open_duration_ms=3000)
        changes: list[str] = []
        breaker.on("state_change", lambda change: changes.append(f"{change.to_state} {change.reason}"))
        assert side.run(breaker, ok) == "ok"
        server.kill()
        # Until the server is back: the client would try for long to connect.
        set_deadline(store, 100)
        seen = [given_by(lambda: side.run(breaker, fail)) for _ in range(100)]
        assert [type(given) for given in seen] == [BoomError] * 5 + [CircuitOpenError] * 95
        assert told == [("degraded", None)]
        assert changes == ["open threshold"]
        assert side.do(breaker.get_state) == "open"
        assert [type(event.error).__name__ for event in events] == ["StoreError"] * len(events)
        with pytest.raises(StoreUnavailableError):
            side.do(breaker.reset)
        with start_server(port=server.port):
            set_deadline(store, PATIENT)
            # What this process saw for itself holds on, whatever the store would say, until its own probe succeeds.
            clock.now += 2999
            refused(side, breaker)
            clock.now += 1
            assert side.run(breaker, ok) == "ok"
            until_restored(side, clock, breaker, told)
            assert told == [("degraded", None), ("restored", None)]
            assert changes[1:] == ["half-open cooldown", "closed probes-succeeded"]
            failed(side, breaker)
            assert side.do(breaker.get_snapshot).failures_in_window == 1
    # Of this store: a thread of another test may still hear that its server is gone.
    lines = [record for record in caplog.records if prefix in record.getMessage()]
    assert [record.levelname for record in lines] == ["WARNING", "INFO"]


@pytest.mark.parametrize("said", ["Connection refused.", "Connection refused"])
def test_the_operator_is_told_what_the_store_said_in_one_sentence(
    side: Any, caplog: pytest.LogCaptureFixture, said: str
) -> None:
    prefix = f"{name()}:"
    store = side.store(side.tapped(lambda args: ConnectionError(said)), timeout_ms=PATIENT, prefix=prefix)
    breaker = side.breaker(name(), store)
    while not (lines := [line for line in caplog.messages if prefix in line]):
        assert side.run(breaker, ok) == "ok"
    why = "is not asked any more: Connection refused; what calls meet is `on_store_failure`"
    assert lines == [f"the store with prefix `{prefix}` {why}"]


def until_restored(side: Any, clock: ManualClock, breaker: Any, told: list[Any]) -> None:
    """Calls until the store is asked again: each asks once a second on behalf of the guard, and waits for nothing."""
    while not side.comes(lambda: ("restored", None) in told):
        clock.now += 1000
        assert side.run(breaker, ok) == "ok"


def given_by(call: Callable[[], object]) -> object:
    """What a call gives, or raises."""
    try:
        return call()
    except Exception as error:
        return error


def test_scenario_49_a_store_that_hangs_is_waited_for_three_times_and_not_again(kind: str) -> None:
    with start_server() as server, side_of(kind, server.port) as side:
        clock, client = ManualClock(), side.tapped()
        patient = side.breaker(name(), side.store(client, clock=clock, timeout_ms=PATIENT))
        side.run(patient, ok)
        store = side.store(client, clock=clock, timeout_ms=150)
        events, told = heard(store), told_by(store)
        breaker = side.breaker(patient.name, store)
        server.pause()
        try:
            names_of(client)
            for _ in range(50):
                assert side.run(breaker, ok) == "ok"
            asked = len(questions(client))
            assert asked <= 3
            assert [str(event.error) for event in events] == ["no answer within 150 ms"] * 3
            assert told == [("degraded", None)]
            # Once a second a command of ours, for which nobody waits. It has the time that a busy machine takes.
            set_deadline(store, PATIENT)
            clock.now += 1000
            for _ in range(20):
                assert side.run(breaker, ok) == "ok"
            side.until(lambda: client.sent)
            # But for a question that had begun, and is sent only now.
            assert len(client.sent) <= 1 + (3 - asked)
        finally:
            server.resume()
        until_restored(side, clock, breaker, told)
        assert told[1] == ("restored", None)
        names_of(client)
        assert side.run(breaker, ok) == "ok"
        assert len(questions(client)) == 1


@pytest.mark.parametrize("mode", ["fail-open", "fail-closed"])
def test_the_other_ways_to_meet_a_store_that_fails_refuse_or_admit_and_count_nowhere(side: Any, mode: Any) -> None:
    client = side.tapped(lambda args: ConnectionError("gone"))
    store = side.store(client, clock=ManualClock(), timeout_ms=PATIENT)
    breaker = side.breaker(name(), store, on_store_failure=mode, failure_threshold=1)
    for _ in range(6):
        given = given_by(lambda: side.run(breaker, fail))
        if mode == "fail-open":
            assert isinstance(given, BoomError)
        else:
            assert isinstance(given, StoreUnavailableError)
            assert given.reason == "gone"
    assert len(questions(client)) <= 4


def test_one_circuit_s_own_trouble_is_no_other_s(side: Any) -> None:
    clock = ManualClock()
    store = side.store(clock=clock, timeout_ms=PATIENT)
    told = told_by(store)
    taken, fine = side.breaker(name(), store), side.breaker(name(), store)
    plain = redis.Redis(port=port_of(side))
    plain.set(f"{{cb:{taken.name}}}", "text")
    for _ in range(5):
        assert side.run(taken, ok) == "ok"
        assert side.run(fine, ok) == "ok"
    assert told == [("degraded", taken.name)]
    plain.delete(f"{{cb:{taken.name}}}")
    clock.now += 1000
    assert side.run(taken, ok) == "ok"
    side.until(lambda: told[1:] == [("restored", taken.name)])
    failed(side, taken)
    assert side.do(taken.get_snapshot).failures_in_window == 1


def test_a_probe_that_this_process_admits_says_so_and_closes_here(side: Any) -> None:
    away: list[object] = []
    clock, client = ManualClock(), side.tapped(lambda args: away[0] if away else None)
    store = side.store(client, clock=clock, timeout_ms=PATIENT)
    breaker = side.breaker(name(), store, failure_threshold=1, open_duration_ms=1000)
    side.do(breaker.trip)
    away.append(ConnectionError("gone"))
    # It remembers that it was open, past what the cache would be good for.
    clock.now += 999
    refused(side, breaker)
    clock.now += 1
    probe = side.do(breaker.acquire)
    assert probe.probe
    refused(side, breaker)
    assert side.do(probe.record_success) == "applied"
    assert side.do(breaker.get_state) == "closed"
    assert side.run(breaker, ok) == "ok"


def test_a_quorum_is_checked_and_one_instance_alone_opens_for_itself_alone(side: Any) -> None:
    with pytest.raises(ConfigError, match=r"`quorum` must be an integer from 1 to 5 \(`failure_threshold`\), got `6`"):
        side.breaker(name(), side.store(), quorum=6)
    circuit, clock = name(), ManualClock()
    here, there = (
        side.breaker(circuit, side.store(clock=clock, timeout_ms=PATIENT, instance=host), failure_threshold=4, quorum=2)
        for host in ("here", "there")
    )
    for _ in range(4):
        failed(side, here)
    refused(side, here)
    assert side.run(there, ok) == "ok"
    assert side.do(there.get_state) == "closed"
    failed(side, there)
    failed(side, there)
    assert side.do(there.get_state) == "open"
