"""Threads and processes that share a circuit: never more probes together than it allows."""

from __future__ import annotations

import gc
import multiprocessing
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
from support.child import start_script
from support.clock import ManualClock
from support.fleet import ask_for_a_probe
from support.servers import Server, wait_until
from support.stores import PATIENT, heard, name
from switchgear.redis import DistributedCircuitBreaker, RedisStore


@pytest.fixture
def client(redis_server: Server) -> Iterator[redis.Redis]:
    with redis.Redis(port=redis_server.port) as client:
        yield client


@pytest.mark.thread_unsafe(reason="four times as many threads want more connections than a pool gives")
def test_scenario_7_of_64_threads_at_the_reopening_time_exactly_so_many_get_a_probe(client: redis.Redis) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    events = heard(store)
    policy: dict[str, Any] = {"open_duration_ms": 1000, "half_open_max_calls": 3, "success_threshold": 3}
    breaker = DistributedCircuitBreaker(name(), store, **policy)
    breaker.trip()
    clock.now += 1000
    start = threading.Barrier(64)
    granted: list[bool] = []

    def ask() -> None:
        start.wait()
        granted.append(breaker.can_execute())

    threads = [threading.Thread(target=ask) for _ in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (granted.count(True), granted.count(False)) == (3, 61)
    assert breaker.get_snapshot().half_open_in_flight == 3
    assert events == []


@pytest.mark.thread_unsafe(reason="it counts threads")
def test_a_store_that_is_dropped_leaves_no_thread(client: redis.Redis) -> None:
    def use() -> None:
        breaker = DistributedCircuitBreaker(name(), RedisStore(client, timeout_ms=PATIENT))
        for _ in range(3):
            breaker.execute(lambda: "ok")

    def ours() -> set[threading.Thread]:
        return {thread for thread in threading.enumerate() if thread.name.startswith("switchgear")}

    gc.collect()
    before = ours()
    for _ in range(5):
        use()
    gc.collect()
    wait_until(lambda: ours() <= before)


def test_threads_trip_once_and_count_each_failure(client: redis.Redis) -> None:
    store = RedisStore(client, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=40, window_ms=600_000)
    changes: list[str] = []
    breaker.on("state_change", lambda change: changes.append(f"{change.to_state} {change.failures}"))

    def run() -> None:
        for _ in range(10):
            breaker.record_failure()

    threads = [threading.Thread(target=run) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert changes == ["open 40"]
    assert breaker.get_snapshot().trips == 1


CHILD = """
import sys
import redis
from support.clock import ManualClock
from switchgear.redis import DistributedCircuitBreaker, RedisStore

port, name, now = sys.argv[1:]
client = redis.Redis(port=int(port))
store = RedisStore(client, clock=ManualClock(int(now)), timeout_ms=60_000)
breaker = DistributedCircuitBreaker(name, store, open_duration_ms=1000, half_open_max_calls=3, success_threshold=3)
print("ready", flush=True)
sys.stdin.readline()
print(sum(breaker.can_execute() for _ in range(5)), flush=True)
"""


@pytest.mark.once(reason="the machine needs long for so many interpreters")
@pytest.mark.thread_unsafe(reason="eight processes at once are enough")
def test_scenario_7_of_8_processes_at_the_reopening_time_exactly_so_many_get_a_probe(
    client: redis.Redis, redis_server: Server
) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(
        name(), store, open_duration_ms=1000, half_open_max_calls=3, success_threshold=3
    )
    breaker.trip()
    clock.now += 1000
    children = [start_script(CHILD, str(redis_server.port), breaker.name, str(clock.now)) for _ in range(8)]
    try:
        for child in children:
            assert child.stdout is not None
            assert child.stdout.readline() == "ready\n"
        for child in children:
            _go_on(child)
        granted = [int(child.stdout.readline()) for child in children if child.stdout is not None]
        assert sum(granted) == 3
        assert breaker.get_snapshot().half_open_in_flight == 3
    finally:
        for child in children:
            child.kill()
            child.communicate()


def _go_on(child: Any) -> None:
    child.stdin.write("\n")
    child.stdin.flush()


@pytest.mark.once(reason="the machine needs long for so many interpreters")
@pytest.mark.thread_unsafe(reason="multiprocessing starts processes of its own once")
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_processes_of_multiprocessing_share_a_circuit(client: redis.Redis, redis_server: Server, method: str) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, open_duration_ms=1000, half_open_max_calls=2)
    breaker.trip()
    clock.now += 1000
    context = multiprocessing.get_context(method)
    arguments = (redis_server.port, breaker.name, clock.now)
    children = [context.Process(target=ask_for_a_probe, args=arguments) for _ in range(4)]  # type: ignore[attr-defined]  # each of the two has it
    for child in children:
        child.start()
    for child in children:
        child.join()
    codes = [child.exitcode for child in children]
    for child in children:
        child.close()
    assert sorted(codes) == [10, 10, 11, 11]
