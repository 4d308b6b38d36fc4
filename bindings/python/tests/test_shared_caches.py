"""What a shared circuit need not ask (DESIGN 5.2): in sync code and in asyncio alike."""

from __future__ import annotations

from typing import Any

import pytest
from support.calls import failed, names_of, ok, questions, refused
from support.clock import ManualClock
from support.stores import PATIENT, name

pytestmark = pytest.mark.thread_unsafe(reason="the tests stop, pause and flush their servers, and count commands")


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
