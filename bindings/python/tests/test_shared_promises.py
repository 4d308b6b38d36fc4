"""What holds of shared circuits whoever calls (scenarios 51, 52, 57): in sync code and in asyncio alike."""

from __future__ import annotations

from typing import Any

import pytest
import redis
import redis.asyncio
from support.calls import failed, names_of, port_of, refused
from support.clock import ManualClock
from support.servers import start_server
from support.sides import side_of
from support.stores import PATIENT, name

pytestmark = pytest.mark.thread_unsafe(reason="the tests stop, pause and flush their servers, and count commands")


def test_scenario_51_every_key_has_a_ttl_and_a_refusal_extends_none(side: Any) -> None:
    plain = redis.Redis(port=port_of(side))
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
