"""What sync breakers offer, local and shared: they differ in the circuit that they ask."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from switchgear._awaitable import PLAIN
from switchgear._call import Ways, check_fn, check_sync, enter
from switchgear._circuit import SyncCircuit
from switchgear._classify import NEUTRAL, SUCCEEDED
from switchgear._fallback import NO_OPTIONS, CheckedCall, checked_async_call
from switchgear._guard import guard_with, guarded_kind
from switchgear._native import Grant
from switchgear._permit import by_hand
from switchgear._types import CallEvent, CallEventName, FallbackOn, Settled, StateChange
from switchgear._uncopied import Uncopied

if TYPE_CHECKING:
    from switchgear._decorators import ClassMethod, Fn, Guarding, Recovering
    from switchgear._error import Refusal

T = TypeVar("T")
F = TypeVar("F")


class SyncBreaker(Uncopied):
    """Guards the calls to one dependency. A subclass has the slots, and the permits and blocks."""

    # None here: one subclass has a native base as well.
    __slots__ = ()

    _circuit: SyncCircuit[Any]
    _ways: Ways

    @property
    def name(self) -> str:
        """The circuit's name."""
        return self._circuit.rules.circuit

    @overload
    def execute(self, fn: Callable[[], T], *, fallback: None = None, fallback_on: FallbackOn | None = None) -> T: ...
    @overload
    def execute(
        self,
        fn: Callable[[], T],
        *,
        fallback: Callable[[Refusal], F] | None,
        fallback_on: Literal["refusal"] | None = None,
    ) -> T | F: ...
    @overload
    def execute(
        self, fn: Callable[[], T], *, fallback: Callable[[Exception], F] | None, fallback_on: FallbackOn | None
    ) -> T | F: ...
    def execute(
        self,
        fn: Callable[[], Any],
        *,
        fallback: Callable[..., Any] | None = None,
        fallback_on: FallbackOn | None = None,
    ) -> Any:
        """Runs a sync function if the circuit lets it through, once, and settles its outcome.

        A generator or async generator object that it returns is guarded until it ends. A policy's `timeout_ms` is for
        coroutines alone: a sync function cannot be interrupted.

        Args:
            fn: A callable without arguments.
            fallback: Gives the result of a refused call instead; gets the error. At most once; what it raises has the
                error as its cause.
            fallback_on: `"refusal"`, the default, or `"failure"`: also calls whose error counted.

        Returns:
            What the function gives; what the fallback gives, where it steps in.

        Raises:
            CircuitOpenError: The circuit refused it; what the function raises comes through as it is.
            TypeError: `fn` cannot be called, or what it gives has to be awaited: the message says what to use.
            ConfigError: An option is wrong.
            InvalidTimeError: The policy's clock fails.
        """
        circuit = self._circuit
        hints = circuit.hints
        grant = hints.hot
        if grant is not None and fallback is None and fallback_on is None:
            try:
                result = fn()
            except BaseException as error:
                check_fn(fn)
                circuit.hot_raised(grant, error)
                raise
            try:
                # As `is_plain` does, for less.
                if type(result) in PLAIN and (hints.success_ignored or hints.hot is not None):
                    return result
            except TypeError:
                pass
            return circuit.hot_returned(grant, result, NO_OPTIONS, (), {})
        # The policy's timeout is for the steps of an async generator that it may return.
        call = checked_async_call(fallback, fallback_on, None, self._ways.rules.host)
        check_sync(fn, self._ways.rules, self._ways.other)
        return enter(fn, (), {}, call, self._ways)

    @overload
    def __call__(self, fn: Fn) -> Fn: ...
    @overload
    def __call__(self, fn: ClassMethod) -> ClassMethod: ...
    def __call__(self, fn: Any) -> Any:
        """A function like the one given, each call of which is guarded: the breaker is a decorator.

        Functions, coroutine functions, generator functions and async generator functions keep their kind and signature;
        generators are admitted at their first step and guarded until they end. Partials, callable objects, bound, class
        and static methods do as well.

        Raises:
            TypeError: `fn` cannot be called, or is a class.
        """
        return self._decorated(fn, CheckedCall(timeout_ms=self._ways.rules.host.timeout_ms), None)

    @overload
    def guard(self, fn: Fn) -> Fn: ...
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
    ) -> Guarding: ...
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
            fallback: Gives the result of a refused call instead; gets the error, then the arguments of the call. Of a
                generator it gives what the rest is taken from.
            fallback_on: `"refusal"`, the default, or `"failure"`: also calls whose error counted, and those that timed
                out.
            timeout_ms: As in the policy, for this function: a coroutine function or an async generator function.

        Raises:
            TypeError: `fn` cannot be called, or is a class; or `fallback` can never take the error and the function's
                arguments.
            ConfigError: An option is wrong.

        Example:
            ```python
            from switchgear import CircuitBreaker

            breaker = CircuitBreaker("billing")


            @breaker.guard(fallback=lambda refusal, order: f"{order} is queued")
            def charge(order: str) -> str:
                return f"{order} is charged"


            assert charge("order 1") == "order 1 is charged"
            breaker.force_open()
            assert charge("order 2") == "order 2 is queued"
            ```
        """
        call = checked_async_call(fallback, fallback_on, timeout_ms, self._ways.rules.host)
        if fn is None:
            return lambda fn: self._decorated(fn, call, timeout_ms)
        return self._decorated(fn, call, timeout_ms)

    def can_execute(self) -> bool:
        """Asks for one call by hand: whether it may go ahead. In a half-open circuit it takes a slot.

        Follow with `record_success`, `record_failure` or `release`; `acquire` is safer, for its permit knows which call
        it belongs to.

        Raises:
            InvalidTimeError: The policy's clock fails.
        """
        grant = self._circuit.ask()
        if isinstance(grant, Grant):
            grant.keep()
        return self._circuit.rules.host.observe or not isinstance(grant, Exception)

    def record_success(self) -> Settled:
        """Reports that a call succeeded. Whether that counted.

        Raises:
            InvalidTimeError: The policy's clock fails.
        """
        return self._circuit.settle_by_hand(None, SUCCEEDED)

    def record_failure(self, error: BaseException | None = None) -> Settled:
        """Reports that a call failed. Whether that counted.

        Args:
            error: What went wrong: `is_failure` and `ignore` then decide whether it counts.

        Raises:
            TypeError: `error` is no exception.
            InvalidTimeError: The policy's clock fails.
        """
        return self._circuit.settle_by_hand(None, by_hand(self._circuit.rules, error))

    def release(self) -> Settled:
        """Reports that a call ended neutrally. Whether that counted.

        Raises:
            InvalidTimeError: The policy's clock fails.
        """
        return self._circuit.settle_by_hand(None, NEUTRAL)

    @overload
    def on(self, event: Literal["state_change"], fn: Callable[[StateChange], object]) -> Callable[[], None]: ...
    @overload
    def on(self, event: CallEventName, fn: Callable[[CallEvent], object]) -> Callable[[], None]: ...
    def on(self, event: str, fn: Callable[[Any], object]) -> Callable[[], None]:
        """Listens to an event, which is told after the fact and in order.

        A listener may call the breaker; one that raises harms nothing and is reported once, by `logging`. It runs in
        the thread whose call caused the event, or in one that is telling others: one that takes long holds up what is
        told after it, but no other thread's call. Where 10 000 events wait, those of calls are dropped, which is
        reported once. Of a call that had begun before, it may not hear.

        Args:
            event: `state_change`, `success`, `failure`, `ignored` or `refused`.
            fn: Gets a `StateChange`, or a `CallEvent`.

        Returns:
            A function that stops listening.

        Raises:
            TypeError: An unknown event, or a listener that cannot be called, or would have to be awaited.
        """
        return self._circuit.events.on(event, fn)

    def _decorated(self, fn: Any, call: CheckedCall, timeout_ms: int | None) -> Any:
        if isinstance(fn, (classmethod, staticmethod)):
            # What it is around is guarded, so that `@breaker` may stand above it or below.
            return type(fn)(self._decorated(fn.__func__, call, timeout_ms))
        guarded_kind(fn, timeout_ms)
        return self._guarded(fn, call)

    def _guarded(self, fn: Callable[..., Any], call: CheckedCall) -> Callable[..., Any]:
        return guard_with(fn, call, self._ways)
