"""Processes that were forked: each gives its calls ids of its own, has its own threads and connections, and works."""

from __future__ import annotations

import os
import sys
import threading
import traceback
import warnings
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
import redis
from support.clock import ManualClock
from support.servers import Server
from support.stores import PATIENT, Tapped, name
from switchgear.redis import DistributedCircuitBreaker, RedisStore

pytestmark = pytest.mark.thread_unsafe(reason="the tests fork, and threads of other tests do not come along")


@pytest.fixture
def client(redis_server: Server) -> Iterator[redis.Redis]:
    with redis.Redis(port=redis_server.port) as client:
        yield client


class Child:
    """A process that was forked to do one thing. What that gives is an exit code; -1 that it failed."""

    def __init__(self, do: Callable[[], int]) -> None:
        with warnings.catch_warnings():
            # That a process with threads forks is what this is about.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._pid = os.fork()
        if self._pid == 0:
            code = 255
            try:
                code = do()
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                # Nothing of the test goes on in here.
                os._exit(code)

    def result(self) -> int:
        _, status = os.waitpid(self._pid, 0)
        return os.waitstatus_to_exitcode(status)


def test_of_8_children_of_a_parent_that_had_used_the_breaker_no_more_than_allowed_get_a_probe(
    client: redis.Redis,
) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(
        name(), store, open_duration_ms=1000, half_open_max_calls=3, success_threshold=3
    )
    breaker.execute(lambda: "ok")
    breaker.trip()
    clock.now += 1000
    go_read, go_write = os.pipe()

    def ask() -> int:
        os.close(go_write)
        os.read(go_read, 1)
        return sum(breaker.can_execute() for _ in range(4))

    children = [Child(ask) for _ in range(8)]
    os.close(go_write)
    granted = [child.result() for child in children]
    os.close(go_read)
    # Had they the ids of the parent, each would hold the very same slot.
    assert sum(granted) == 3
    assert breaker.get_snapshot().half_open_in_flight == 3
    assert not breaker.can_execute()


def test_children_and_parent_fail_with_ids_of_their_own(client: redis.Redis) -> None:
    store = RedisStore(client, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=100, window_ms=600_000)
    breaker.record_failure()

    def run() -> int:
        return sum(breaker.record_failure() == "applied" for _ in range(5))

    children = [Child(run) for _ in range(4)]
    assert run() == 5
    assert [child.result() for child in children] == [5] * 4
    assert breaker.get_snapshot().failures_in_window == 26


def test_scenario_42_a_fork_while_a_call_is_in_flight_leaves_both_at_work(client: redis.Redis) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=1, open_duration_ms=1000)
    inside, leave = threading.Event(), threading.Event()

    def hold() -> None:
        with breaker:
            inside.set()
            leave.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait()

    def run() -> int:
        assert breaker.execute(lambda: "ok") == "ok"
        assert breaker.record_failure() == "applied"
        return 7

    assert Child(run).result() == 7
    leave.set()
    thread.join()
    assert breaker.get_state() == "open"


def test_a_child_has_its_own_threads_to_wait_in_its_place(client: redis.Redis) -> None:
    held = threading.Event()
    inside = threading.Event()

    def waiting(args: list[str], through: Any) -> Any:
        inside.set()
        held.wait()
        return through(args)

    tapped = Tapped(client, waiting)
    breaker = DistributedCircuitBreaker(name(), RedisStore(tapped, timeout_ms=PATIENT))
    thread = threading.Thread(target=lambda: breaker.execute(lambda: "ok"))
    thread.start()
    inside.wait()

    def run() -> int:
        tapped._tap = None
        return len(breaker.execute(lambda: "sixteen letters!"))

    assert Child(run).result() == 16
    held.set()
    thread.join()


def test_a_block_that_forks_is_settled_once(client: redis.Redis) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(
        name(), store, open_duration_ms=1000, half_open_max_calls=2, success_threshold=2
    )
    breaker.trip()
    clock.now += 1000
    permit = breaker.acquire()

    def run() -> int:
        return ["applied", "stale", "duplicate"].index(permit.record_success())

    assert Child(run).result() == 0
    permit.record_success()
    # The same probe, told twice.
    assert breaker.get_snapshot().half_open_successes == 1


def test_a_child_knows_nothing_of_what_its_parent_knew_of_the_store(client: redis.Redis) -> None:
    away = [True]

    def failing(args: list[str], through: Any) -> Any:
        if away:
            raise ConnectionError("gone")
        return through(args)

    tapped = Tapped(client, failing)
    store = RedisStore(tapped, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, closed_cache_ms=600_000)
    for _ in range(3):
        breaker.execute(lambda: "ok")
    # From here on the parent does not ask, but the child does: the server's time first, and the circuit.
    away.clear()

    def run() -> int:
        # Here, where no thread of the parent's has still something to send.
        tapped.sent.clear()
        breaker.execute(lambda: "ok")
        return [args[0] for args in tapped.sent if args[0] != "EVAL"] == ["TIME", "EVALSHA"]

    assert Child(run).result() == 1


def test_threads_of_a_child_that_come_first_together_share_what_it_knows(client: redis.Redis) -> None:
    go = threading.Event()

    def controlling(args: list[str], through: Any) -> Any:
        if "force-open" in args:
            # Before it is done the other thread goes on, and learns that the circuit is closed.
            go.set()
            late[0].join()
        return through(args)

    tapped = Tapped(client, controlling)
    breaker = DistributedCircuitBreaker(name(), RedisStore(tapped, timeout_ms=PATIENT), closed_cache_ms=600_000)
    late: list[threading.Thread] = []

    def run() -> int:
        engine = breaker._circuit._asking.engine
        make, made = engine._new_engine, threading.Event()

        def made_late() -> Any:
            new = make()
            if threading.current_thread() in late:
                made.set()
                go.wait()
            return new

        engine._new_engine = made_late  # type: ignore[method-assign]  # holds one thread up
        late.append(threading.Thread(target=breaker.execute, args=(lambda: "ok",)))
        late[0].start()
        made.wait()
        breaker.force_open()
        return int(breaker.can_execute())

    assert Child(run).result() == 0


def test_a_child_waits_for_nothing_that_only_its_parent_can_do(client: redis.Redis) -> None:
    clock = ManualClock()
    held, inside = threading.Event(), threading.Event()

    def holding(args: list[str], through: Any) -> Any:
        if is_holding:
            inside.set()
            held.wait()
        return through(args)

    is_holding = False
    store = RedisStore(Tapped(client, holding), clock=clock, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(
        name(),
        store,
        open_duration_ms=1000,
        half_open_max_calls=2,
        success_threshold=2,
        on_store_failure="fail-closed",
    )
    breaker.trip()
    clock.now += 1000

    def steps() -> Generator[int, None, None]:
        yield 1

    given = breaker.execute(steps)
    next(given)
    is_holding = True
    # Its slot is given back by another thread.
    given.close()
    inside.wait()

    def run() -> int:
        nonlocal is_holding
        is_holding = False
        # Had it waited until the deadline, no time would be left to ask.
        return len(breaker.execute(lambda: "sixteen letters!"))

    assert Child(run).result() == 16
    is_holding = False
    held.set()


def test_what_a_parent_need_not_ask_its_child_asks(client: redis.Redis) -> None:
    tapped = Tapped(client)
    breaker = DistributedCircuitBreaker(name(), RedisStore(tapped, timeout_ms=PATIENT), closed_cache_ms=600_000)
    guarded: Callable[[], str] = breaker(lambda: "ok")
    guarded()

    def run() -> int:
        asked = len(tapped.took(guarded))
        # Once; and from then on by what this process knows.
        assert tapped.took(guarded) == []
        breaker.force_open()
        assert not breaker.can_execute()
        return asked

    assert tapped.took(guarded) == []
    assert Child(run).result() > 0
    assert tapped.took(guarded) == []
