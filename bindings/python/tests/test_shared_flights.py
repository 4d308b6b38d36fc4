"""Admissions that share a round trip, and what nobody waits for (DESIGN 5.1, 5.3): sync and asyncio alike."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import pytest
from support.calls import failed, names_of, ok, questions, refused, told_by
from support.clock import ManualClock
from support.servers import Server
from support.sides import Asyncio, Sync, side_of
from support.stores import PATIENT, heard, name, set_deadline
from switchgear import CircuitOpenError, StoreUnavailableError

pytestmark = pytest.mark.thread_unsafe(reason="the tests stop, pause and flush their servers, and count commands")


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
    return sum(_is_at(frame, "join") for frame in frames)


def _is_in(thread: threading.Thread, function: str) -> bool:
    """Whether a thread waits in a function of ours."""
    import sys

    return _is_at(sys._current_frames().get(thread.ident or 0), function)


def _is_at(frame: Any, function: str) -> bool:
    while frame is not None:
        if frame.f_code.co_name == function and frame.f_code.co_filename.endswith("_blocking.py"):
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


def test_who_has_joined_behind_others_waits_no_longer_than_his_own_deadline(redis_server: Server) -> None:
    with side_of("asyncio", redis_server.port) as side:
        loop = side.loop
        held = [loop.create_future(), loop.create_future()]
        waiting = iter(held)
        store = side.store(side.tapped(lambda _: next(waiting, None)), clock=ManualClock(), timeout_ms=PATIENT)
        breaker = side.breaker(name(), store, on_store_failure="fail-closed")

        async def main() -> None:
            async def call() -> str:
                return "ok"

            leader = asyncio.ensure_future(breaker.execute(call))
            await asyncio.sleep(0)
            set_deadline(store, 100)
            first = asyncio.ensure_future(breaker.execute(call))
            await asyncio.sleep(0)
            set_deadline(store, PATIENT)
            leader.cancel()
            # They ask anew, and the first joins them, behind them.
            later = [asyncio.ensure_future(breaker.execute(call)) for _ in range(3)]
            with pytest.raises(StoreUnavailableError):
                await first
            assert not any(task.done() for task in later)
            held[1].set_result(None)
            assert await asyncio.gather(*later) == ["ok"] * 3
            with pytest.raises(asyncio.CancelledError):
                await leader

        side.do(main)


def test_an_interrupted_leader_does_not_strand_those_who_joined(redis_server: Server) -> None:
    with side_of("sync", redis_server.port) as side:
        held, interrupted, done = threading.Event(), threading.Event(), threading.Event()
        main = threading.main_thread().ident or 0
        joiner: list[Any] = []

        def hold(args: list[str]) -> None:
            if len(client.sent) > 1:
                return
            thread.start()
            side.until(lambda: joined(breaker) == 1)
            # As Ctrl-C does, which is not delivered to a thread of ours. Again, if need be: what comes right before the
            # main thread falls asleep Python hears of only when it wakes up.
            while not interrupted.wait(0.05):
                signal.pthread_kill(main, signal.SIGINT)
            done.set()
            held.wait()

        def interrupt(*_: object) -> None:
            if not interrupted.is_set():
                interrupted.set()
                raise KeyboardInterrupt

        client = side.tapped(hold)
        store = side.store(client, clock=ManualClock(), timeout_ms=PATIENT)
        events, told = heard(store), told_by(store)
        breaker = side.breaker(name(), store)
        thread = threading.Thread(target=lambda: joiner.append(side.run(breaker, ok)))
        before = signal.signal(signal.SIGINT, interrupt)
        try:
            with pytest.raises(KeyboardInterrupt):
                side.run(breaker, ok)
            thread.join()
        finally:
            # No more signals come: the next one would end the whole run.
            done.wait(60)
            held.set()
            signal.signal(signal.SIGINT, before)
        assert joiner == ["ok"]
        assert (events, told) == ([], [])


def test_a_leader_who_is_no_more_strands_nobody_for_longer_than_a_deadline(side: Any) -> None:
    client = side.tapped()
    store = side.store(client, clock=ManualClock(), timeout_ms=100)
    breaker = side.breaker(name(), store)
    # Whoever asked was killed before he could send it.
    breaker._circuit._asking.engine.admit()
    assert side.run(breaker, ok) == "ok"
    assert names_of(client) == []
    set_deadline(store, PATIENT)
    side.run(breaker, ok)
    assert len(questions(client)) >= 1


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


def _tells(args: list[str], script: str) -> bool:
    """Whether a command tells a success (its last argument is their number), or a failure (the instance)."""
    return args[0] in {"EVAL", "EVALSHA"} and len(args) > 10 and args[-1].isdigit() is (script == "success")


def _row(side: Any, breaker: Any) -> int:
    row: int = side.do(breaker.get_snapshot).consecutive_failures
    return row


def test_a_failure_comes_after_the_success_that_it_followed_in_its_thread(redis_server: Server) -> None:
    with side_of("sync", redis_server.port) as side:
        held, asked = threading.Event(), threading.Event()

        def hold(args: list[str]) -> None:
            if _tells(args, "success"):
                asked.set()
                held.wait()

        store = side.store(side.tapped(hold), clock=ManualClock(), timeout_ms=PATIENT)
        breaker = side.breaker(name(), store, trip_on="consecutive")
        failed(side, breaker)
        side.run(breaker, ok)
        asked.wait()
        failing = threading.Thread(target=failed, args=(side, breaker))
        failing.start()
        # One that does not wait is done without it.
        side.until(lambda: _is_in(failing, "let_by") or not failing.is_alive())
        held.set()
        failing.join()
        side.until(lambda: _row(side, breaker) != 0)
        assert _row(side, breaker) == 1


def test_a_failure_comes_after_the_success_that_it_followed_in_its_task(redis_server: Server) -> None:
    with side_of("asyncio", redis_server.port) as side:
        held, asked = side.loop.create_future(), asyncio.Event()

        def hold(args: list[str]) -> object:
            if not _tells(args, "success"):
                return None
            asked.set()
            return held

        client = side.tapped(hold)
        store = side.store(client, clock=ManualClock(), timeout_ms=PATIENT)
        breaker = side.breaker(name(), store, trip_on="consecutive")
        failed(side, breaker)
        side.run(breaker, ok)

        async def fails_on() -> None:
            await asked.wait()
            client.sent.clear()
            failing = asyncio.ensure_future(breaker.record_failure())
            for _ in range(50):
                await asyncio.sleep(0)
            assert client.sent == []
            held.set_result(None)
            await failing

        side.do(fails_on)
        assert _row(side, breaker) == 1


def test_a_listener_of_what_tells_a_success_waits_for_nothing(redis_server: Server) -> None:
    with side_of("sync", redis_server.port) as side:
        told: list[str] = []

        def hold(args: list[str]) -> object:
            # No reply that a command of ours gets.
            return [0, 7, 0, 0, 0] if _tells(args, "success") else None

        store = side.store(side.tapped(hold), clock=ManualClock(), timeout_ms=PATIENT)
        breaker = side.breaker(name(), store, trip_on="consecutive")

        def listener(event: object) -> None:
            told.append(breaker.record_failure())

        store.on("store_error", listener)
        side.run(breaker, ok)
        side.until(lambda: told == ["applied"])
        assert _row(side, breaker) == 1


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
