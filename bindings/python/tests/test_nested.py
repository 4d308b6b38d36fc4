"""Calls within calls of one circuit: what the circuit refuses within says nothing of the dependency."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any

import pytest
from support.async_world import AsyncWorld, answer, snapshot_of
from support.clock import ManualClock
from support.stores import PATIENT, Answering, name
from support.world import AnyBreaker, World, guarded, refusal_of, refusal_of_async, succeed
from switchgear import CircuitBreaker, CircuitOpenError, StoreUnavailableError
from switchgear.redis import DistributedCircuitBreaker, RedisStore

NewWorld = Callable[[], AbstractContextManager[World]]
NewAsyncWorld = Callable[[], AbstractAsyncContextManager[AsyncWorld]]


def executed(breaker: AnyBreaker) -> object:
    return breaker.execute(lambda: breaker.execute(succeed))


def decorated(breaker: AnyBreaker) -> object:
    return guarded(breaker, guarded(breaker, succeed))()


def in_blocks(breaker: AnyBreaker) -> object:
    with breaker, breaker:
        return succeed()


def stepped(breaker: AnyBreaker) -> object:
    def rows() -> Iterator[str]:
        yield breaker.execute(succeed)

    guarded: Callable[[], Iterator[str]] = breaker(rows)
    return list(guarded())


def by_permit(breaker: AnyBreaker) -> object:
    permit = breaker.acquire()
    try:
        given = breaker.execute(succeed)
    except CircuitOpenError as refusal:
        permit.record_failure(refusal)
        raise
    permit.record_success()
    return given


@pytest.mark.parametrize("nested", [executed, decorated, in_blocks, stepped, by_permit])
def test_a_probe_that_meets_its_own_circuit_gives_its_slot_back(
    new_world: NewWorld, nested: Callable[[AnyBreaker], object]
) -> None:
    with new_world() as world:
        breaker = world.tripped()
        failed: list[object] = []
        breaker.on("failure", failed.append)
        for _ in range(3):
            refusal = refusal_of(lambda: nested(breaker))
            assert (refusal.state, refusal.last_failure) == ("half-open", None)
            snapshot = breaker.get_snapshot()
            assert (snapshot.state, snapshot.half_open_in_flight, snapshot.trips) == ("half-open", 0, 1)
        assert failed == []
        assert breaker.execute(succeed) == "ok"
        assert breaker.get_state() == "closed"
        assert nested(breaker) in ("ok", ["ok"])


async def executed_async(breaker: Any) -> object:
    async def inner() -> object:
        return await answer(breaker.execute(succeed))

    return await (breaker.execute_async if hasattr(breaker, "execute_async") else breaker.execute)(inner)


async def decorated_async(breaker: Any) -> object:
    async def inner() -> str:
        return "ok"

    guarded: Callable[[], Awaitable[str]] = breaker(breaker(inner))
    return await guarded()


async def in_blocks_async(breaker: Any) -> object:
    async with breaker, breaker:
        return succeed()


async def stepped_async(breaker: Any) -> object:
    async def rows() -> AsyncIterator[object]:
        yield await answer(breaker.execute(succeed))

    guarded: Callable[[], AsyncIterator[object]] = breaker(rows)
    return [row async for row in guarded()]


@pytest.mark.parametrize("nested", [executed_async, decorated_async, in_blocks_async, stepped_async])
def test_so_does_one_that_is_awaited(
    new_async_world: NewAsyncWorld, nested: Callable[[Any], Awaitable[object]]
) -> None:
    async def main() -> None:
        async with new_async_world() as world:
            breaker = await world.tripped()
            for _ in range(3):
                refusal = await refusal_of_async(lambda: nested(breaker))
                assert (refusal.state, refusal.last_failure) == ("half-open", None)
                snapshot = await snapshot_of(breaker)
                assert (snapshot.state, snapshot.half_open_in_flight, snapshot.trips) == ("half-open", 0, 1)
            assert await answer(breaker.execute(succeed)) == "ok"
            assert (await snapshot_of(breaker)).state == "closed"
            assert await nested(breaker) in ("ok", ["ok"])

    asyncio.run(main())


def test_with_a_slot_for_each_level_nested_calls_probe() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", half_open_max_calls=2, clock=clock)
    breaker.trip(for_ms=1)
    clock.now += 1
    assert executed(breaker) == "ok"
    assert breaker.get_state() == "closed"


def test_no_classifier_is_asked_and_no_fallback_for_failures_steps_in() -> None:
    asked: list[object] = []

    def is_failure(error: Exception) -> bool:
        asked.append(error)
        return True

    breaker = CircuitBreaker("c", failure_threshold=1, is_failure=is_failure)
    refusal = CircuitOpenError("c", "open", 10, "boom")

    def refused() -> str:
        raise refusal

    with pytest.raises(CircuitOpenError) as caught:
        breaker.execute(refused, fallback=lambda error: "instead", fallback_on="failure")
    assert caught.value is refusal
    assert asked == []
    assert breaker.get_state() == "closed"


def test_the_refusal_of_another_circuit_counts() -> None:
    outer, inner = CircuitBreaker("outer", failure_threshold=1), CircuitBreaker("inner")
    inner.force_open()
    assert refusal_of(lambda: outer.execute(lambda: inner.execute(succeed))).circuit == "inner"
    assert outer.get_state() == "open"


def test_a_store_that_fails_within_a_call_of_the_circuit_is_no_failure_of_the_dependency() -> None:
    circuit = name()
    outer = CircuitBreaker(circuit, failure_threshold=1)
    store = RedisStore(Answering(ConnectionError("no route")), timeout_ms=PATIENT)
    inner = DistributedCircuitBreaker(circuit, store, on_store_failure="fail-closed")
    with pytest.raises(StoreUnavailableError):
        outer.execute(lambda: inner.execute(succeed))
    assert outer.get_state() == "closed"
