"""The circuit breaker that lives in this process."""

from __future__ import annotations

from collections.abc import Callable
from types import CoroutineType, FrameType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from switchgear._awaitable import must_be_awaited
from switchgear._call import Ways, check_fn, enter_async
from switchgear._config import checked_name
from switchgear._entered import Indirect
from switchgear._fallback import NO_OPTIONS, CheckedCall, checked_async_call
from switchgear._guard import guard_with, like
from switchgear._hot import hot_coroutine_function, hot_function
from switchgear._kind import gives_coroutine, kind_of
from switchgear._local import LocalCircuit, PreparedPolicy, shown_state
from switchgear._native import Permit, Scope
from switchgear._sync_breaker import SyncBreaker
from switchgear._types import FallbackOn, Snapshot, State

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from typing_extensions import Self, Unpack

    from switchgear._error import Refusal
    from switchgear._types import Policy

T = TypeVar("T")
F = TypeVar("F")


class CircuitBreaker(Scope, SyncBreaker):
    """Guards the calls to one dependency, in this process, sync and async ones alike.

    Safe under threads and after fork; no lock is held while a guarded function runs.

    Args:
        name: The circuit's name: 1 to 512 bytes of UTF-8 without control characters.
        **policy: How it behaves, see `Policy`; every option has a default.

    Raises:
        InvalidNameError: The name cannot name a circuit.
        ConfigError: Names the option, the value and what is valid.
        InvalidTimeError: The policy's clock gives no time.

    Example:
        ```python
        from switchgear import CircuitBreaker

        breaker = CircuitBreaker("billing", failure_threshold=5, open_duration_ms=30_000)


        @breaker
        def charge(order: str) -> str:
            return f"{order} is charged"


        assert charge("order 1") == "order 1 is charged"
        assert breaker.execute(lambda: charge("order 2"), fallback=lambda refusal: "queued") == "order 2 is charged"
        with breaker:
            charge("order 3")
        ```
    """

    __slots__ = ("__weakref__", "_circuit", "_indirect", "_machine", "_ways")

    _circuit: LocalCircuit

    def __init__(self, name: str, **policy: Unpack[Policy]) -> None:
        circuit = LocalCircuit(checked_name(name), PreparedPolicy.of(policy))
        self._bind(circuit)

    @classmethod
    def _of(cls, circuit: LocalCircuit) -> Self:
        """The breaker of a circuit that was made already: how a group makes its members."""
        breaker = cls.__new__(cls)
        breaker._bind(circuit)
        return breaker

    def _bind(self, circuit: LocalCircuit) -> None:
        self._circuit = circuit
        self._ways = Ways(circuit.rules, circuit.admit, circuit.other_entry)
        self._scope_bind(circuit.machine, circuit)
        self._machine = circuit.machine
        self._indirect: Indirect[Permit] = Indirect()

    @overload
    async def execute_async(
        self,
        fn: Callable[[], Awaitable[T]],
        *,
        fallback: None = None,
        fallback_on: FallbackOn | None = None,
        timeout_ms: int | None = None,
    ) -> T: ...
    @overload
    async def execute_async(
        self,
        fn: Callable[[], Awaitable[T]],
        *,
        fallback: Callable[[Refusal], Awaitable[F]],
        fallback_on: Literal["refusal"] | None = None,
        timeout_ms: int | None = None,
    ) -> T | F: ...
    @overload
    async def execute_async(
        self,
        fn: Callable[[], Awaitable[T]],
        *,
        fallback: Callable[[Refusal], F],
        fallback_on: Literal["refusal"] | None = None,
        timeout_ms: int | None = None,
    ) -> T | F: ...
    @overload
    async def execute_async(
        self,
        fn: Callable[[], Awaitable[T]],
        *,
        fallback: Callable[[Exception], Awaitable[F]],
        fallback_on: FallbackOn | None,
        timeout_ms: int | None = None,
    ) -> T | F: ...
    @overload
    async def execute_async(
        self,
        fn: Callable[[], Awaitable[T]],
        *,
        fallback: Callable[[Exception], F],
        fallback_on: FallbackOn | None,
        timeout_ms: int | None = None,
    ) -> T | F: ...
    @overload
    async def execute_async(
        self,
        fn: Callable[[], T],
        *,
        fallback: None = None,
        fallback_on: FallbackOn | None = None,
        timeout_ms: int | None = None,
    ) -> T: ...
    @overload
    async def execute_async(
        self,
        fn: Callable[[], T],
        *,
        fallback: Callable[[Refusal], F],
        fallback_on: Literal["refusal"] | None = None,
        timeout_ms: int | None = None,
    ) -> T | F: ...
    @overload
    async def execute_async(
        self,
        fn: Callable[[], T],
        *,
        fallback: Callable[[Exception], F],
        fallback_on: FallbackOn | None,
        timeout_ms: int | None = None,
    ) -> T | F: ...
    async def execute_async(
        self,
        fn: Callable[[], Any],
        *,
        fallback: Callable[..., Any] | None = None,
        fallback_on: FallbackOn | None = None,
        timeout_ms: int | None = None,
    ) -> Any:
        """Runs a coroutine function if the circuit lets it through, once, and settles its outcome.

        What the function gives is awaited if it is awaitable. A generator or async generator object that it returns
        (not one that had to be awaited) is guarded until it ends. A cancellation counts nowhere, and always comes
        through.

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
            CallTimeoutError: It took too long.
            TypeError: `fn` cannot be called.
            ConfigError: An option is wrong.
            InvalidTimeError: The policy's clock fails.

        Example:
            ```python
            import asyncio

            from switchgear import CircuitBreaker


            async def charge() -> str:
                await asyncio.sleep(0)
                return "charged"


            async def main() -> None:
                breaker = CircuitBreaker("billing")
                assert await breaker.execute_async(charge, timeout_ms=5_000) == "charged"


            asyncio.run(main())
            ```
        """
        epoch = self._machine.hot
        if epoch is None or fallback is not None or fallback_on is not None or timeout_ms is not None:
            call = checked_async_call(fallback, fallback_on, timeout_ms, self._circuit.rules.host)
            check_fn(fn)
            return await enter_async(fn, (), {}, call, self._ways)
        try:
            given = fn()
            if type(given) is not CoroutineType and not must_be_awaited(given):
                return self._circuit.hot_returned(epoch, given, NO_OPTIONS, (), {})
            result = await given
        except BaseException as error:
            given = None
            check_fn(fn)
            self._circuit.hot_raised(epoch, error)
            raise
        if self._machine.hot is None:
            self._circuit.hot_succeeded(epoch)
        return result

    # Nothing has to be waited for here; native, for what it costs.
    __aenter__ = Scope._scope_aenter
    __aexit__ = Scope._scope_aexit

    def acquire(self) -> Permit:
        """Asks for one call by hand, and gives the permit to settle it with.

        Raises:
            CircuitOpenError: The circuit refused it.
            InvalidTimeError: The policy's clock fails.
        """
        permit = self._circuit.permit()
        permit._keep()
        return permit

    def get_state(self) -> State:
        """The state as callers see it: forced open reads `open`, disabled reads `closed`. Changes nothing."""
        return self._machine.state()

    def get_snapshot(self) -> Snapshot:
        """Everything the circuit knows. Changes nothing.

        Raises:
            InvalidTimeError: The policy's clock fails.
        """
        return Snapshot(*self._machine.snapshot(self._circuit.now()))

    def reset(self) -> None:
        """Closes the circuit and forgets everything; outcomes of calls already running no longer count.

        Raises:
            InvalidTimeError: The policy's clock fails.
        """
        self._machine.reset(self._circuit.now())
        self._circuit.follow()

    def trip(self, *, for_ms: int | None = None) -> None:
        """Opens the circuit now, also when it is open already; it recovers as usual.

        Args:
            for_ms: How long it stays open, in milliseconds; by default as long as after any other trip.

        Raises:
            ConfigError: `for_ms` is wrong.
            InvalidTimeError: The policy's clock fails.
        """
        self._machine.trip(self._circuit.now(), for_ms)
        self._circuit.follow()

    def force_open(self) -> None:
        """Refuses every call until `reset` or `trip`.

        Raises:
            InvalidTimeError: The policy's clock fails.
        """
        self._machine.force_open(self._circuit.now())
        self._circuit.follow()

    def disable(self) -> None:
        """Admits every call and counts none until `reset` or `trip`.

        Raises:
            InvalidTimeError: The policy's clock fails.
        """
        self._machine.disable(self._circuit.now())
        self._circuit.follow()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}: {shown_state(self._machine)}>"

    def _begin_block(self) -> Permit:
        return self._circuit.permit().__enter__()

    def _enter_indirect(self, frame: FrameType | None, permit: Permit) -> None:
        self._indirect.enter(frame, permit)

    def _leave_indirect(self, frame: FrameType | None) -> Permit:
        return self._indirect.leave(frame, self._scope_frames(), self._scope_take)

    def _guarded(self, fn: Callable[..., Any], call: CheckedCall) -> Callable[..., Any]:
        slow = guard_with(fn, call, self._ways)
        kind = kind_of(fn)
        if call.on_failure and call.fallback is not None:
            return slow
        if kind == "function":
            return like(fn, hot_function(fn, slow, self._circuit, call))
        if kind == "coroutine function" and gives_coroutine(fn) and call.timeout_ms is None:
            return like(fn, hot_coroutine_function(fn, slow, self._circuit))
        return slow
