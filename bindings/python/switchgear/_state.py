"""The state machine alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from switchgear._config import BREAKER_POLICY, read_policy
from switchgear._local import shown_state
from switchgear._native import FAILURE, RELEASE, SUCCESS, Denial, Grant, Loudness, Machine
from switchgear._types import Settled, Snapshot, State
from switchgear._uncopied import Uncopied

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from switchgear._types import Policy


class StatePermit(Uncopied):
    """A permit of a `CircuitBreakerState`: it settles once. Each `now` is in whole milliseconds, 0 to 2^52."""

    __slots__ = ("_grant", "_state", "probe")

    def __init__(self, state: CircuitBreakerState, grant: Grant) -> None:
        self.probe = grant.is_probe
        """Whether it holds one of the slots of a half-open circuit."""
        self._state = state
        self._grant = grant

    def record_success(self, now: int) -> Settled:
        """The dependency did its work."""
        return self._settle(now, SUCCESS)

    def record_failure(self, now: int) -> Settled:
        """The dependency failed."""
        return self._settle(now, FAILURE)

    def release(self, now: int) -> Settled:
        """Neither; frees the slot."""
        return self._settle(now, RELEASE)

    def _settle(self, now: int, outcome: int) -> Settled:
        # Deleting an attribute is one operation: of two threads one succeeds. But a time that is none settles nothing.
        try:
            grant = self._grant
            del self._grant
        except AttributeError:
            return "duplicate"
        try:
            return self._state._settle(now, grant, outcome)
        except Exception:
            self._grant = grant
            raise


class CircuitBreakerState(Uncopied):
    """The state machine alone: no clock, no functions, no events.

    Every call that depends on time takes `now` in whole milliseconds, 0 to 2^52, and the same calls give the same
    answers, here as in every other language. For simulations, for tests, and for building something else on it. Of a
    policy it uses what concerns the machine; the options about running functions are checked and have no effect.

    Args:
        **policy: How it behaves, see `Policy`; every option has a default.

    Raises:
        ConfigError: Names the option, the value and what is valid.

    Example:
        ```python
        from switchgear import CircuitBreakerState

        state = CircuitBreakerState(failure_threshold=1, open_duration_ms=1000)
        assert state.can_request(0)
        assert state.record_failure(5) == "applied"
        assert state.retry_after_ms(5) == 1000
        ```
    """

    __slots__ = ("__weakref__", "_machine")

    def __init__(self, **policy: Unpack[Policy]) -> None:
        self._machine = Machine(read_policy([policy], BREAKER_POLICY).config, Loudness(), True)

    def can_request(self, now: int) -> bool:
        """Whether a call may go ahead. In a half-open circuit it takes a slot.

        Raises:
            InvalidTimeError: `now` is no moment.
        """
        return self._admit(now) is not None

    def record_success(self, now: int) -> Settled:
        """A call succeeded. Whether that counted.

        Raises:
            InvalidTimeError: `now` is no moment.
        """
        return self._settle(now, None, SUCCESS)

    def record_failure(self, now: int) -> Settled:
        """A call failed. Whether that counted.

        Raises:
            InvalidTimeError: `now` is no moment.
        """
        return self._settle(now, None, FAILURE)

    def release(self, now: int) -> Settled:
        """A call ended neutrally. Whether that counted.

        Raises:
            InvalidTimeError: `now` is no moment.
        """
        return self._settle(now, None, RELEASE)

    def acquire(self, now: int) -> StatePermit | None:
        """Asks for a call and gives the permit to settle it with; `None` if it was refused.

        Raises:
            InvalidTimeError: `now` is no moment.
        """
        grant = self._admit(now)
        return None if grant is None else StatePermit(self, grant)

    def retry_after_ms(self, now: int) -> int | None:
        """How many milliseconds a call would have to wait: 0 if it would be admitted, `None` if unknown (forced open).

        Changes nothing.

        Raises:
            InvalidTimeError: `now` is no moment.
        """
        return self._machine.retry_after_ms(now)

    def get_state(self) -> State:
        """The state as callers see it. Changes nothing."""
        return self._machine.state()

    def snapshot(self, now: int) -> Snapshot:
        """Everything it knows. Changes nothing.

        Raises:
            InvalidTimeError: `now` is no moment.
        """
        return Snapshot(*self._machine.snapshot(now))

    def reset(self, now: int) -> None:
        """Closes and forgets everything.

        Raises:
            InvalidTimeError: `now` is no moment.
        """
        self._machine.reset(now)
        self._forget()

    def trip(self, now: int, for_ms: int | None = None) -> None:
        """Opens now, also when it is open already; recovers as usual.

        Args:
            now: The time.
            for_ms: How long it stays open, in milliseconds; by default as long as after any other trip.

        Raises:
            InvalidTimeError: `now` is no moment.
            ConfigError: `for_ms` is wrong.
        """
        self._machine.trip(now, for_ms)
        self._forget()

    def force_open(self, now: int) -> None:
        """Refuses every call until `reset` or `trip`.

        Raises:
            InvalidTimeError: `now` is no moment.
        """
        self._machine.force_open(now)
        self._forget()

    def disable(self, now: int) -> None:
        """Admits every call and counts none until `reset` or `trip`.

        Raises:
            InvalidTimeError: `now` is no moment.
        """
        self._machine.disable(now)
        self._forget()

    def __repr__(self) -> str:
        return f"<CircuitBreakerState: {shown_state(self._machine)}>"

    def _admit(self, now: int) -> Grant | None:
        admission = self._machine.admit(now)
        self._forget()
        if isinstance(admission, Denial):
            return None
        # Here nothing happens but what is asked for.
        admission.keep()
        return admission

    def _settle(self, now: int, grant: Grant | None, outcome: int) -> Settled:
        applied = self._machine.settle(now, grant, outcome)
        self._forget()
        return "applied" if applied else "stale"

    def _forget(self) -> None:
        # The machine keeps its transitions until somebody takes them; here nobody is told.
        if self._machine.has_transitions:
            self._machine.take_transitions()
