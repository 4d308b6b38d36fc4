"""What a shared circuit need not ask, and what it does while nobody answers: in sync code and in asyncio alike."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
import redis.asyncio
from support.clock import ManualClock
from support.servers import Cluster, Server, start_cluster, start_server
from support.sides import Asyncio, Sync, side_of
from support.stores import PATIENT, heard, name
from switchgear import CircuitOpenError, ConfigError, StoreUnavailableError
from switchgear._clock import monotonic_now

pytestmark = pytest.mark.thread_unsafe(reason="the tests stop, pause and flush their servers, and count commands")


@pytest.fixture(params=["sync", "asyncio"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which side of the package."""
    param: str = request.param
    return param


@pytest.fixture
def side(kind: str, redis_server: Server) -> Iterator[Any]:
    with side_of(kind, redis_server.port) as side:
        yield side


class BoomError(Exception):
    """What the dependency raises."""


def ok() -> str:
    return "ok"


def fail() -> str:
    raise BoomError


def failed(side: Any, breaker: Any) -> None:
    with pytest.raises(BoomError):
        side.run(breaker, fail)


def refused(side: Any, breaker: Any) -> CircuitOpenError:
    with pytest.raises(CircuitOpenError) as caught:
        side.run(breaker, ok)
    return caught.value


def names_of(client: Any) -> list[str]:
    """The commands that were sent through a tapped client since it was asked last."""
    sent = [args[0] for args in client.sent]
    client.sent.clear()
    return sent


def questions(client: Any) -> list[str]:
    """The same, without the texts of scripts that the server had not known."""
    return [sent for sent in names_of(client) if sent != "EVAL"]


def told_by(store: Any) -> list[tuple[str, str | None]]:
    """What a store says of its health from now on: the event, and the circuit that it is about."""
    told: list[tuple[str, str | None]] = []
    for event in ("degraded", "restored"):
        store.on(event, lambda said, event=event: told.append((event, said.circuit)))
    return told


# 5.2: what need not be asked


def test_an_open_circuit_refuses_for_open_cache_ms_without_asking_and_never_past_its_reopening(side: Any) -> None:
    clock, client = ManualClock(), side.tapped()
    breaker = side.breaker(
        name(), side.store(client, clock=clock, timeout_ms=PATIENT), open_duration_ms=2500, open_cache_ms=1000
    )
    side.do(breaker.trip)
    names_of(client)
    for passed, sent in ((0, 0), (999, 0), (1000, 1), (1999, 0), (2000, 1), (2499, 0)):
        clock.now = 1_700_000_000_000 + passed
        assert refused(side, breaker).retry_after == (2500 - passed) / 1000
        assert len(questions(client)) == sent, passed
    clock.now += 1
    assert side.run(breaker, ok) == "ok"


def test_without_an_open_cache_every_call_is_asked(side: Any) -> None:
    client = side.tapped()
    breaker = side.breaker(name(), side.store(client, clock=ManualClock(), timeout_ms=PATIENT), open_cache_ms=0)
    side.do(breaker.trip)
    names_of(client)
    refused(side, breaker)
    refused(side, breaker)
    assert len(questions(client)) == 2


def test_a_closed_circuit_admits_for_closed_cache_ms_without_asking(side: Any) -> None:
    clock, client = ManualClock(), side.tapped()
    store = side.store(client, clock=clock, timeout_ms=PATIENT)
    breaker = side.breaker(name(), store, closed_cache_ms=300, failure_threshold=1)
    assert side.run(breaker, ok) == "ok"
    assert len(questions(client)) == 1
    other = side.breaker(breaker.name, side.store(clock=clock, timeout_ms=PATIENT))
    side.do(other.trip)
    for passed in (0, 1, 299):
        clock.now = 1_700_000_000_000 + passed
        # As stale as it may be: the circuit is open for everybody else.
        assert side.run(breaker, ok) == "ok"
    assert names_of(client) == []
    clock.now += 1
    refused(side, breaker)


def test_what_this_process_learns_ends_its_closed_cache_at_once(side: Any) -> None:
    client = side.tapped()
    store = side.store(client, clock=ManualClock(), timeout_ms=PATIENT)
    breaker = side.breaker(name(), store, closed_cache_ms=60_000, failure_threshold=1)
    assert side.run(breaker, ok) == "ok"
    failed(side, breaker)
    refused(side, breaker)
    side.do(breaker.reset)
    assert side.run(breaker, ok) == "ok"
    side.do(breaker.force_open)
    refused(side, breaker)


def test_a_clock_that_is_wrong_is_told_although_a_call_need_not_be_asked(side: Any) -> None:
    clock = ManualClock()
    breaker = side.breaker(name(), side.store(clock=clock, timeout_ms=PATIENT), closed_cache_ms=60_000)
    assert side.run(breaker, ok) == "ok"
    clock.now = -1
    with pytest.raises(ValueError, match="`now`"):
        side.run(breaker, ok)


# 5.3: one flight


def test_threads_that_ask_at_one_time_share_a_round_trip(redis_server: Server) -> None:
    with side_of("sync", redis_server.port) as side:
        held, asked = threading.Event(), threading.Event()

        def hold(args: list[str]) -> None:
            asked.set()
            held.wait()

        client = side.tapped(hold)
        breaker = side.breaker(name(), side.store(client, clock=ManualClock(), timeout_ms=PATIENT))

        def release() -> None:
            asked.wait()
            side.until(lambda: joined(breaker) == 19)
            held.set()

        given = side.at_once(*[lambda: side.run(breaker, ok)] * 20, release)
        assert given == ["ok"] * 20 + [None]
        assert len(questions(client)) == 1


def joined(breaker: Any) -> int:
    """How many threads wait for somebody else's admission."""
    import sys

    frames = sys._current_frames().values()
    return sum(_is_joining(frame) for frame in frames)


def _is_joining(frame: Any) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "join" and frame.f_code.co_filename.endswith("_blocking.py"):
            return True
        frame = frame.f_back
    return False


def test_tasks_that_ask_at_one_time_share_a_round_trip_and_a_refusal(redis_server: Server) -> None:
    with side_of("asyncio", redis_server.port) as side:
        client = side.tapped()
        breaker = side.breaker(name(), side.store(client, clock=ManualClock(), timeout_ms=PATIENT), open_cache_ms=0)

        async def all_at_once() -> list[Any]:
            async def call() -> str:
                return "ok"

            return await asyncio.gather(*(breaker.execute(call) for _ in range(20)), return_exceptions=True)

        assert side.do(all_at_once) == ["ok"] * 20
        assert len(questions(client)) == 1
        side.do(breaker.trip)
        names_of(client)
        assert [type(given) for given in side.do(all_at_once)] == [CircuitOpenError] * 20
        assert len(questions(client)) == 1


def test_a_cancelled_leader_neither_cancels_nor_strands_those_who_joined(redis_server: Server) -> None:
    with side_of("asyncio", redis_server.port) as side:
        loop = side.loop
        asked, held = asyncio.Event(), loop.create_future()
        sent: list[list[str]] = []

        def hold(args: list[str]) -> Any:
            sent.append(args)
            asked.set()
            return held if len(sent) == 1 else None

        client = side.tapped(hold)
        breaker = side.breaker(name(), side.store(client, clock=ManualClock(), timeout_ms=PATIENT))

        async def main() -> list[Any]:
            async def call() -> str:
                return "ok"

            leader = asyncio.ensure_future(breaker.execute(call))
            await asked.wait()
            others = [asyncio.ensure_future(breaker.execute(call)) for _ in range(5)]
            await asyncio.sleep(0)
            leader.cancel()
            with pytest.raises(asyncio.CancelledError):
                await leader
            return await asyncio.gather(*others)

        assert side.do(main) == ["ok"] * 5
        assert len(questions(client)) == 2


def test_an_interrupted_leader_does_not_strand_those_who_joined(redis_server: Server) -> None:
    with side_of("sync", redis_server.port) as side:
        held = threading.Event()
        main = threading.main_thread().ident or 0
        joiner: list[Any] = []

        def hold(args: list[str]) -> None:
            if len(client.sent) > 1:
                return
            thread.start()
            side.until(lambda: joined(breaker) == 1)
            # As Ctrl-C does, which is not delivered to a thread of ours.
            signal.pthread_kill(main, signal.SIGINT)
            held.wait()

        client = side.tapped(hold)
        store = side.store(client, clock=ManualClock(), timeout_ms=PATIENT)
        events, told = heard(store), told_by(store)
        breaker = side.breaker(name(), store)
        thread = threading.Thread(target=lambda: joiner.append(side.run(breaker, ok)))
        with pytest.raises(KeyboardInterrupt):
            side.run(breaker, ok)
        thread.join()
        held.set()
        assert joiner == ["ok"]
        assert (events, told) == ([], [])


def test_a_leader_who_is_no_more_strands_nobody_for_longer_than_a_deadline(side: Any) -> None:
    client = side.tapped()
    breaker = side.breaker(name(), side.store(client, clock=ManualClock(), timeout_ms=100))
    # Whoever asked was killed before he could send it.
    breaker._circuit._asking.engine.admit()
    assert side.run(breaker, ok) == "ok"
    assert names_of(client) == []
    side.run(breaker, ok)
    assert len(questions(client)) >= 1


# 5.1: what nobody waits for


@pytest.mark.parametrize("trip_on", ["consecutive", "rate"])
def test_a_success_is_never_waited_for_and_those_that_come_meanwhile_are_summed(side: Any, trip_on: str) -> None:
    go_on = threading.Event()
    later: Any = None if isinstance(side, Sync) and not isinstance(side, Asyncio) else side.loop.create_future()

    def hold(args: list[str]) -> object:
        if args[0] != "EVALSHA" or len(args) < 11:
            return None
        if later is not None:
            return later
        go_on.wait()
        return None

    client = side.tapped(hold)
    breaker = side.breaker(name(), side.store(client, clock=ManualClock(), timeout_ms=PATIENT), trip_on=trip_on)
    for _ in range(4):
        assert side.run(breaker, ok) == "ok"
    go_on.set()
    if later is not None:
        later.set_result(None)

    def counts() -> list[str]:
        return [args[-1] for args in list(client.sent) if args[0] == "EVALSHA" and len(args) > 10]

    side.until(lambda: sum(map(int, counts())) == 4)
    assert len(counts()) <= 4


def test_a_call_that_was_refused_for_want_of_a_slot_takes_no_more_than_two_round_trips(side: Any) -> None:
    clock, client = ManualClock(), side.tapped()
    breaker = side.breaker(name(), side.store(client, clock=clock, timeout_ms=PATIENT), open_duration_ms=1000)
    side.do(breaker.trip)
    clock.now += 1000
    probe = side.do(breaker.acquire)
    names_of(client)
    refused(side, breaker)
    assert len(questions(client)) == 2
    assert side.do(probe.record_success) == "applied"


# 5.5: one clock


def test_the_server_is_asked_for_its_time_ahead_of_the_first_command_and_again_after_half_a_minute(
    side: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = 0
    monkeypatch.setattr("switchgear.redis._link.monotonic_now", lambda: monotonic_now() + ahead)
    client = side.tapped()
    store = side.store(client, timeout_ms=PATIENT)
    breakers = [side.breaker(name(), store) for _ in range(2)]
    side.run(breakers[0], ok)
    assert names_of(client)[0] == "TIME"
    side.run(breakers[0], ok)
    side.run(breakers[1], ok)
    assert "TIME" not in names_of(client)
    ahead = 30_000
    side.run(breakers[1], ok)
    side.until(lambda: "TIME" in [args[0] for args in client.sent])
    side.run(breakers[0], ok)
    assert names_of(client).count("TIME") == 1


@pytest.mark.parametrize("clock", ["system", ManualClock()], ids=["system", "function"])
def test_a_time_that_is_given_is_not_asked_for(side: Any, clock: Any) -> None:
    client = side.tapped()
    side.run(side.breaker(name(), side.store(client, clock=clock, timeout_ms=PATIENT)), ok)
    assert "TIME" not in names_of(client)


def test_scenario_50_hosts_whose_clocks_differ_by_ten_minutes_trip_and_probe_together(side: Any) -> None:
    circuit = name()
    skews = (0, 600_000, -600_000)
    stores = [side.store(timeout_ms=PATIENT) for _ in skews]
    for store, skew in zip(stores, skews, strict=True):
        # The host's clock is wrong from the very first call on.
        times = store.link.times
        object.__setattr__(store.link, "times", lambda times=times, skew=skew: (times()[0] + skew, None))
    policy = {"failure_threshold": 6, "open_duration_ms": 60_000, "open_cache_ms": 0}
    breakers = [side.breaker(circuit, store, **policy) for store in stores]
    for breaker in breakers:
        assert side.do(breaker.get_state) == "closed"
        failed(side, breaker)
        failed(side, breaker)
    for breaker in breakers:
        assert 0 < (refused(side, breaker).retry_after or 0) < 120
    seconds, _ = redis.Redis(port=_port(side)).time()
    opened_at = side.do(breakers[1].get_snapshot).opened_at
    assert abs(opened_at - seconds * 1000) < 300_000


def _port(side: Any) -> int:
    port: int = side.client.connection_pool.connection_kwargs["port"]
    return port


# 5.4: the store fails


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
        store = side.store(clock=clock, timeout_ms=2000)
        events, told = heard(store), told_by(store)
        breaker = side.breaker(name(), store, failure_threshold=5, open_duration_ms=3000)
        changes: list[str] = []
        breaker.on("state_change", lambda change: changes.append(f"{change.to_state} {change.reason}"))
        assert side.run(breaker, ok) == "ok"
        server.kill()
        seen = [given_by(lambda: side.run(breaker, fail)) for _ in range(100)]
        assert [type(given) for given in seen] == [BoomError] * 5 + [CircuitOpenError] * 95
        assert told == [("degraded", None)]
        assert changes == ["open threshold"]
        assert side.do(breaker.get_state) == "open"
        assert [type(event.error).__name__ for event in events] == ["StoreError"] * len(events)
        with pytest.raises(StoreUnavailableError):
            side.do(breaker.reset)
        with start_server(port=server.port):
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
    lines = [record for record in caplog.records if "asked" in record.getMessage()]
    assert [record.levelname for record in lines] == ["WARNING", "INFO"]


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
            assert len(questions(client)) <= 3
            assert [str(event.error) for event in events] == ["no answer within 150 ms"] * 3
            assert told == [("degraded", None)]
            # Once a second a command of ours, for which nobody waits.
            clock.now += 1000
            for _ in range(20):
                assert side.run(breaker, ok) == "ok"
            side.until(lambda: len(client.sent) == 1)
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
    plain = redis.Redis(port=_port(side))
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


# Quorum


def test_a_quorum_is_checked_and_one_instance_alone_opens_for_itself_alone(side: Any) -> None:
    with pytest.raises(ConfigError, match="`quorum` must be an integer from 1 to failure_threshold"):
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


# Clusters: one node each


@pytest.mark.once(reason="a cluster takes its time, and the interpreter makes no difference to it")
def test_each_master_is_asked_for_its_own_time_and_guarded_on_its_own(kind: str) -> None:
    with start_cluster() as cluster:
        circuits = {owner(cluster, circuit).pid: circuit for circuit in (name() for _ in range(40))}
        hanging = cluster.nodes[0]
        if kind == "sync":
            with redis.RedisCluster(host="127.0.0.1", port=hanging.port) as client:
                _guarded_apart(Sync(hanging.port), client, cluster, circuits)
        else:
            side = Asyncio(hanging.port)
            client = redis.asyncio.RedisCluster(host="127.0.0.1", port=hanging.port)
            side.do(client.initialize)
            _guarded_apart(side, client, cluster, circuits)
            side.do(client.aclose)
            side.close()


def _guarded_apart(side: Any, client: Any, cluster: Cluster, circuits: dict[int, str]) -> None:
    patient = side.store(client, timeout_ms=PATIENT)
    for node in cluster.nodes:
        node.cli("config", "resetstat")
    for circuit in circuits.values():
        side.run(side.breaker(circuit, patient), ok)
        side.run(side.breaker(circuit, patient), ok)
    for node in cluster.nodes:
        assert "cmdstat_time:calls=1," in node.cli("info", "commandstats")
    store = side.store(client, timeout_ms=300, clock="system")
    told = told_by(store)
    hanging, *others = cluster.nodes
    hanging.pause()
    try:
        for _ in range(6):
            assert side.run(side.breaker(circuits[hanging.pid], store), ok) == "ok"
        assert told == [("degraded", None)]
        for node in others:
            breaker = side.breaker(circuits[node.pid], patient, failure_threshold=1)
            failed(side, breaker)
            refused(side, side.breaker(circuits[node.pid], patient))
    finally:
        hanging.resume()


def owner(cluster: Cluster, circuit: str) -> Server:
    """The node that has the slot of a circuit."""
    return next(node for node in cluster.nodes if "MOVED" not in node.cli("exists", f"{{cb:{circuit}}}"))


# Rules that both sides keep


def test_scenario_51_every_key_has_a_ttl_and_a_refusal_extends_none(side: Any) -> None:
    plain = redis.Redis(port=_port(side))
    breaker = side.breaker(
        name(), side.store(clock=ManualClock(), timeout_ms=PATIENT), failure_threshold=2, open_cache_ms=0
    )

    def lives() -> list[int]:
        return [int(str(plain.pttl(key))) for key in plain.keys(f"{{cb:{breaker.name}}}*")]

    for _ in range(2):
        failed(side, breaker)
        assert lives()
        assert all(86_000_000 < ttl <= 86_400_000 for ttl in lives())
    for key in plain.keys(f"{{cb:{breaker.name}}}*"):
        plain.pexpire(key, 5_000_000)
    refused(side, breaker)
    assert all(0 < ttl <= 5_000_000 for ttl in lives())


def test_scenario_52_scripts_that_were_forgotten_cost_one_more_round_trip_and_count_once(kind: str) -> None:
    with start_server() as server, side_of(kind, server.port) as side:
        client = side.tapped()
        breaker = side.breaker(name(), side.store(client, clock=ManualClock(), timeout_ms=PATIENT))
        permit = side.do(breaker.acquire)
        server.cli("script", "flush")
        names_of(client)
        assert side.do(permit.record_failure) == "applied"
        assert names_of(client) == ["EVALSHA", "EVAL"]
        assert side.do(breaker.get_snapshot).failures_in_window == 1


def test_scenario_57_the_open_duration_that_was_stored_at_the_trip_counts(side: Any) -> None:
    circuit, clock = name(), ManualClock()
    store = side.store(clock=clock, timeout_ms=PATIENT)
    long = side.breaker(circuit, store, failure_threshold=1, open_duration_ms=5000)
    short = side.breaker(circuit, store, failure_threshold=1, open_duration_ms=10)
    failed(side, long)
    clock.now += 4999
    refused(side, short)
    clock.now += 1
    assert side.do(short.acquire).probe
