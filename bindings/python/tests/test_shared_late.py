"""What becomes of answers that come late, or never: slots are given back, outcomes count."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

import pytest
import redis
from support.clock import ManualClock
from support.servers import Server, wait_until
from support.stores import PATIENT, Tapped, heard, name, reason, texts
from support.threads import no_collection
from switchgear import StoreUnavailableError
from switchgear.redis import DistributedCircuitBreaker, RedisStore, _blocking, _watch
from switchgear.redis._carry import _MOST, Carriers


@pytest.fixture
def client(redis_server: Server) -> Iterator[redis.Redis]:
    with redis.Redis(port=redis_server.port) as client:
        yield client


def ok() -> str:
    return "ok"


def half_open(client: redis.Redis, clock: ManualClock) -> DistributedCircuitBreaker:
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, open_duration_ms=1000)
    breaker.trip()
    clock.now += 1000
    breaker.acquire().release()
    return breaker


def key_of(command: list[str]) -> str:
    return command[1] if command[0] == "HMGET" else command[3]


def is_grant(reply: Any) -> bool:
    return isinstance(reply, list) and reply[0] == 2


def test_a_slot_that_was_granted_after_the_deadline_is_given_back(client: redis.Redis) -> None:
    clock = ManualClock()
    breaker = half_open(client, clock)
    held, granted = threading.Event(), threading.Event()

    def slow(args: list[str], through: Any) -> Any:
        reply = through(args)
        if is_grant(reply):
            granted.set()
            held.wait()
        return reply

    store = RedisStore(Tapped(client, slow), clock=clock, timeout_ms=2000)
    events = heard(store)
    hasty = DistributedCircuitBreaker(breaker.name, store, open_duration_ms=1000, on_store_failure="fail-closed")
    assert reason(lambda: hasty.execute(ok)) == "no answer within 2000 ms"
    granted.wait()
    assert breaker.get_snapshot().half_open_in_flight == 1
    held.set()
    wait_until(lambda: breaker.get_snapshot().half_open_in_flight == 0)
    assert texts(events) == ["no answer within 2000 ms"]
    assert breaker.execute(ok) == "ok"


def test_a_slot_whose_grant_was_lost_with_the_connection_is_given_back(client: redis.Redis) -> None:
    clock = ManualClock()
    breaker = half_open(client, clock)

    def losing(args: list[str], through: Any) -> Any:
        if is_grant(reply := through(args)):
            raise ConnectionError("the connection is closed")
        return reply

    store = RedisStore(Tapped(client, losing), clock=clock, timeout_ms=PATIENT)
    unlucky = DistributedCircuitBreaker(breaker.name, store, open_duration_ms=1000, on_store_failure="fail-closed")
    assert reason(lambda: unlucky.execute(ok)) == "the connection is closed"
    wait_until(lambda: breaker.get_snapshot().half_open_in_flight == 0)


@pytest.mark.thread_unsafe(reason="it interrupts the main thread")
def test_a_slot_that_was_granted_to_an_interrupted_caller_is_given_back(client: redis.Redis) -> None:
    clock = ManualClock()
    breaker = half_open(client, clock)

    def interrupting(args: list[str], through: Any) -> Any:
        if is_grant(reply := through(args)):
            # As Ctrl-C does, which is not delivered to a thread of ours. Again, if need be: what comes right before the
            # main thread falls asleep Python hears of only when it wakes up.
            while not caught.wait(0.1):
                signal.pthread_kill(main, signal.SIGINT)
            sent.set()
            held.wait()
        return reply

    def interrupt(*_: object) -> None:
        if not caught.is_set():
            caught.set()
            raise KeyboardInterrupt

    main = threading.main_thread().ident or 0
    caught, sent, held = threading.Event(), threading.Event(), threading.Event()
    store = RedisStore(Tapped(client, interrupting), clock=clock, timeout_ms=PATIENT)
    events = heard(store)
    interrupted = DistributedCircuitBreaker(breaker.name, store, open_duration_ms=1000)
    before = signal.signal(signal.SIGINT, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted.execute(ok)
    finally:
        sent.wait(60)
        signal.signal(signal.SIGINT, before)
        held.set()
    wait_until(lambda: breaker.get_snapshot().half_open_in_flight == 0)
    assert events == []


@pytest.mark.thread_unsafe(reason="meanwhile no store can start a thread")
def test_an_interrupt_while_a_thread_is_started_is_the_callers(monkeypatch: pytest.MonkeyPatch) -> None:
    carriers = Carriers()
    busy, held = threading.Event(), threading.Event()

    def hold() -> None:
        busy.set()
        held.wait()

    def interrupted(_: threading.Thread) -> None:
        raise KeyboardInterrupt

    carriers.post(hold)
    busy.wait()
    monkeypatch.setattr("switchgear.redis._carry._Worker.start", interrupted)
    done: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        carriers.carry(lambda: done.append(1), time.monotonic() + 5, done.append, lambda _, error: done.append(2))
    held.set()
    carriers.end()
    assert done == []


def test_what_waits_behind_threads_that_are_stuck_is_done_although_nothing_more_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The guard's question, say, whether the store is back: nobody else asks meanwhile."""
    monkeypatch.setattr("switchgear.redis._carry._STUCK_SECONDS", 0.2)
    carriers = Carriers()
    busy, held = threading.Semaphore(0), threading.Event()

    def hold() -> None:
        busy.release()
        held.wait()

    for _ in range(_MOST):
        carriers.post(hold)
        assert busy.acquire(timeout=60)
    for _ in range(3):
        done = threading.Event()
        carriers.post(done.set)
        assert done.wait(60)
        # The thread that did it is stuck, too.
        carriers.post(hold)
        assert busy.acquire(timeout=60)
    held.set()
    carriers.end()


def test_an_outcome_that_was_told_too_late_for_its_caller_counts_and_is_remembered(client: redis.Redis) -> None:
    held = threading.Event()
    holding = threading.Event()

    def slow(args: list[str], through: Any) -> Any:
        reply = through(args)
        if holding.is_set():
            held.wait()
        return reply

    store = RedisStore(Tapped(client, slow), timeout_ms=2000)
    patient = RedisStore(client, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=1, on_store_failure="fail-closed")
    # Its scripts are known from here on.
    DistributedCircuitBreaker(name(), patient, failure_threshold=1).record_failure()
    changes: list[str] = []
    breaker.on("state_change", lambda change: changes.append(change.to_state))
    # And so is the time of the server.
    breaker.get_state()
    holding.set()
    assert breaker.record_failure(OSError("late")) == "stale"
    holding.clear()
    held.set()
    wait_until(lambda: changes == ["open"])
    assert DistributedCircuitBreaker(breaker.name, patient).get_state() == "open"
    refused: list[Any] = []
    breaker.execute(ok, fallback=refused.append)
    assert refused[0].last_failure == "late"


def test_the_deadline_is_one_for_the_whole_admission_however_many_commands_it_takes(client: redis.Redis) -> None:
    clock = ManualClock()
    breaker = half_open(client, clock)
    held = threading.Event()
    sent: list[str] = []

    def second_held(args: list[str], through: Any) -> Any:
        sent.append(args[0])
        if len(sent) == 2:
            held.wait()
        return through(args)

    store = RedisStore(Tapped(client, second_held), clock=clock, timeout_ms=2000)
    hasty = DistributedCircuitBreaker(breaker.name, store, open_duration_ms=1000, on_store_failure="fail-closed")
    assert reason(lambda: hasty.execute(ok)) == "no answer within 2000 ms"
    held.set()
    wait_until(lambda: breaker.get_snapshot().half_open_in_flight == 0)


def test_what_has_not_begun_by_the_deadline_is_never_sent(client: redis.Redis) -> None:
    held = threading.Event()
    tapped = Tapped(client, lambda args, through: held.wait())
    store = RedisStore(tapped, timeout_ms=200, clock=ManualClock())
    # Each of a circuit of its own: those of one share a question.
    breakers = [DistributedCircuitBreaker(name(), store, on_store_failure="fail-closed") for _ in range(20)]
    callers = [threading.Thread(target=reason, args=(partial(breaker.execute, ok),)) for breaker in breakers]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    held.set()
    tapped._tap = None
    patient = RedisStore(client, timeout_ms=PATIENT)
    assert DistributedCircuitBreaker(breakers[0].name, patient).get_state() == "closed"
    # Asked whatever has become of those before, unlike an admission.
    while True:
        with suppress(StoreUnavailableError):
            assert breakers[0].get_state() == "closed"
            break
    # No more than one question for each thread, and this one: the threads are free again, and would have sent the rest
    # before it.
    assert len({key_of(args) for args in tapped.sent}) <= _MOST + 1


@pytest.mark.thread_unsafe(reason="it traces")
def test_an_interrupt_at_any_line_of_an_exchange_leaves_the_client_s_connections_as_they_were(
    redis_server: Server,
) -> None:
    # They wait for ever, but in our exchanges.
    client = redis.Redis(port=redis_server.port, socket_timeout=None)
    breaker = DistributedCircuitBreaker(name(), RedisStore(client, timeout_ms=PATIENT))
    number = lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if frame.f_code is not _blocking._ask.__code__ and frame.f_code.co_filename != _watch.__file__:
            return None
        if event == "line":
            lines += 1
            if lines == number:
                raise KeyboardInterrupt
        return trace

    def run() -> None:
        sys.settrace(trace)
        with suppress(KeyboardInterrupt):
            breaker.execute(ok)

    def timeouts() -> set[float | None]:
        # Of those that are connected.
        sockets = [connection._sock for connection in client.connection_pool._available_connections]
        return {sock.gettimeout() for sock in sockets if sock is not None}

    assert client.ping()
    own = timeouts()
    while lines >= number:
        number, lines = number + 1, 0
        assert client.ping()
        # In a thread of its own, which an exception at a line of a handler leaves with the one that was handled.
        thread = threading.Thread(target=run)
        with no_collection():
            thread.start()
            thread.join()
        assert timeouts() <= own, number
    assert number > 10
    assert breaker.execute(ok) == "ok"
    client.close()
