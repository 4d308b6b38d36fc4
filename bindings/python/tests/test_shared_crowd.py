"""Who waits in an event loop for an admission that somebody else has asked for (DESIGN 5.1)."""

from __future__ import annotations

import asyncio
import gc
import select
import threading
import time
import weakref
from typing import Any

import redis
import redis.asyncio
from support.calls import questions
from support.clock import ManualClock
from support.servers import Server
from support.sides import side_of
from support.stores import PATIENT, AsyncTapped, heard, name, set_deadline
from switchgear._native import Flight
from switchgear.redis._crowd import Crowd
from switchgear.redis._talk import Landed
from switchgear.redis.asyncio import DistributedCircuitBreaker, RedisStore

LANDED = Landed("applied", None, "share")
NEVER = 1e9


def flight() -> Flight:
    """One that is under way; nobody who leads it will end it."""
    store = RedisStore(AsyncTapped(None))
    engine = DistributedCircuitBreaker(name(), store)._circuit._asking.engine
    engine.admit()
    joined = engine.admit()
    assert isinstance(joined, Flight)
    return joined


def land(flight: Flight) -> None:
    """Tells them what came of it, as its leader does."""
    for waiter in flight.land(LANDED):
        waiter(LANDED)


def test_all_are_told_at_once_and_who_comes_later_finds_it_there() -> None:
    async def main() -> None:
        joined = flight()
        crowd = Crowd(joined, asyncio.get_running_loop())
        waiting = [crowd.wait(NEVER) for _ in range(3)]
        waiting[1].cancel()
        # To the flight they are one.
        (waiter,) = joined.land(LANDED)
        waiter(LANDED)
        assert crowd.landed is LANDED
        await waiting[0]
        await waiting[2]
        assert waiting[1].cancelled()
        assert Crowd(joined, asyncio.get_running_loop()).landed is LANDED

    asyncio.run(main())


def test_each_waits_until_he_is_due_whoever_came_first() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        joined = flight()
        crowd = Crowd(joined, loop)
        first, early, cancelled, last = (crowd.wait(due) for due in (NEVER, loop.time(), loop.time(), NEVER - 1))
        cancelled.cancel()
        await early
        # Once more: who is the first to be due now is another one.
        await crowd.wait(loop.time() + 0.01)
        assert crowd.landed is None
        assert not first.done()
        assert not last.done()
        land(joined)
        await first
        await last

    asyncio.run(main())


def test_who_is_woken_because_he_is_due_finds_what_has_landed_meanwhile() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        joined = flight()
        crowd = Crowd(joined, loop)
        late, patient = crowd.wait(loop.time()), crowd.wait(NEVER)
        # Before it goes on itself.
        late.add_done_callback(lambda _: land(joined))
        await late
        assert crowd.landed is LANDED
        await patient

    asyncio.run(main())


def test_what_lands_in_the_midst_of_anything_leaves_nobody_waiting() -> None:
    """As when the garbage collector comes across a leader whose event loop was closed over him."""

    class Loop(asyncio.SelectorEventLoop):
        lands: Any = None

        def create_future(self) -> asyncio.Future[Any]:
            self._hook("future")
            return super().create_future()

        def call_at(self, *args: Any, **options: Any) -> Any:  # type: ignore[override]  # it hands all of it on
            self._hook("timer")
            return super().call_at(*args, **options)

        def _hook(self, at: str) -> None:
            if self.lands is not None and self.lands[0] == at:
                _, joined = self.lands
                self.lands = None
                land(joined)

    async def main(at: str) -> None:
        loop: Any = asyncio.get_running_loop()
        joined = flight()
        crowd = Crowd(joined, loop)
        before = crowd.wait(NEVER)
        loop.lands = (at, joined)
        await crowd.wait(NEVER - 1)
        await before
        assert loop.lands is None

    async def is_due(at: str) -> None:
        loop: Any = asyncio.get_running_loop()
        joined = flight()
        crowd = Crowd(joined, loop)
        due, patient = crowd.wait(loop.time()), crowd.wait(NEVER)
        loop.lands = (at, joined)
        await due
        await patient
        assert loop.lands is None

    loop = Loop()
    try:
        for at in ("future", "timer"):
            loop.run_until_complete(main(at))
        loop.run_until_complete(is_due("timer"))
    finally:
        loop.close()


def test_who_waits_in_an_event_loop_that_has_ended_hinders_nobody() -> None:
    async def join(joined: Flight) -> Crowd:
        crowd = Crowd(joined, asyncio.get_running_loop())
        assert not crowd.wait(NEVER).done()
        return crowd

    joined = flight()
    ended = asyncio.run(join(joined))

    async def main() -> None:
        crowd = Crowd(joined, asyncio.get_running_loop())
        here = crowd.wait(NEVER)
        land(joined)
        await here
        assert crowd.landed is LANDED

    asyncio.run(main())
    assert ended.loop.is_closed()


async def call() -> str:
    return "ok"


def test_an_event_loop_that_was_closed_over_those_who_wait_is_collected_with_them() -> None:
    def leave() -> weakref.ref[asyncio.AbstractEventLoop]:
        loop = asyncio.new_event_loop()
        # It would complain of the tasks that it was closed over.
        loop.set_exception_handler(lambda *_: None)

        async def hang(*_: object) -> None:
            await loop.create_future()

        breaker = DistributedCircuitBreaker(name(), RedisStore(AsyncTapped(None, hang), timeout_ms=PATIENT))

        async def main() -> asyncio.Future[Any]:
            # They know of each other.
            waiting = asyncio.gather(*(breaker.execute(call) for _ in range(3)))
            await asyncio.sleep(0)
            assert breaker._circuit._crowd is not None
            return waiting

        assert not loop.run_until_complete(main()).done()
        loop.close()
        return weakref.ref(loop)

    left = leave()
    gc.collect()
    assert left() is None


def test_a_circuit_has_no_hold_of_an_event_loop_that_has_ended(redis_server: Server) -> None:
    with redis.Redis(port=redis_server.port) as client:

        async def ask(args: list[str], _: object) -> Any:
            await asyncio.sleep(0)
            return client.execute_command(*args)

        store = RedisStore(AsyncTapped(None, ask), timeout_ms=PATIENT)
        breaker = DistributedCircuitBreaker(name(), store)

        async def main(*, cancels: bool) -> weakref.ref[asyncio.AbstractEventLoop]:
            tasks = [asyncio.ensure_future(breaker.execute(call)) for _ in range(3)]
            await asyncio.sleep(0)
            assert breaker._circuit._crowd is not None
            if cancels:
                for task in tasks:
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return weakref.ref(asyncio.get_running_loop())

        for cancels in (False, True):
            ended = asyncio.run(main(cancels=cancels))
            gc.collect()
            assert ended() is None


def test_an_answer_that_an_event_loop_was_too_busy_to_read_is_for_all_who_wait(redis_server: Server) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        async with redis.asyncio.Redis(port=redis_server.port) as client:
            store = RedisStore(client, timeout_ms=PATIENT)
            breaker = DistributedCircuitBreaker(name(), store, on_store_failure="fail-closed")
            await breaker.execute(call)
            connection: Any = client.connection_pool._available_connections[0]
            socket = connection._writer.get_extra_info("socket")
            set_deadline(store, 50)
            tasks = [asyncio.ensure_future(breaker.execute(call)) for _ in range(5)]
            is_late = False

            def block() -> None:
                # Somebody's long computation: it ends when all are due, and the answer is there.
                nonlocal is_late
                until = loop.time() + 0.1
                select.select([socket.fileno()], [], [])
                while loop.time() < until:
                    time.sleep(0.01)
                is_late = True

            # Right after they have asked: before the event loop looks for anything again.
            loop.call_soon(block)
            assert await asyncio.gather(*tasks) == ["ok"] * 5
            assert is_late

    asyncio.run(main())


def test_tasks_of_two_event_loops_join_one_admission(redis_server: Server) -> None:
    """Each is woken in its own."""
    with side_of("asyncio", redis_server.port) as side:
        asked, held = asyncio.Event(), side.loop.create_future()

        def hold(args: list[str]) -> Any:
            asked.set()
            return held

        client = side.tapped(hold)
        breaker = side.breaker(name(), side.store(client, clock=ManualClock(), timeout_ms=PATIENT))
        joined = threading.Semaphore(0)

        async def calls() -> list[str]:
            tasks = [asyncio.ensure_future(breaker.execute(call)) for _ in range(10)]
            await asyncio.sleep(0)
            joined.release()
            return list(await asyncio.gather(*tasks))

        given: list[list[str]] = []

        async def main() -> None:
            leader = asyncio.ensure_future(breaker.execute(call))
            await asked.wait()
            threads = [threading.Thread(target=lambda: given.append(asyncio.run(calls()))) for _ in range(2)]
            for thread in threads:
                thread.start()
            here = asyncio.ensure_future(calls())
            for _ in range(3):
                await asyncio.to_thread(joined.acquire)
            held.set_result(None)
            given.append(await here)
            assert await leader == "ok"
            for thread in threads:
                await asyncio.to_thread(thread.join)

        side.do(main)
        assert given == [["ok"] * 10] * 3
        assert len(questions(client)) == 1


def test_a_leader_who_is_interrupted_as_he_asks_strands_nobody(redis_server: Server) -> None:
    class Interrupt(BaseException):
        """As a signal's handler raises it."""

    with side_of("asyncio", redis_server.port) as side:
        client = side.tapped()
        store = side.store(client, timeout_ms=PATIENT)
        told = heard(store)
        breaker = side.breaker(name(), store)
        command = client.command

        def interrupted(args: list[str], key: str) -> Any:
            # What comes first is what time it is: they join meanwhile.
            if len(client.sent) == 1:
                client.command = command
                raise Interrupt
            return command(args, key)

        client.command = interrupted

        async def main() -> list[Any]:
            return await asyncio.gather(*(breaker.execute(call) for _ in range(3)), return_exceptions=True)

        first, *others = side.do(main)
        assert isinstance(first, Interrupt)
        assert others == ["ok"] * 2
        assert told == []
