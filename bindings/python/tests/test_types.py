"""What a user's code may rely on of the types. mypy proves it; run, it shows that the values are as their types say."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from functools import partial
from typing import Any

import pytest
from switchgear import (
    Breaker,
    CallEvent,
    CircuitBreaker,
    CircuitBreakerGroup,
    CircuitBreakerState,
    CircuitOpenError,
    ConfigError,
    Permit,
    Refusal,
    Settled,
    Snapshot,
    State,
    StateChange,
    StoreUnavailableError,
)
from typing_extensions import assert_type


def opened() -> CircuitBreaker:
    breaker = CircuitBreaker("billing")
    breaker.force_open()
    return breaker


def test_the_breaker_as_a_decorator_keeps_signature_and_kind() -> None:
    breaker = CircuitBreaker("billing")

    @breaker
    def charge(order: int, *, note: str = "") -> str:
        return f"{order}{note}"

    @breaker
    async def charge_async(order: int) -> str:
        return str(order)

    @breaker
    def lines(order: int) -> Generator[str, int, bool]:
        yield str(order)
        return True

    @breaker
    def rows(order: int) -> Iterator[str]:
        yield str(order)

    @breaker
    async def stream(order: int) -> AsyncGenerator[str, int]:
        yield str(order)

    @breaker
    async def stream_rows(order: int) -> AsyncIterator[str]:
        yield str(order)

    assert_type(charge(1, note="!"), str)
    assert_type(lines(1), Generator[str, int, bool])
    assert_type(rows(1), Iterator[str])
    assert_type(stream(1), AsyncGenerator[str, int])
    assert_type(stream_rows(1), AsyncIterator[str])
    assert inspect.isgeneratorfunction(lines)
    assert inspect.isgeneratorfunction(rows)
    assert inspect.isasyncgenfunction(stream)
    assert inspect.isasyncgenfunction(stream_rows)
    assert inspect.iscoroutinefunction(charge_async)

    async def main() -> None:
        charging = charge_async(1)
        assert_type(await assert_type(charging, Coroutine[Any, Any, str]), str)

    asyncio.run(main())
    with pytest.raises(TypeError):
        charge(1, "2")  # type: ignore[call-arg]  # what is wrong with a call is still seen


def test_methods() -> None:
    breaker = CircuitBreaker("billing")

    class Billing:
        @breaker
        def charge(self, order: int) -> str:
            return f"{order}"

        @breaker
        @classmethod
        def of(cls, order: int) -> Billing:
            return cls()

        @classmethod
        @breaker
        def under(cls, order: int) -> Billing:
            return cls()

        @breaker
        @staticmethod
        def rate(order: int) -> float:
            return order / 2

        @staticmethod
        @breaker.guard
        def tax(order: int) -> float:
            return order / 2

    billing = Billing()
    assert_type(billing.charge(1), str)
    assert_type(Billing.of(1), Billing)
    assert_type(Billing.under(1), Billing)
    assert_type(Billing.rate(1), float)
    assert_type(billing.tax(1), float)
    assert_type(breaker(billing.charge)(1), str)
    assert_type(breaker(partial(billing.charge, 1))(), str)


def test_guard_without_a_fallback_changes_no_type() -> None:
    breaker = CircuitBreaker("billing")

    @breaker.guard
    def charge(order: int) -> str:
        return str(order)

    @breaker.guard()
    def charge_too(order: int) -> str:
        return str(order)

    @breaker.guard(timeout_ms=60_000)
    async def charge_async(order: int) -> str:
        return str(order)

    async def main() -> None:
        assert_type(await charge_async(1), str)

    assert_type(charge(1), str)
    assert_type(charge_too(1), str)
    asyncio.run(main())


def test_guard_with_a_fallback_may_give_what_that_gives() -> None:
    breaker = opened()

    @breaker.guard(fallback=lambda refusal, order: None)
    def charge(order: int) -> str:
        return str(order)

    def queued(refusal: Refusal, order: int) -> float:
        return 0.5

    @breaker.guard(fallback=queued)
    async def charge_async(order: int) -> str:
        return str(order)

    async def queued_async(refusal: Refusal, order: int) -> float:
        return 0.5

    @breaker.guard(fallback=queued_async)
    async def charge_async_too(order: int) -> str:
        return str(order)

    def whatever(error: Exception, order: int) -> int:
        return order

    @breaker.guard(fallback=whatever, fallback_on="failure")
    def charge_anyhow(order: int) -> str:
        return str(order)

    # What the parameters of a lambda are nobody knows; the rest is known all the same.
    @breaker.guard(fallback=lambda refusal, order: order)
    def charge_by_lambda(order: int) -> str:
        return str(order)

    @breaker.guard(fallback=lambda error, order: order, fallback_on="failure", timeout_ms=60_000)
    async def charge_by_lambda_async(order: int) -> str:
        return str(order)

    @breaker.guard(fallback=lambda refusal: iter(["instead"]))
    def rows() -> Generator[str, None, None]:
        yield "row"

    async def main() -> None:
        assert_type(await charge_async(1), str | float)
        assert_type(await charge_async_too(1), str | float)
        assert_type(await charge_by_lambda_async(1), str | Any)
        assert await charge_async(1) == await charge_async_too(1) == 0.5

    assert_type(charge(1), str | None)
    assert_type(charge_by_lambda(1), str | Any)
    assert_type(charge_anyhow(1), str | int)
    assert_type(rows(), Generator[str, Any, Any])
    assert charge(1) is None
    assert charge_anyhow(1) == 1
    assert list(rows()) == ["instead"]
    asyncio.run(main())


def test_execute() -> None:
    breaker = CircuitBreaker("billing")
    assert_type(breaker.execute(lambda: 1), int)
    assert_type(opened().execute(lambda: 1, fallback=lambda refusal: refusal.circuit), int | str)
    assert_type(
        opened().execute(lambda: 1, fallback=lambda error: error.args, fallback_on="failure"), int | tuple[Any, ...]
    )
    answer = opened().execute(lambda: 1, fallback=lambda refusal: (refusal.retry_after_ms, refusal.status_code))
    assert answer == (None, 503)

    def told(refusal: Refusal) -> str | None:
        if isinstance(refusal, CircuitOpenError):
            assert_type(refusal.last_failure, str | None)
            return refusal.last_failure
        assert_type(refusal.retry_after_ms, int | None)
        return refusal.reason if isinstance(refusal, StoreUnavailableError) else None

    assert_type(opened().execute(lambda: 1, fallback=told), int | str | None)


def test_execute_async() -> None:
    async def charge() -> int:
        return 1

    async def queued(refusal: Refusal) -> str:
        return refusal.circuit

    async def main() -> None:
        breaker = CircuitBreaker("billing")
        assert_type(await breaker.execute_async(charge), int)
        assert_type(await breaker.execute_async(lambda: 1), int)
        assert_type(await opened().execute_async(charge, fallback=lambda refusal: refusal.circuit), int | str)
        assert_type(await opened().execute_async(charge, fallback=queued, timeout_ms=60_000), int | str)
        assert await opened().execute_async(charge, fallback=queued) == "billing"

    asyncio.run(main())


def test_blocks_permits_and_the_triad() -> None:
    breaker = CircuitBreaker("billing")
    with breaker as permit:
        assert_type(permit, Permit)
        assert_type(permit.probe, bool)
    with breaker.acquire() as permit:
        assert_type(permit.record_failure(ValueError()), Settled)
    assert_type(breaker.can_execute(), bool)
    assert_type(breaker.record_success(), Settled)
    assert_type(breaker.get_state(), State)
    assert_type(breaker.get_snapshot(), Snapshot)

    async def main() -> None:
        async with breaker as permit:
            assert_type(permit, Permit)

    asyncio.run(main())

    state = CircuitBreakerState(failure_threshold=1)
    granted = state.acquire(0)
    assert granted is not None
    assert_type(granted.record_success(1), Settled)
    assert_type(state.retry_after_ms(1), int | None)


def test_listeners_know_what_they_get() -> None:
    breaker = CircuitBreaker("billing")
    group = CircuitBreakerGroup(failure_threshold=3)
    changes: list[StateChange] = []
    calls: list[CallEvent] = []
    for source in (breaker, group.for_key("a"), group):
        assert_type(source.on("state_change", changes.append), Callable[[], None])
        source.on("success", calls.append)
    assert_type(group.for_key("a"), CircuitBreaker)
    breaker.on("success", changes.append)  # type: ignore[call-overload]  # it gets calls
    with pytest.raises(TypeError):
        breaker.on("sucess", calls.append)  # type: ignore[call-overload]  # there is none


def test_a_policy_is_checked_by_name_and_type() -> None:
    with pytest.raises(ConfigError):
        CircuitBreaker("c", failure_treshold=1)  # type: ignore[call-arg]  # a misspelt option
    with pytest.raises(ConfigError):
        CircuitBreaker("c", failure_threshold="1")  # type: ignore[arg-type]  # a text
    CircuitBreaker("c", trip_on="consecutive", is_failure=lambda error: isinstance(error, OSError), ignore=(KeyError,))


def test_code_may_take_any_breaker() -> None:
    def deliver(breaker: Breaker) -> str:
        if breaker.get_state() == "open":
            breaker.reset()
        return breaker.execute(lambda: "delivered")

    async def charged() -> Awaitable[int]:
        raise NotImplementedError

    assert deliver(opened()) == "delivered"
    assert inspect.iscoroutinefunction(charged)
