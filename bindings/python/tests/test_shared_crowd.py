"""Who waits in an event loop for an admission that somebody else has asked for (DESIGN 5.1)."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from support.calls import questions
from support.clock import ManualClock
from support.servers import Server
from support.sides import side_of
from support.stores import PATIENT, AsyncTapped, name
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


def test_all_are_told_at_once_and_who_comes_later_without_waiting() -> None:
    async def main() -> None:
        joined = flight()
        crowd = Crowd(joined, asyncio.get_running_loop())
        waiting: list[Any] = [crowd.wait(NEVER) for _ in range(3)]
        waiting[1].cancel()
        # To the flight they are one.
        (waiter,) = joined.land(LANDED)
        waiter(LANDED)
        assert [await waiting[0], await waiting[2]] == [LANDED, LANDED]
        assert waiting[1].cancelled()
        assert crowd.wait(NEVER) is LANDED
        assert Crowd(joined, asyncio.get_running_loop()).wait(NEVER) is LANDED

    asyncio.run(main())


def test_each_waits_until_he_is_due_whoever_came_first() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        joined = flight()
        crowd = Crowd(joined, loop)
        first, early, cancelled, last = (crowd.wait(due) for due in (NEVER, loop.time(), loop.time(), NEVER - 1))
        assert not isinstance(cancelled, Landed)
        cancelled.cancel()
        assert await early is None  # type: ignore[misc]  # it has not landed
        # Once more: who is the first to be due now is another one.
        soon: Any = crowd.wait(loop.time() + 0.01)
        assert await soon is None
        land(joined)
        assert [await one for one in (first, last)] == [LANDED, LANDED]  # type: ignore[misc]  # it has not landed

    asyncio.run(main())


def test_a_flight_that_nobody_waits_for_any_more_has_hold_of_nobody() -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        crowd = Crowd(flight(), loop)
        waiting: Any = crowd.wait(loop.time())
        assert crowd.flight is not None
        assert await waiting is None
        # It has hold of the crowd, and never ends: nor would the two, had they hold of each other.
        assert crowd.flight is None

    asyncio.run(main())


def test_who_waits_in_an_event_loop_that_has_ended_hinders_nobody() -> None:
    async def join(joined: Flight) -> Crowd:
        crowd = Crowd(joined, asyncio.get_running_loop())
        crowd.wait(NEVER)
        return crowd

    joined = flight()
    ended = asyncio.run(join(joined))

    async def main() -> None:
        here: Any = Crowd(joined, asyncio.get_running_loop()).wait(NEVER)
        land(joined)
        assert await here is LANDED

    asyncio.run(main())
    assert ended.loop.is_closed()


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

        async def call() -> str:
            return "ok"

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
