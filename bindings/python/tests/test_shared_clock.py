"""The time of the store (DESIGN 5.5): in sync code and in asyncio alike."""

from __future__ import annotations

from typing import Any

import pytest
import redis
import redis.asyncio
from support.calls import failed, names_of, ok, port_of, refused
from support.clock import ManualClock
from support.stores import PATIENT, name
from switchgear._clock import monotonic_now

pytestmark = pytest.mark.thread_unsafe(reason="the tests stop, pause and flush their servers, and count commands")


def test_the_server_is_asked_for_its_time_ahead_of_the_first_command_and_again_after_half_a_minute(
    side: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It stands: however long an answer takes, it is exact, and nothing is asked again because it was not.
    began, ahead = monotonic_now(), 0
    monkeypatch.setattr("switchgear.redis._link.monotonic_now", lambda: began + ahead)
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
    # A window that is wide for a slow machine, and narrow beside the skew.
    policy = {"failure_threshold": 6, "window_ms": 60_000, "open_duration_ms": 60_000, "open_cache_ms": 0}
    breakers = [side.breaker(circuit, store, **policy) for store in stores]
    for breaker in breakers:
        assert side.do(breaker.get_state) == "closed"
        failed(side, breaker)
        failed(side, breaker)
    for breaker in breakers:
        assert 0 < (refused(side, breaker).retry_after or 0) < 120
    seconds, _ = redis.Redis(port=port_of(side)).time()
    opened_at = side.do(breakers[1].get_snapshot).opened_at
    assert abs(opened_at - seconds * 1000) < 300_000
