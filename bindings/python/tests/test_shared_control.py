"""Steering from anywhere: without a breaker, for the whole fleet, announced like any other control."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import redis
import redis.asyncio
import switchgear.redis
import switchgear.redis.asyncio
from support.clock import ManualClock
from support.servers import Server, start_server
from support.sides import side_of
from support.stores import PATIENT, name
from switchgear import (
    ConfigError,
    InvalidNameError,
    InvalidTimeError,
    Snapshot,
    State,
    StateChange,
    StoreUnavailableError,
)
from typing_extensions import assert_type

pytestmark = [
    pytest.mark.thread_unsafe(reason="the tests share one event loop, and each one prefix"),
    pytest.mark.once(reason="what is asked of a store is the same in all interpreters"),
]

OPERATIONS = ("reset", "trip", "force_open", "disable", "get_state", "get_snapshot")


def store_of(side: Any, client: Any = None, **options: Any) -> Any:
    return side.store(client, **{"timeout_ms": PATIENT, "clock": ManualClock(), **options})


def listeners(admin: Any, prefix: str) -> int:
    (_, count), *_ = admin.pubsub_numsub(f"{prefix}events")
    return int(count)


def reason(side: Any, call: Callable[..., Any], *args: Any) -> str | None:
    with pytest.raises(StoreUnavailableError) as caught:
        side.do(call, *args)
    return caught.value.reason


def test_it_holds_for_every_breaker_of_the_circuit(side: Any) -> None:
    circuit = f"GET /users/{{id}} {name()}"
    breaker = side.breaker(circuit, store_of(side), open_cache_ms=0)
    control = store_of(side).control(circuit)
    assert control.name == circuit
    assert repr(control) == f"<CircuitControl {circuit!r}>"
    assert side.do(control.get_state) == "closed"
    side.do(control.trip, for_ms=700)
    assert side.do(control.get_snapshot) == side.do(breaker.get_snapshot)
    assert side.do(breaker.get_snapshot).remaining_open_ms == 700
    assert not side.do(breaker.can_execute)
    side.do(control.force_open)
    assert side.do(breaker.get_snapshot).mode == "forced-open"
    side.do(control.disable)
    assert side.do(breaker.can_execute)
    assert side.do(control.get_snapshot).mode == "disabled"
    side.do(control.reset)
    snapshot = side.do(breaker.get_snapshot)
    assert (snapshot.state, snapshot.mode, snapshot.trips) == ("closed", "auto", 0)


def test_it_asks_nothing_before_it_is_used_and_a_circuit_that_nobody_knows_may_be_steered(side: Any) -> None:
    client = side.tapped()
    circuit = name()
    control = store_of(side, client).control(circuit)
    assert client.sent == []
    side.do(control.force_open)
    assert not side.do(side.breaker(circuit, store_of(side)).can_execute)


def test_a_trip_lasts_as_the_policy_says_that_was_given_and_30_s_without_one(side: Any) -> None:
    store, circuit = store_of(side), name()

    def remaining(control: Any) -> int:
        side.do(control.trip)
        lasts: int = side.do(control.get_snapshot).remaining_open_ms
        return lasts

    assert remaining(store.control(circuit)) == 30_000
    side.do(store.control(circuit).reset)
    backing_off = store.control(circuit, open_duration_ms=1000, open_backoff=2)
    assert [remaining(backing_off), remaining(backing_off)] == [1000, 2000]


@pytest.mark.parametrize(
    "policy",
    [
        {"trip_on": "rolling", "failure_threshold": 4, "quorum": 2},
        {"trip_on": "consecutive", "failure_threshold": 4, "quorum": 2},
        {"trip_on": "rate", "minimum_calls": 4, "failure_rate": 1, "quorum": 2},
    ],
    ids=lambda policy: policy["trip_on"],
)
def test_a_circuit_is_reset_whole_whatever_it_counts_by(side: Any, policy: dict[str, Any]) -> None:
    circuit = name()
    pods = [side.breaker(circuit, store_of(side, instance=instance), **policy) for instance in ("pod-1", "pod-2")]

    def state_after(failures: int) -> str:
        for n in range(failures):
            side.do(pods[n % 2].record_failure)
        state: str = side.do(pods[0].get_state)
        return state

    assert state_after(3) == "closed"
    side.do(store_of(side).control(circuit).reset)
    snapshot = side.do(pods[0].get_snapshot)
    assert (snapshot.failures_in_window, snapshot.calls_in_window, snapshot.consecutive_failures) == (0, 0, 0)
    assert state_after(3) == "closed"
    assert state_after(4) == "open"


def test_each_operation_is_announced_by_the_instance_of_the_store_also_to_breakers_of_this_process(
    side: Any, redis_server: Server
) -> None:
    prefix, circuit = f"{name()}:", name()
    store = store_of(side, prefix=prefix, instance="ears", events=True)
    breaker = side.breaker(circuit, store, closed_cache_ms=60_000)
    changes: list[StateChange] = []
    breaker.on("state_change", changes.append)
    assert side.do(breaker.can_execute)
    with redis.Redis(port=redis_server.port) as admin:
        side.until(lambda: listeners(admin, prefix) == 1)
    control = store_of(side, prefix=prefix, instance="the console").control(circuit)
    side.do(control.trip, for_ms=700)
    side.do(control.reset)
    side.do(control.force_open)
    side.do(control.disable)
    side.until(lambda: len(changes) == 4)
    assert [(change.to_state, change.open_ms) for change in changes] == [
        ("open", 700),
        ("closed", None),
        ("open", None),
        ("closed", None),
    ]
    assert {(change.reason, change.source, change.instance) for change in changes} == {
        ("manual", "remote", "the console")
    }
    side.do(store.close)


def test_types_say_what_is_given(redis_server: Server) -> None:
    prefix = f"{name()}:"
    with redis.Redis(port=redis_server.port) as client:
        store = switchgear.redis.RedisStore(client, prefix=prefix, timeout_ms=PATIENT)
        control = assert_type(store.control("c", open_duration_ms=1000), switchgear.redis.CircuitControl)
        control.force_open()
        (listed,) = assert_type(store.circuits(window_ms=1000), list[switchgear.redis.ListedCircuit])
        assert (assert_type(listed.name, str), assert_type(listed.snapshot, Snapshot).mode) == ("c", "forced-open")

    async def main() -> None:
        async with redis.asyncio.Redis(port=redis_server.port) as client:
            store = switchgear.redis.asyncio.RedisStore(client, prefix=prefix, timeout_ms=PATIENT)
            control = assert_type(store.control("c"), switchgear.redis.asyncio.CircuitControl)
            assert assert_type(await control.get_state(), State) == "open"
            (listed,) = assert_type(await store.circuits(), list[switchgear.redis.ListedCircuit])
            assert listed == switchgear.redis.ListedCircuit("c", await control.get_snapshot())

    asyncio.run(main())


@pytest.mark.parametrize("bad", ["", "a\nb", "n" * 513, "\ud800", 7, None])
def test_names_are_checked_as_those_of_breakers(side: Any, bad: Any) -> None:
    with pytest.raises(InvalidNameError):
        store_of(side).control(bad)


def test_the_policy_is_checked_before_anything_is_sent(side: Any) -> None:
    client = side.tapped()
    store = store_of(side, client)
    for policy, field in (
        ({"open_duration_ms": 0}, "open_duration_ms"),
        ({"failure_rate": 0.5}, "failure_rate"),
        ({"on_store_failure": "ajar"}, "on_store_failure"),
        ({"idle_ttl_ms": 1}, "idle_ttl_ms"),
        ({"failures": 1}, "failures"),
    ):
        with pytest.raises(ConfigError) as caught:
            store.control("c", **policy)
        assert caught.value.field == field
        with pytest.raises(ConfigError) as caught:
            side.do(store.circuits, **policy)
        assert caught.value.field == field
    with pytest.raises(InvalidTimeError):
        store.control("c", clock=lambda: -1)
    control = store.control(name())
    for for_ms in (0, -1, 1.5, float("nan"), "5"):
        with pytest.raises(ConfigError) as caught:
            side.do(control.trip, for_ms=for_ms)
        assert caught.value.field == "for_ms"
    with pytest.raises(TypeError):
        side.do(control.trip, 5)
    assert client.sent == []


def test_a_store_that_is_away_is_an_error_every_time_and_never_an_answer_of_this_process(side: Any) -> None:
    control = store_of(side, side.tapped(lambda args: RuntimeError("away"))).control("lost", on_store_failure="local")
    # More often than it takes for the store not to be asked by calls any more.
    for _ in range(3):
        for operation in OPERATIONS:
            assert reason(side, getattr(control, operation)) == "away"
    with pytest.raises(StoreUnavailableError) as caught:
        side.do(control.reset)
    assert caught.value.circuit == "lost"


def test_a_store_that_hangs_is_waited_for_as_long_as_its_timeout_ms_says(kind: str) -> None:
    with start_server() as server, side_of(kind, server.port) as side:
        side.do(store_of(side).control("hangs").reset)
        control = store_of(side, timeout_ms=300).control("hangs")
        server.pause()
        assert reason(side, control.force_open) == "no answer within 300 ms"
        server.resume()
