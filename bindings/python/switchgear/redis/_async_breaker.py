"""The shared circuit breaker for `asyncio`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from types import CoroutineType, FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, overload

from switchgear._awaitable import must_be_awaited
from switchgear._call import AsyncWays, check_fn, enter_async
from switchgear._classify import NEUTRAL, SUCCEEDED
from switchgear._entered import Entered
from switchgear._fallback import CheckedCall, checked_async_call
from switchgear._guard import guard_with, guarded_kind, like
from switchgear._hot import hot_awaiting_function
from switchgear._kind import gives_coroutine
from switchgear._permit import AsyncPermit, by_hand
from switchgear._types import CallEvent, CallEventName, FallbackOn, Settled, StateChange
from switchgear._uncopied import Uncopied
from switchgear.redis._async_store import RedisStore
from switchgear.redis._awaiting_circuit import AwaitingCircuit
from switchgear.redis._shared import PreparedSharedPolicy
from switchgear.redis._store import checked_store

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from typing_extensions import Self, Unpack

    from switchgear._decorators import ClassMethod, Recovering
    from switchgear._error import Refusal
    from switchgear._types import Snapshot, State
    from switchgear.redis._shared import SharedPolicy

    AsyncFn = TypeVar("AsyncFn", bound=Callable[..., Awaitable[Any] | AsyncIterator[Any]])

    class GuardingAsync(Protocol):
        """A decorator that changes nothing of a function's type, for those whose result has to be awaited."""

        @overload
        def __call__(self, fn: AsyncFn, /) -> AsyncFn: ...
        @overload
        def __call__(self, fn: ClassMethod, /) -> ClassMethod: ...


T = TypeVar("T")
F = TypeVar("F")


class DistributedCircuitBreaker(Uncopied):
    """Guards the calls to one dependency, together with every process that has a breaker of this name on its store.

    They trip together, and in a half-open circuit no more than `half_open_max_calls` probes run in the whole fleet. An
    admission takes one round trip (two around a half-open period), which concurrent ones share, and none while
    `open_cache_ms` or `closed_cache_ms` allow it; a failure and the outcome of a probe take one. A success of a closed
    circuit is not waited for. Each waits at most the store's `timeout_ms`.

    A caller who is cancelled waits for nothing: that his slot is free is told in a task of its own. `await
    store.close()` at the end of the program lets such tasks finish.

    Args:
        name: The circuit's, the same in the whole fleet: 1 to 512 bytes of UTF-8 without control characters.
        store: Where the circuit is kept.
        **policy: How it behaves; every option has a default. `clock` replaces the store's for this circuit.

    Raises:
        InvalidNameError: The name cannot be one.
        ConfigError: Names the option, the value and what is valid.
        InvalidTimeError: The policy's clock gives no time.
        TypeError: The store is none, or one for sync code.

    Example:
        ```python
        import asyncio

        import redis.asyncio

        from switchgear.redis.asyncio import DistributedCircuitBreaker, RedisStore


        async def main() -> None:
            async with redis.asyncio.Redis.from_url(REDIS_URL) as client, RedisStore(client) as store:
                breaker = DistributedCircuitBreaker("shipping", store, failure_threshold=5)

                @breaker.guard(fallback=lambda refusal, order: f"{order} queued")
                async def ship(order: str) -> str:
                    return f"{order} shipped"

                assert await ship("order 7") == "order 7 shipped"
                await breaker.trip()
                assert await ship("order 8") == "order 8 queued"


        asyncio.run(main())
        ```
    """

    __slots__ = ("__weakref__", "_circuit", "_entered", "_ways")

    _circuit: AwaitingCircuit

    def __init__(self, name: str, store: RedisStore, **policy: Unpack[SharedPolicy]) -> None:
        link = checked_store(store, RedisStore, "DistributedCircuitBreaker")
        self._guards(AwaitingCircuit(name, link, PreparedSharedPolicy.of(policy)))

    @classmethod
    def _of(cls, circuit: AwaitingCircuit) -> Self:
        """The breaker of a circuit that was made already: how a group makes its members."""
        breaker = cls.__new__(cls)
        breaker._guards(circuit)
        return breaker

    def _guards(self, circuit: AwaitingCircuit) -> None:
        self._circuit = circuit
        self._ways = AsyncWays(circuit.rules, circuit.admit, lambda settle, ending: settle(ending))
        self._entered: Entered[AsyncPermit] = Entered()

    @property
    def name(self) -> str:
        """The circuit's name."""
        return self._circuit.rules.circuit

    @overload
    async def execute(
        self,
        fn: Callable[[], Awaitable[T]],
        *,
        fallback: None = None,
        fallback_on: FallbackOn | None = None,
        timeout_ms: int | None = None,
    ) -> T: ...
    @overload
    async def execute(
        self,
        fn: Callable[[], Awaitable[T]],
        *,
        fallback: Callable[[Refusal], Awaitable[F]],
        fallback_on: Literal["refusal"] | None = None,
        timeout_ms: int | None = None,
    ) -> T | F: ...
    @overload
    async def execute(
        self,
        fn: Callable[[], Awaitable[T]],
        *,
        fallback: Callable[[Refusal], F],
        fallback_on: Literal["refusal"] | None = None,
        timeout_ms: int | None = None,
    ) -> T | F: ...
    @overload
    async def execute(
        self,
        fn: Callable[[], Awaitable[T]],
        *,
        fallback: Callable[[Exception], Awaitable[F]],
        fallback_on: FallbackOn | None,
        timeout_ms: int | None = None,
    ) -> T | F: ...
    @overload
    async def execute(
        self,
        fn: Callable[[], Awaitable[T]],
        *,
        fallback: Callable[[Exception], F],
        fallback_on: FallbackOn | None,
        timeout_ms: int | None = None,
    ) -> T | F: ...
    @overload
    async def execute(
        self,
        fn: Callable[[], T],
        *,
        fallback: None = None,
        fallback_on: FallbackOn | None = None,
        timeout_ms: int | None = None,
    ) -> T: ...
    @overload
    async def execute(
        self,
        fn: Callable[[], T],
        *,
        fallback: Callable[[Refusal], F],
        fallback_on: Literal["refusal"] | None = None,
        timeout_ms: int | None = None,
    ) -> T | F: ...
    @overload
    async def execute(
        self,
        fn: Callable[[], T],
        *,
        fallback: Callable[[Exception], F],
        fallback_on: FallbackOn | None,
        timeout_ms: int | None = None,
    ) -> T | F: ...
    async def execute(
        self,
        fn: Callable[[], Any],
        *,
        fallback: Callable[..., Any] | None = None,
        fallback_on: FallbackOn | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """Runs a function if the circuit lets it through, once, and settles its outcome.

        What the function gives is awaited if it is awaitable. An async generator object that it returns (not one that
        had to be awaited) is guarded until it ends. A cancellation counts nowhere, and always comes through.

        Args:
            fn: A callable without arguments.
            fallback: Gives the result of a refused call instead, now or when awaited; gets the error. At most once;
                what it raises has the error as its cause.
            fallback_on: `"refusal"`, the default, or `"failure"`: also calls whose error counted, and those that timed
                out.
            timeout_ms: As in the policy, for this call: 1 to 2 147 483 647 milliseconds. The call runs in the caller's
                task.

        Returns:
            What the function gives; what the fallback gives, where it steps in.

        Raises:
            CircuitOpenError: The circuit refused it; what the function raises comes through as it is.
            StoreUnavailableError: The store did not answer, under `fail-closed`. One that does not take the outcome
                hides nothing of it.
            CallTimeoutError: It took too long.
            TypeError: `fn` cannot be called.
            ConfigError: An option is wrong.
            InvalidTimeError: The clock fails.
        """
        circuit = self._circuit
        grant = circuit.hints.hot
        if grant is None or fallback is not None or fallback_on is not None or timeout_ms is not None:
            call = checked_async_call(fallback, fallback_on, timeout_ms, circuit.rules.host)
            check_fn(fn)
            return await enter_async(fn, (), {}, call, self._ways)
        try:
            given = fn()
            if type(given) is CoroutineType or must_be_awaited(given):
                return await given
        except BaseException as error:
            given = None
            check_fn(fn)
            await circuit.hot_raised(grant, error)
            raise
        return circuit.hot_returned(grant, given)

    execute_async = execute
    """The same: code that is written for a local breaker works on."""

    @overload
    def __call__(self, fn: AsyncFn) -> AsyncFn: ...
    @overload
    def __call__(self, fn: ClassMethod) -> ClassMethod: ...
    def __call__(self, fn: Any) -> Any:
        """A function like the one given, each call of which is guarded: the breaker is a decorator.

        Coroutine functions and async generator functions keep their kind and signature; generators are admitted at
        their first step and guarded until they end. Partials, callable objects, bound, class and static methods do as
        well.

        Raises:
            TypeError: `fn` cannot be called, is a class, or a function that awaits nothing.
        """
        return self._decorated(fn, CheckedCall(timeout_ms=self._ways.rules.host.timeout_ms), None)

    @overload
    def guard(self, fn: AsyncFn) -> AsyncFn: ...
    @overload
    def guard(self, fn: ClassMethod) -> ClassMethod: ...
    @overload
    def guard(
        self,
        fn: None = None,
        *,
        fallback: None = None,
        fallback_on: FallbackOn | None = None,
        timeout_ms: int | None = None,
    ) -> GuardingAsync: ...
    @overload
    def guard(
        self,
        fn: None = None,
        *,
        fallback: Callable[..., F],
        fallback_on: FallbackOn | None = None,
        timeout_ms: int | None = None,
    ) -> Recovering[F]: ...
    def guard(
        self,
        fn: Any = None,
        *,
        fallback: Callable[..., Any] | None = None,
        fallback_on: FallbackOn | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """The breaker as a decorator with options; without any it does what the breaker itself does as one.

        Args:
            fn: The function, if the decorator is not called for its options first.
            fallback: Gives the result of a refused call instead, now or when awaited; gets the error, then the
                arguments of the call. Of an async generator it gives what the rest is taken from.
            fallback_on: `"refusal"`, the default, or `"failure"`: also calls whose error counted, and those that timed
                out.
            timeout_ms: As in the policy, for this function.

        Raises:
            TypeError: `fn` cannot be called, is a class, or a function that awaits nothing; or `fallback` can never
                take the error and the function's arguments.
            ConfigError: An option is wrong.
        """
        call = checked_async_call(fallback, fallback_on, timeout_ms, self._ways.rules.host)
        if fn is None:
            return lambda fn: self._decorated(fn, call, timeout_ms)
        return self._decorated(fn, call, timeout_ms)

    def __aenter__(self) -> Coroutine[Any, Any, AsyncPermit]:
        """The breaker as an async context manager: the block is one call.

        What is not settled by its end is a success, or what the exception says that leaves it.

        Raises:
            CircuitOpenError: The circuit refused it.
            StoreUnavailableError: The store did not answer, under `fail-closed`.
        """
        # Here, for the frame that the block is in is the one that calls this, whoever awaits what it gives.
        return self._enter(sys._getframe(1))

    def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> Coroutine[Any, Any, None]:
        return self._exit(sys._getframe(1), error)

    async def can_execute(self) -> bool:
        """Asks for one call by hand: whether it may go ahead. In a half-open circuit it takes a slot.

        Follow with `record_success`, `record_failure` or `release`; `acquire` is safer, for its permit knows which
        call it belongs to. While the store cannot be asked this process decides, see `on_store_failure`.

        Raises:
            InvalidTimeError: The clock fails.
        """
        return await self._circuit.can_execute()

    async def record_success(self) -> Settled:
        """Reports that a call succeeded. Whether that counted; what the store does not take does not."""
        return await self._circuit.settle_by_hand(None, SUCCEEDED)

    async def record_failure(self, error: BaseException | None = None) -> Settled:
        """Reports that a call failed. Whether that counted; what the store does not take does not.

        Args:
            error: What went wrong: `is_failure` and `ignore` then decide whether it counts.

        Raises:
            TypeError: `error` is no exception.
        """
        return await self._circuit.settle_by_hand(None, by_hand(self._circuit.rules, error))

    async def release(self) -> Settled:
        """Reports that a call ended neutrally. Whether that counted; what the store does not take does not."""
        return await self._circuit.settle_by_hand(None, NEUTRAL)

    async def acquire(self) -> AsyncPermit:
        """Asks for one call by hand, and gives the permit to settle it with.

        Raises:
            CircuitOpenError: The circuit refused it.
            StoreUnavailableError: The store did not answer, under `fail-closed`.
            InvalidTimeError: The clock fails.
        """
        return await self._circuit.acquire()

    async def get_state(self) -> State:
        """The state as callers see it: forced open reads `open`, disabled reads `closed`. Changes nothing.

        Under `on_store_failure="local"` it is what this process knows, where the store does not answer.

        Raises:
            StoreUnavailableError: The store did not answer, under `fail-closed` and `fail-open`.
            InvalidTimeError: The clock fails.
        """
        return (await self._circuit.snapshot()).state

    async def get_snapshot(self) -> Snapshot:
        """Everything the store knows of the circuit. Changes nothing.

        Under `on_store_failure="local"` it is what this process knows, where the store does not answer.

        Raises:
            StoreUnavailableError: The store did not answer, under `fail-closed` and `fail-open`.
            InvalidTimeError: The clock fails.
        """
        return await self._circuit.snapshot()

    async def reset(self) -> None:
        """Closes the circuit for the whole fleet and forgets everything; outcomes of calls that run do not count.

        Raises:
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        await self._circuit.control("reset")

    async def trip(self, *, for_ms: int | None = None) -> None:
        """Opens the circuit for the whole fleet now, also when it is open already; it recovers as usual.

        Args:
            for_ms: How long it stays open, in milliseconds; by default as long as after any other trip.

        Raises:
            ConfigError: `for_ms` is wrong.
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        await self._circuit.control("trip", for_ms)

    async def force_open(self) -> None:
        """Refuses every call of the whole fleet until `reset` or `trip`.

        Raises:
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        await self._circuit.control("force_open")

    async def disable(self) -> None:
        """Admits every call of the whole fleet and counts none until `reset` or `trip`.

        Raises:
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        await self._circuit.control("disable")

    @overload
    def on(self, event: Literal["state_change"], fn: Callable[[StateChange], object]) -> Callable[[], None]: ...
    @overload
    def on(self, event: CallEventName, fn: Callable[[CallEvent], object]) -> Callable[[], None]: ...
    def on(self, event: str, fn: Callable[[Any], object]) -> Callable[[], None]:
        """Listens to an event of this process, which is told after the fact and in order.

        A listener may call the breaker, in a task that it makes; one that raises harms nothing and is reported once, by
        `logging`.

        Args:
            event: `state_change`, `success`, `failure`, `ignored` or `refused`.
            fn: Gets a `StateChange`, or a `CallEvent`.

        Returns:
            A function that stops listening.

        Raises:
            TypeError: An unknown event, or a listener that cannot be called, or would have to be awaited.
        """
        return self._circuit.events.on(event, fn)

    def __repr__(self) -> str:
        # Not its state: nothing is asked of a store to be shown.
        return f"<{type(self).__name__} {self.name!r}>"

    async def _enter(self, frame: FrameType) -> AsyncPermit:
        permit = await (await self._circuit.acquire()).__aenter__()
        self._entered.enter(frame, permit)
        return permit

    async def _exit(self, frame: FrameType, error: BaseException | None) -> None:
        await self._entered.leave(frame).leave(error)

    def _decorated(self, fn: Any, call: CheckedCall, timeout_ms: int | None) -> Any:
        if isinstance(fn, (classmethod, staticmethod)):
            # What it is around is guarded, so that `@breaker` may stand above it or below.
            return type(fn)(self._decorated(fn.__func__, call, timeout_ms))
        kind = guarded_kind(fn)
        if kind in {"function", "generator function"}:
            raise TypeError(f"circuit `{self.name}` cannot guard a {kind}, which awaits nothing: use {_OTHER}")
        slow = guard_with(fn, call, self._ways)
        if (
            kind != "coroutine function"
            or not gives_coroutine(fn)
            or call.timeout_ms is not None
            or (call.on_failure and call.fallback is not None)
        ):
            return slow
        return like(fn, hot_awaiting_function(fn, slow, self._circuit.hints, self._circuit.hot_raised))


_OTHER = "`switchgear.redis.DistributedCircuitBreaker`"
