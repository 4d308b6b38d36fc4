"""Shared breakers for asyncio on a real Redis: cancellation, deadlines, all the ways in."""

from __future__ import annotations

import asyncio
import functools
import gc
import inspect
import socket
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
import redis.asyncio
import redis.asyncio.retry
import redis.backoff
from support.clock import ManualClock
from support.servers import Server, start_server
from support.stores import (
    PATIENT,
    AsyncAnswering,
    AsyncTapped,
    heard,
    name,
    reason_async,
    set_deadline,
    texts,
)
from switchgear import (
    CallTimeoutError,
    CircuitOpenError,
    InvalidTimeError,
    Snapshot,
    StoreError,
    StoreUnavailableError,
)
from switchgear.redis.asyncio import DistributedCircuitBreaker, DistributedCircuitBreakerGroup, RedisStore


class BoomError(Exception):
    """What the dependency raises."""


async def fail() -> str:
    raise BoomError("ECONNREFUSED")


async def ok() -> str:
    return "ok"


async def hang() -> None:
    await asyncio.Event().wait()


class Place:
    """A client and a clock, and what is made with them."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.clock = ManualClock()

    def store(self, client: Any = None, **options: Any) -> RedisStore:
        return RedisStore(
            self.client if client is None else client, **{"clock": self.clock, "timeout_ms": PATIENT, **options}
        )

    def breaker(
        self, store: RedisStore | None = None, circuit: str | None = None, **policy: Any
    ) -> DistributedCircuitBreaker:
        return DistributedCircuitBreaker(
            circuit or name(), store or self.store(), **{"open_duration_ms": 1000, **policy}
        )

    def strict(
        self, store: RedisStore | None = None, circuit: str | None = None, **policy: Any
    ) -> DistributedCircuitBreaker:
        """A breaker whose callers hear what the store said."""
        return self.breaker(store, circuit, on_store_failure="fail-closed", **policy)

    async def half_open(self, **policy: Any) -> DistributedCircuitBreaker:
        breaker = self.breaker(**policy)
        await breaker.trip()
        self.clock.now += 1000
        await (await breaker.acquire()).release()
        return breaker


@asynccontextmanager
async def place(server: Server, **options: Any) -> AsyncIterator[Place]:
    client = redis.asyncio.Redis(port=server.port, **options)
    try:
        yield Place(client)
    finally:
        await client.aclose()


Test = Callable[[Place], Awaitable[None]]


def at(server: Server, test: Test, **options: Any) -> None:
    """Runs a test of asyncio, and sees to it that no task is left."""

    async def main() -> None:
        async with place(server, **options) as here:
            await test(here)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


async def in_flight(breaker: DistributedCircuitBreaker) -> int:
    return (await breaker.get_snapshot()).half_open_in_flight


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    """Asks again until it is so; a test that this never ends is ended from outside."""
    while not await is_so():  # noqa: ASYNC110 - what is asked is another process
        await asyncio.sleep(0.005)


def test_nothing_is_sent_before_a_circuit_is_asked_and_then_no_more_than_is_promised(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        tapped = AsyncTapped(here.client)
        async with here.store(tapped) as store:
            breaker = here.breaker(store, failure_threshold=2)
            DistributedCircuitBreakerGroup(name(), store).for_key("k")
            assert tapped.sent == []
            await breaker.get_state()
            with pytest.raises(BoomError):
                await breaker.execute(fail)
            await breaker.reset()
            tapped.sent.clear()
            assert await breaker.execute(ok) == "ok"
            assert len(tapped.sent) == 1
            with pytest.raises(BoomError):
                await breaker.execute(fail)
            assert len(tapped.sent) == 3
            # Their scripts are known from here on.
            await (await here.half_open()).execute(ok)
            await breaker.trip()
            here.clock.now += 1000
            tapped.sent.clear()
            assert await breaker.execute(ok) == "ok"
            assert len(tapped.sent) == 3
            assert await breaker.get_state() == "closed"

    at(redis_server, test)


def test_a_store_and_a_breaker_are_made_outside_of_any_event_loop_and_used_in_several(redis_server: Server) -> None:
    class Elsewhere:
        async def command(self, args: list[str], key: str) -> object:
            async with redis.asyncio.Redis(port=redis_server.port) as client:
                command: Any = client.execute_command
                return await command(*args)

    store = RedisStore(Elsewhere(), timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=2)

    async def one() -> None:
        with pytest.raises(BoomError):
            await breaker.execute(fail)

    asyncio.run(one())
    asyncio.run(one())
    assert asyncio.run(breaker.get_state()) == "open"


def test_decorated_functions_keep_their_kind_and_others_are_refused(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker(failure_threshold=1)

        class Service:
            @breaker
            async def plain(self, order: int) -> tuple[object, int]:
                return self, order

            @breaker
            @classmethod
            async def of_class(cls, order: int) -> tuple[object, int]:
                return cls, order

            @staticmethod
            @breaker.guard
            async def of_none(order: int) -> int:
                return order

        service = Service()
        assert await service.plain(1) == (service, 1)
        assert await service.of_class(2) == (Service, 2)
        assert await service.of_none(3) == 3
        assert await breaker(functools.partial(service.plain, 4))() == (service, 4)
        assert inspect.iscoroutinefunction(Service.plain)

        def plain() -> None: ...

        def steps() -> Any:
            yield 1

        for fn in (plain, steps, functools.partial(plain), len):
            with pytest.raises(TypeError, match=r"use `switchgear\.redis\.DistributedCircuitBreaker`"):
                breaker(fn)  # type: ignore[type-var]  # what it is about
        with pytest.raises(TypeError, match="a class"):
            breaker(Service)  # type: ignore[type-var]  # what it is about
        # What is not decorated may be of any kind: its result is awaited where it must be.
        assert await breaker.execute(lambda: ok()) == "ok"  # noqa: PLW0108 - a plain function
        assert await breaker.execute_async(lambda: 5) == 5

    at(redis_server, test)


def test_fallbacks_of_both_kinds_step_in(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker(failure_threshold=1)

        async def later(refusal: Exception) -> str:
            return type(refusal).__name__

        assert await breaker.execute(fail, fallback=str, fallback_on="failure") == "ECONNREFUSED"
        assert await breaker.execute(ok, fallback=later) == "CircuitOpenError"

        @breaker.guard(fallback=lambda refusal, order: f"{order} later")
        async def ship(order: str) -> str:
            return order

        assert await ship("order") == "order later"

    at(redis_server, test)


def test_blocks_and_permits(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker(failure_threshold=2)
        async with breaker as permit:
            assert not permit.probe
        with pytest.raises(BoomError):
            async with breaker:
                raise BoomError
        async with breaker as permit:
            assert await permit.record_failure() == "applied"
            assert await permit.record_failure() == "duplicate"
        with pytest.raises(CircuitOpenError):
            async with breaker:
                raise AssertionError("it was let through")
        here.clock.now += 1000
        async with AsyncExitStack() as stack:
            permit = await stack.enter_async_context(breaker)
            assert permit.probe
        assert await breaker.get_state() == "closed"
        async with await breaker.acquire():
            pass
        with pytest.raises((TypeError, AttributeError)), breaker:  # type: ignore[attr-defined]  # what it is about
            pass

    at(redis_server, test)


@pytest.mark.parametrize("way", ["execute", "decorator", "block", "permit", "triad"])
def test_scenario_14_a_probe_that_is_cancelled_frees_its_slot_for_the_next_call(redis_server: Server, way: str) -> None:
    async def test(here: Place) -> None:
        breaker = await here.half_open()
        ignored: list[object] = []
        breaker.on("ignored", ignored.append)
        inside = asyncio.Event()

        async def body() -> None:
            inside.set()
            await hang()

        async def call() -> None:
            if way == "execute":
                await breaker.execute(body)
            elif way == "decorator":
                await breaker(body)()
            elif way == "block":
                async with breaker:
                    await body()
            elif way == "permit":
                async with await breaker.acquire():
                    await body()
            else:
                assert await breaker.can_execute()
                try:
                    await body()
                finally:
                    await breaker.release()

        for _ in range(3):
            inside.clear()
            task = asyncio.create_task(call())
            await inside.wait()
            assert await in_flight(breaker) == 1
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            probe = await breaker.acquire()
            assert probe.probe
            await probe.release()
        assert await breaker.get_state() == "half-open"
        assert len(ignored) == 6 if way != "execute" else True

    at(redis_server, test)


def test_scenario_25_calls_that_are_cancelled_count_nowhere(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker(failure_threshold=1)
        inside = asyncio.Semaphore(0)

        async def body() -> None:
            inside.release()
            await hang()

        tasks = [asyncio.create_task(breaker.execute(body)) for _ in range(32)]
        for _ in tasks:
            await inside.acquire()
        for task in tasks:
            task.cancel()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(result, asyncio.CancelledError)
        snapshot = await breaker.get_snapshot()
        assert (snapshot.state, snapshot.failures_in_window) == ("closed", 0)

    at(redis_server, test)


def test_nothing_is_awaited_in_a_scope_that_cancels_each_await(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = await here.half_open()
        for way in ("execute", "block"):
            with anyio.CancelScope() as scope:

                async def body(scope: anyio.CancelScope = scope) -> None:
                    scope.cancel()
                    await hang()

                if way == "execute":
                    await breaker.execute(body)
                else:
                    async with breaker:
                        await body()
            assert scope.cancelled_caught
            probe = await breaker.acquire()
            await probe.release()

    at(redis_server, test)


def test_a_caller_who_is_cancelled_during_the_admission_gives_the_slot_back(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = await here.half_open()
        granted = asyncio.Event()

        async def slow(args: list[str], through: Any) -> Any:
            reply = await through(args)
            if isinstance(reply, list) and reply[0] == 2:
                granted.set()
                await hang()
            return reply

        store = here.store(AsyncTapped(here.client, slow))
        events = heard(store)
        ran: list[int] = []
        task = asyncio.create_task(here.breaker(store, breaker.name).execute(lambda: ran.append(1)))
        await granted.wait()
        assert await in_flight(breaker) == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await store.close()
        assert await in_flight(breaker) == 0
        assert ran == []
        assert events == []

    at(redis_server, test)


class Swallowing:
    """A client that eats a cancellation and answers, as redis-py does when it comes at certain moments."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.swallows = False
        self.asked = asyncio.Event()

    async def command(self, args: list[str], key: str) -> Any:
        if self.swallows:
            self.asked.set()
            with suppress(asyncio.CancelledError):
                await hang()
        return await self._client.execute_command(*args)


@pytest.mark.parametrize("way", ["execute", "decorator", "block", "can_execute", "acquire"])
def test_a_cancellation_that_the_client_eats_comes_through_and_the_slot_is_given_back(
    redis_server: Server, way: str
) -> None:
    async def test(here: Place) -> None:
        patient = await here.half_open()
        client = Swallowing(here.client)
        store = here.store(client)
        breaker = here.breaker(store, patient.name)
        ran: list[int] = []

        async def body() -> None:
            ran.append(1)

        async def block() -> None:
            async with breaker:
                ran.append(1)

        calls: dict[str, Callable[[], Awaitable[object]]] = {
            "execute": lambda: breaker.execute(body),
            "decorator": breaker(body),
            "block": block,
            "can_execute": breaker.can_execute,
            "acquire": breaker.acquire,
        }
        client.swallows = True
        task = asyncio.ensure_future(calls[way]())
        await client.asked.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        client.swallows = False
        await store.close()
        assert ran == []
        assert await in_flight(patient) == 0

    at(redis_server, test)


def test_a_deadline_that_the_client_eats_is_one_all_the_same(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        patient = await here.half_open()
        client = Swallowing(here.client)
        store = here.store(client, timeout_ms=50)
        client.swallows = True
        assert await reason_async(here.strict(store, patient.name).execute(ok)) == "no answer within 50 ms"
        client.swallows = False
        await store.close()
        assert await in_flight(patient) == 0

    at(redis_server, test)


@pytest.mark.thread_unsafe(reason="it pauses its server")
def test_closing_a_store_waits_until_nothing_is_left_to_tell() -> None:
    async def test(here: Place) -> None:
        breaker = await here.half_open()
        store = here.store()
        inside = asyncio.Event()

        async def body() -> None:
            inside.set()
            await hang()

        patient = here.breaker(circuit=breaker.name)
        task = asyncio.create_task(here.breaker(store, breaker.name).execute(body))
        await inside.wait()
        server.pause()
        set_deadline(store, 50)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        closing = asyncio.create_task(store.close())
        # Longer than the deadline: what tells the store by then is another task than in the beginning.
        await asyncio.sleep(0.15)
        assert not closing.done()
        server.resume()
        await closing
        assert await in_flight(patient) == 0

    with start_server() as server:
        at(server, test)


def test_a_slot_whose_grant_came_too_late_is_given_back(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = await here.half_open()

        async def slow(args: list[str], through: Any) -> Any:
            reply = await through(args)
            if isinstance(reply, list) and reply[0] == 2:
                await hang()
            return reply

        store = here.store(AsyncTapped(here.client, slow), timeout_ms=500)
        events = heard(store)
        hasty = here.strict(store, breaker.name)
        assert await reason_async(hasty.execute(ok)) == "no answer within 500 ms"
        await store.close()
        assert await in_flight(breaker) == 0
        assert texts(events) == ["no answer within 500 ms"]

    at(redis_server, test)


def test_a_slot_whose_grant_was_lost_with_the_connection_is_given_back(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = await here.half_open()

        async def losing(args: list[str], through: Any) -> Any:
            reply = await through(args)
            if isinstance(reply, list) and reply[0] == 2:
                raise ConnectionError("the connection is closed")
            return reply

        store = here.store(AsyncTapped(here.client, losing))
        assert await reason_async(here.strict(store, breaker.name).execute(ok)) == "the connection is closed"
        await store.close()
        assert await in_flight(breaker) == 0

    at(redis_server, test)


def test_a_caller_who_is_cancelled_while_its_failure_is_told_takes_nothing_back(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        telling, go_on = asyncio.Event(), asyncio.Event()

        async def slow(args: list[str], through: Any) -> Any:
            if args[0] != "HMGET" and telling.is_set() is False and armed:
                telling.set()
                await go_on.wait()
            return await through(args)

        armed: list[int] = []
        store = here.store(AsyncTapped(here.client, slow))
        breaker = here.breaker(store, failure_threshold=1)
        await breaker.get_state()

        async def body() -> None:
            armed.append(1)
            raise BoomError

        task = asyncio.create_task(breaker.execute(body))
        await telling.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        go_on.set()
        await store.close()
        assert await breaker.get_state() == "open"

    at(redis_server, test)


@pytest.mark.parametrize("moment", ["running", "admitted", "settling"])
def test_a_slot_is_free_although_the_event_loop_ends_with_the_cancelled_call(redis_server: Server, moment: str) -> None:
    """As Ctrl-C does it, or a server that shuts down: what nobody waits for is cancelled, too."""
    circuit = name()
    clock = ManualClock()

    async def trip() -> None:
        async with place(redis_server) as here:
            here.clock = clock
            await here.breaker(circuit=circuit).trip()

    async def main() -> None:
        client = redis.asyncio.Redis(port=redis_server.port)
        inside = asyncio.Event()

        async def slow(args: list[str], through: Any) -> Any:
            reply = await through(args)
            granted = isinstance(reply, list) and reply[0] == 2
            if (moment == "admitted" and granted) or (moment == "settling" and inside.is_set()):
                inside.set()
                await asyncio.sleep(0.02)
            return reply

        async def body() -> None:
            inside.set()
            await hang()

        store = RedisStore(AsyncTapped(client, slow), clock=clock, timeout_ms=PATIENT)
        breaker = DistributedCircuitBreaker(circuit, store, open_duration_ms=1000)
        task = asyncio.create_task(breaker.execute(body))
        await inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        if moment == "settling":
            # The release is under way when all is cancelled.
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        # Not closed, as in a program that ends: that would wait.
        left.append(client)

    async def look() -> int:
        async with place(redis_server) as here:
            here.clock = clock
            return await in_flight(here.breaker(circuit=circuit))

    left: list[Any] = []
    asyncio.run(trip())
    clock.now += 1000
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        asyncio.run(main())
        left.clear()
        gc.collect()
    assert asyncio.run(look()) == 0


@pytest.mark.thread_unsafe(reason="the collector is the whole process's")
def test_an_error_is_gone_when_its_handler_is(redis_server: Server) -> None:
    kept: list[weakref.ref[BaseException]] = []

    async def noted(call: Callable[[], Awaitable[object]]) -> None:
        try:
            await call()
        except Exception as error:
            kept.append(weakref.ref(error))
        else:
            raise AssertionError("it raised nothing")

    def failed() -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_exception(BoomError())
        return future

    async def enter(breaker: DistributedCircuitBreaker) -> None:
        async with breaker:
            pass

    async def test(here: Place) -> None:
        closed, cached, opened = here.breaker(), here.breaker(closed_cache_ms=60_000), here.breaker()
        await opened.force_open()
        for breaker in (closed, cached):
            await breaker.execute(ok)
            await noted(lambda breaker=breaker: breaker.execute(fail))  # type: ignore[misc]  # mypy cannot infer it
            await noted(lambda breaker=breaker: breaker.execute(failed))  # type: ignore[misc]  # as above
            await noted(breaker(fail))
        await noted(lambda: opened.execute(ok))
        await noted(opened(ok))
        await noted(opened.acquire)
        await noted(lambda: enter(opened))
        # What an event loop still has to do has hold of it.
        await asyncio.sleep(0)
        assert [reference for reference in kept if reference() is not None] == []
        assert len(kept) == 10

    gc.collect()
    gc.disable()
    try:
        at(redis_server, test)
    finally:
        gc.enable()


def test_a_timeout_counts_and_a_cancellation_that_meets_it_does_not(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker(failure_threshold=1, timeout_ms=20)
        with pytest.raises(CallTimeoutError):
            await breaker.execute(hang)
        assert await breaker.get_state() == "open"
        patient = here.breaker(failure_threshold=1)
        with pytest.raises(CallTimeoutError):
            await patient.guard(timeout_ms=20)(hang)()
        assert await patient.get_state() == "open"
        other = here.breaker(failure_threshold=1, timeout_ms=PATIENT)
        begun = asyncio.Event()

        async def body() -> None:
            begun.set()
            await hang()

        call = asyncio.create_task(other.execute(body))
        await begun.wait()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(call, 0.05)
        assert await other.get_state() == "closed"

    at(redis_server, test)


def test_async_generators_are_guarded_over_their_whole_life(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker(failure_threshold=1)

        @breaker
        async def pages(count: int, last: Exception | None = None) -> AsyncIterator[int]:
            for page in range(count):
                yield page
            if last is not None:
                raise last

        assert inspect.isasyncgenfunction(pages)
        assert [page async for page in pages(3)] == [0, 1, 2]
        with pytest.raises(BoomError):
            async for _ in pages(2, BoomError("half-way")):
                assert await breaker.get_state() == "closed"
        assert await breaker.get_state() == "open"
        with pytest.raises(CircuitOpenError):
            await anext(pages(1))
        here.clock.now += 1000
        early: Any = pages(3)
        assert await anext(early) == 0
        assert await in_flight(breaker) == 1
        await early.aclose()
        assert [page async for page in pages(1)] == [0]
        assert await breaker.get_state() == "closed"
        # One that a function gave.
        given = await breaker.execute(lambda: pages.__wrapped__(1, BoomError()))  # type: ignore[attr-defined]  # it has one
        with pytest.raises(BoomError):
            async for _ in given:
                pass
        assert await breaker.get_state() == "open"

    at(redis_server, test)


def test_a_generator_that_is_dropped_frees_its_slot(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = await here.half_open()

        @breaker
        async def pages() -> AsyncIterator[int]:
            yield 1
            yield 2

        async for _ in pages():
            assert await in_flight(breaker) == 1
            break

        async def is_free() -> bool:
            return await in_flight(breaker) == 0

        await until(is_free)

    at(redis_server, test)


def test_scenario_7_of_64_tasks_at_the_reopening_time_exactly_so_many_get_a_probe(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker(half_open_max_calls=3, success_threshold=3)
        await breaker.trip()
        here.clock.now += 1000
        granted = await asyncio.gather(*(breaker.can_execute() for _ in range(64)))
        assert granted.count(True) == 3
        assert await in_flight(breaker) == 3

    at(redis_server, test)


def test_events_tell_what_they_tell_elsewhere(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker(here.store(instance="pod-7"), failure_threshold=1, ignore=KeyError)
        told: list[str] = []
        breaker.on("state_change", lambda e: told.append(f"{e.to_state} {e.reason} {e.instance}"))
        for event in ("success", "failure", "ignored", "refused"):
            breaker.on(event, lambda e, event=event: told.append(f"{event} {type(e.error).__name__}"))

        async def mine() -> None:
            raise KeyError

        await breaker.execute(ok)
        for call, kind in ((mine, KeyError), (fail, BoomError), (ok, CircuitOpenError)):
            with pytest.raises(kind):
                await breaker.execute(call)
        assert told == [
            "success NoneType",
            "ignored KeyError",
            "open threshold pod-7",
            "failure BoomError",
            "refused CircuitOpenError",
        ]
        with pytest.raises(TypeError, match="coroutine function"):
            breaker.on("success", ok)  # type: ignore[call-overload]  # what it is about

    at(redis_server, test)


def test_under_observe_the_call_goes_ahead(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker(failure_threshold=1, observe=True)
        refused: list[object] = []
        breaker.on("refused", refused.append)
        await breaker.force_open()
        assert await breaker.execute(ok) == "ok"
        assert await breaker.can_execute()
        permit = await breaker.acquire()
        assert [await permit.record_success(), await permit.record_success()] == ["stale", "duplicate"]
        async with breaker:
            pass
        assert len(refused) == 4

    at(redis_server, test)


def test_a_group_hears_its_breakers(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        of = name()
        group = DistributedCircuitBreakerGroup(of, here.store(), max_keys=2, failure_threshold=1)
        changes: list[str] = []
        group.on("state_change", lambda e: changes.append(e.circuit))
        for key in "abc":
            with pytest.raises(BoomError):
                await group.for_key(key).execute(fail)
        assert changes == [f"{of}:a", f"{of}:b", f"{of}:c"]
        assert len(group) == 2
        assert await group.for_key("a").get_state() == "open"
        assert group.delete("a")
        assert [breaker.name for breaker in group] == [f"{of}:c"]

    at(redis_server, test)


def test_what_cannot_be_asked_is_refused_or_goes_ahead_as_told() -> None:
    async def main() -> None:
        gone = AsyncAnswering(ConnectionError("redis://u:s3cret@h is gone"))
        store = RedisStore(gone, timeout_ms=PATIENT)
        events = heard(store)
        closed = DistributedCircuitBreaker("b", store, on_store_failure="fail-closed")
        with pytest.raises(StoreUnavailableError) as caught:
            await closed.execute(ok)
        assert (caught.value.circuit, caught.value.reason) == ("b", "redis://***@h is gone")
        assert isinstance(caught.value.__cause__, StoreError)
        assert not await closed.can_execute()
        for call in (closed.get_state(), closed.reset(), closed.trip(), closed.force_open(), closed.disable()):
            assert await reason_async(call) == "redis://***@h is gone"
        assert [await closed.record_success(), await closed.record_failure(), await closed.release()] == ["stale"] * 3
        assert len(events) == 10
        opened = DistributedCircuitBreaker("b", store, on_store_failure="fail-open", failure_threshold=1)
        assert await opened.execute(ok) == "ok"
        with pytest.raises(BoomError):
            await opened.execute(fail)
        assert await (await opened.acquire()).record_failure() == "stale"

    asyncio.run(main())


@pytest.mark.parametrize("reply", ["OK", None, [1], {}, [""] * 10], ids=str)
def test_a_reply_that_none_of_our_commands_gets_is_no_answer(reply: object) -> None:
    async def main() -> None:
        store = RedisStore(AsyncAnswering(reply), timeout_ms=PATIENT)
        breaker = DistributedCircuitBreaker("odd", store, on_store_failure="fail-closed")
        assert await reason_async(breaker.execute(ok)) == "the reply is none that a command of ours gets"
        assert await breaker.record_failure() == "stale"

    asyncio.run(main())


def test_a_clock_that_gives_no_time_is_told_and_hides_no_result(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        store = here.store()
        events = heard(store)
        breaker = here.breaker(store, failure_threshold=1)

        async def breaks() -> None:
            here.clock.now = -1
            raise BoomError

        with pytest.raises(BoomError):
            await breaker.execute(breaks)
        assert ["`now`" in text for text in texts(events)] == [True]
        for call in (breaker.execute(ok), breaker.acquire(), breaker.get_snapshot(), breaker.reset()):
            with pytest.raises(InvalidTimeError):
                await call

    at(redis_server, test)


OPTIONS: dict[str, dict[str, Any]] = {
    "pool": {},
    "one connection": {"single_connection_client": True},
    "retrying": {"retry": redis.asyncio.retry.Retry(redis.backoff.NoBackoff(), 5)},
    "health checks": {"health_check_interval": 1},
    "RESP3": {"protocol": 3},
}


@pytest.mark.thread_unsafe(reason="it pauses its server")
@pytest.mark.parametrize("options", OPTIONS)
def test_a_store_that_hangs_keeps_nobody_waiting_and_the_event_loop_ticks(options: str) -> None:
    async def test(here: Place) -> None:
        store = here.store(timeout_ms=60)
        events = heard(store)
        circuit = name()
        closed = here.strict(store, circuit)
        opened = here.breaker(store, on_store_failure="fail-open")
        patient = here.breaker(circuit=circuit)
        assert await patient.execute(ok) == "ok"
        server.pause()
        try:
            for _ in range(2):
                assert await reason_async(closed.execute(ok)) == "no answer within 60 ms"
                assert await opened.execute(ok) == "ok"
                with pytest.raises(BoomError):
                    await opened.execute(fail)
            reasons = await asyncio.gather(*(reason_async(closed.execute(ok)) for _ in range(20)))
            assert reasons == ["no answer within 60 ms"] * 20
            assert await closed.record_failure() == "stale"
            assert await closed.release() == "stale"
            # Were the event loop held up, nobody would let the server go on.
            waiting = asyncio.create_task(patient.execute(ok))
            for _ in range(10):
                await asyncio.sleep(0.001)
            assert not waiting.done()
        finally:
            server.resume()
        assert await waiting == "ok"
        # Three questions, after which no call waits any more; and what was told by hand.
        assert len(events) >= 5
        assert set(texts(events)) == {"no answer within 60 ms"}
        # No reply of then is taken for one of now.
        for _ in range(20):
            assert await patient.get_state() == "closed"
        await store.close()

    with start_server() as server:
        at(server, test, socket_timeout=None, socket_connect_timeout=None, **OPTIONS[options])


def test_a_server_that_takes_connections_and_never_answers_keeps_nobody_waiting() -> None:
    async def main(port: int) -> None:
        async with redis.asyncio.Redis(port=port, socket_timeout=None, socket_connect_timeout=None) as client:
            breaker = DistributedCircuitBreaker(
                name(), RedisStore(client, timeout_ms=30), on_store_failure="fail-closed"
            )
            for _ in range(3):
                assert await reason_async(breaker.execute(ok)) == "no answer within 30 ms"

    with socket.create_server(("127.0.0.1", 0)) as hole:
        asyncio.run(main(hole.getsockname()[1]))


@pytest.mark.thread_unsafe(reason="it flushes the scripts of its server")
def test_scenario_52_scripts_that_are_forgotten_cost_one_more_round_trip_and_count_once() -> None:
    async def test(here: Place) -> None:
        async def forgetting(args: list[str], through: Any) -> Any:
            await here.client.script_flush()
            return await through(args)

        tapped = AsyncTapped(here.client, forgetting)
        breaker = here.breaker(here.store(tapped), failure_threshold=2)
        for count in (1, 2):
            tapped.sent.clear()
            with pytest.raises(BoomError):
                await breaker.execute(fail)
            assert [args[0] for args in tapped.sent] == ["EVALSHA", "EVAL"] * 2
            assert (await breaker.get_snapshot()).trips == (count == 2)

    with start_server() as server:
        at(server, test)


@pytest.mark.thread_unsafe(reason="it ends its server")
def test_scenario_52_a_killed_server_is_unavailable_and_a_call_goes_on_where_one_comes_back() -> None:
    server = start_server()

    async def test(here: Place) -> None:
        breaker = here.breaker(failure_threshold=2)
        with pytest.raises(BoomError):
            await breaker.execute(fail)
        permit = await breaker.acquire()
        server.kill()
        hasty = here.strict(here.store(timeout_ms=100), breaker.name)
        assert await reason_async(hasty.execute(ok)) is not None
        with start_server(port=server.port):
            assert await permit.record_failure() == "applied"
            assert (await breaker.get_snapshot()).failures_in_window == 1

    at(server, test)


def test_scenario_55_a_wrong_password_is_told_and_appears_nowhere() -> None:
    async def main(port: int) -> None:
        async with redis.asyncio.Redis.from_url(f"redis://default:s3cret@127.0.0.1:{port}") as client:
            breaker = DistributedCircuitBreaker(
                name(), RedisStore(client, timeout_ms=PATIENT), on_store_failure="fail-closed"
            )
            text = await reason_async(breaker.execute(ok))
            assert text is not None
            assert "invalid username-password" in text
            assert "s3cret" not in text

    with start_server(password="right") as server:
        asyncio.run(main(server.port))


def test_a_slot_is_free_although_the_event_loop_ends_while_the_call_runs(redis_server: Server) -> None:
    """As with `asyncio.run`: what still runs is cancelled, and the loop goes on for as long as that takes."""
    circuit = name()
    # Of each event loop its own store: they would know the server's time each as well as it could be measured.
    clock = ManualClock()

    def breaker(client: Any) -> DistributedCircuitBreaker:
        store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
        return DistributedCircuitBreaker(circuit, store, open_duration_ms=60_000)

    async def main() -> asyncio.Task[Any]:
        client = redis.asyncio.Redis(port=redis_server.port)
        left.append(client)
        inside = asyncio.Event()

        async def body() -> None:
            inside.set()
            await hang()

        await breaker(client).trip()
        clock.now += 60_000
        running = asyncio.create_task(breaker(client).execute(body))
        await inside.wait()
        return running

    # Not closed, as in a program that ends: that would wait.
    left: list[Any] = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        assert asyncio.run(main()).cancelled()
        left.clear()
        gc.collect()

    async def look() -> Snapshot:
        async with redis.asyncio.Redis(port=redis_server.port) as client:
            return await breaker(client).get_snapshot()

    seen = asyncio.run(look())
    assert (seen.state, seen.half_open_in_flight) == ("half-open", 0)
