"""The types that all breakers share."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias, TypedDict, TypeVar, overload

State: TypeAlias = Literal["closed", "open", "half-open"]
"""What a circuit does with a call: let it through, refuse it, or let a few through to see."""

Mode: TypeAlias = Literal["auto", "forced-open", "disabled"]
"""Who decides: the rules, or an operator who holds the circuit open or has switched it off."""

Settled: TypeAlias = Literal["applied", "stale", "duplicate"]
"""Whether an outcome counted.

`applied`; `stale`, it came from another period and changed nothing; `duplicate`, this permit was settled before and
nothing was done.
"""

TripOn: TypeAlias = Literal["rolling", "consecutive", "rate"]
"""What makes a closed circuit trip."""

Reason: TypeAlias = Literal["threshold", "cooldown", "probe-failed", "probes-succeeded", "manual"]
"""Why a circuit changed its state."""

FallbackOn: TypeAlias = Literal["refusal", "failure"]
"""Which calls fall back: those that were refused, or also those whose error counted and those that timed out."""


class Policy(TypedDict, total=False):
    """How a circuit breaker behaves: keyword arguments of breakers, groups and states.

    Every option may be left out; `None` means left out, and a given 0 is never replaced by a default. All durations are
    whole milliseconds, 1 to 3 155 760 000 000 (100 years). An option with an unknown name, a wrong type, a value out of
    range, or one that the `trip_on` in force does not use, is a `ConfigError` from the constructor.
    """

    trip_on: TripOn | None
    """What trips a closed circuit, by default `"rolling"`: `failure_threshold` failures within `window_ms`.

    `"consecutive"`: so many in a row; `"rate"`: a share `failure_rate` of at least `minimum_calls` calls within
    `window_ms`.
    """
    failure_threshold: int | None
    """Failures that trip, 1 to 1 000 000, by default 5 (`rolling`, `consecutive`)."""
    window_ms: int | None
    """The window in milliseconds, by default 10 000 (`rolling`, `rate`)."""
    failure_rate: float | None
    """The share of failed calls that trips, above 0 and at most 1, by default 0.5 (`rate`)."""
    minimum_calls: int | None
    """Calls within the window before the rate means anything, 1 to 1 000 000, by default 20 (`rate`)."""
    open_duration_ms: int | None
    """How long the circuit stays open before a probe is admitted, in milliseconds, by default 30 000."""
    open_backoff: float | None
    """Each re-opening without a close in between multiplies the open duration by this, 1 to 100, by default 1."""
    open_duration_max_ms: int | None
    """The longest opening in milliseconds that the backoff may reach, by default ten times `open_duration_ms`."""
    half_open_max_calls: int | None
    """Probes in flight at once while half-open, 1 to 1 000 000, by default 1."""
    success_threshold: int | None
    """Successful probes that close the circuit, 1 to 1 000 000, by default 1."""
    probe_timeout_ms: int | None
    """After how many milliseconds a probe that never reported loses its slot, by default `open_duration_ms`."""
    reset_timeout_ms: int | None
    """Another name for `open_duration_ms`; give one of the two."""
    half_open_max_probes: int | None
    """Another name for `half_open_max_calls`; give one of the two."""
    is_failure: Callable[[Exception], bool] | None
    """Whether an error says that the dependency failed; by default every `Exception` does.

    One that does not is raised as it is and counts nowhere. Only `False` says that it does not: a classifier that
    forgets to answer, raises, or gives an awaitable counts the call as a failure. What is no `Exception`
    (CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit) never counts, and is not asked about; nor is a
    refusal by this very circuit, of a guarded call within a guarded call.
    """
    ignore: type[BaseException] | tuple[type[BaseException], ...] | None
    """Exception types that say nothing of the dependency, as an `except` clause takes them; by default none."""
    is_failure_result: Callable[[Any], bool] | None
    """Whether a returned value (a 503 response, say) counts as a failure; by default none does.

    Such a value is still returned. The answer is taken as a condition is; a classifier that raises, or gives an
    awaitable, counts the call as a failure.
    """
    slow_call_ms: int | None
    """A success that took longer than this many milliseconds counts as a failure; its value is still returned.

    By default none does. Of a generator the time within it counts, not what its consumer takes in between.
    """
    timeout_ms: int | None
    """After so many milliseconds a coroutine is cancelled and counts as a failure; at most 2 147 483 647; default none.

    The call raises `CallTimeoutError`, whatever the coroutine makes of its cancellation. Of an async generator it
    bounds each step. Sync functions cannot be interrupted, and what is in a block of `with` or `async with` is no
    coroutine of ours: they have no timeout, and a shared breaker that guards no coroutines takes none.
    """
    observe: bool | None
    """The machine runs and refusals are announced (`refused` events), but each call is let through; by default `False`.

    A call that would have been refused is not counted.
    """
    clock: Callable[[], int] | None
    """The time in whole milliseconds, 0 to 2^52, for tests and simulations.

    A reading that is none is an `InvalidTimeError`; it is read once by the constructor. By default the host's monotonic
    clock, anchored once to the wall clock.
    """


class GroupPolicy(Policy, total=False):
    """How a group behaves: the policy of its breakers, and what is its own."""

    name: str | None
    """Comes before each key in the name of its circuit: `name:key`. By default the key alone is the name."""
    max_keys: int | None
    """How many breakers the group holds at most, 1 to 1 000 000, by default 1024."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """What a circuit looks like at one moment. Reading it changes nothing."""

    state: State
    """As callers see it: forced open reads `open`, disabled reads `closed`."""
    mode: Mode
    """Who decides."""
    failures_in_window: int
    """Failures in the window while closed (`rolling`, `rate`; else 0)."""
    calls_in_window: int
    """Calls in the window while closed (`rate`; else 0)."""
    consecutive_failures: int
    """Failures in a row (`consecutive`; else 0)."""
    half_open_successes: int
    """Probes that succeeded in this half-open period."""
    half_open_in_flight: int
    """Probes in flight."""
    opened_at: int | None
    """When it opened, in milliseconds on the circuit's clock; `None` unless tripped. Kept while half-open."""
    remaining_open_ms: int
    """Milliseconds until a probe is admitted; 0 unless open, and 0 while open when the next request is a probe."""
    trips: int
    """Openings since the last close."""
    epoch: int
    """Names the period between two transitions; it only grows."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """A transition, told after the fact and in order."""

    circuit: str
    """The circuit's name."""
    from_state: State
    """The state before."""
    to_state: State
    """The state after."""
    at: int
    """When, in milliseconds on the circuit's clock."""
    failures: int
    """The failures counted when a threshold tripped; else 0."""
    open_ms: int | None
    """How long it will stay open, in milliseconds; `None` unless it opened, by itself or by `trip`."""
    reason: Reason
    """Why."""
    source: Literal["local", "remote"] = "local"
    """Whether this process made the transition."""
    instance: str | None = None
    """Which instance of the fleet made it; `None` for a local circuit."""


@dataclass(frozen=True, slots=True)
class CallEvent:
    """One guarded call. Each call emits exactly one of `success`, `failure`, `ignored` and `refused`."""

    circuit: str
    """The circuit's name."""
    at: int
    """When it ended, in milliseconds on the circuit's clock."""
    duration_ms: int | None
    """How long it took; `None` for refusals, for outcomes recorded by hand, and where nobody listened at its start."""
    error: BaseException | None = None
    """What it raised, or the refusal; `None` where there was none."""


CallEventName: TypeAlias = Literal["success", "failure", "ignored", "refused"]
"""The events that are about one call."""

_T = TypeVar("_T")


class Listening(Protocol):
    """What breakers and groups have in common: they can be listened to."""

    @overload
    def on(self, event: Literal["state_change"], fn: Callable[[StateChange], object]) -> Callable[[], None]: ...
    @overload
    def on(self, event: CallEventName, fn: Callable[[CallEvent], object]) -> Callable[[], None]: ...


class Breaker(Listening, Protocol):
    """What sync code that does not care whether the circuit is shared may rely on."""

    @property
    def name(self) -> str:
        """The circuit's name."""

    def execute(self, fn: Callable[[], _T]) -> _T:
        """Runs a function if the circuit lets it through."""

    def can_execute(self) -> bool:
        """Asks for one call by hand; follow an allowed one with `record_success`, `record_failure` or `release`."""

    def record_success(self) -> Settled:
        """Reports that a call succeeded."""

    def record_failure(self, error: BaseException | None = None) -> Settled:
        """Reports that a call failed; with an error, the classification decides whether it counts."""

    def release(self) -> Settled:
        """Reports that a call ended neutrally."""

    def get_state(self) -> State:
        """The state as callers see it."""

    def get_snapshot(self) -> Snapshot:
        """Everything the circuit knows."""

    def reset(self) -> None:
        """Closes the circuit and forgets everything."""

    def trip(self, *, for_ms: int | None = None) -> None:
        """Opens the circuit; it recovers as usual."""

    def force_open(self) -> None:
        """Refuses every call until `reset` or `trip`."""

    def disable(self) -> None:
        """Admits every call, counting none, until `reset` or `trip`."""


class AsyncBreaker(Listening, Protocol):
    """The same of a breaker whose every answer has to be awaited."""

    @property
    def name(self) -> str:
        """The circuit's name."""

    async def execute(self, fn: Callable[[], Awaitable[_T]]) -> _T:
        """Runs a coroutine function if the circuit lets it through."""

    async def can_execute(self) -> bool:
        """Asks for one call by hand; follow an allowed one with `record_success`, `record_failure` or `release`."""

    async def record_success(self) -> Settled:
        """Reports that a call succeeded."""

    async def record_failure(self, error: BaseException | None = None) -> Settled:
        """Reports that a call failed; with an error, the classification decides whether it counts."""

    async def release(self) -> Settled:
        """Reports that a call ended neutrally."""

    async def get_state(self) -> State:
        """The state as callers see it."""

    async def get_snapshot(self) -> Snapshot:
        """Everything the circuit knows."""

    async def reset(self) -> None:
        """Closes the circuit and forgets everything."""

    async def trip(self, *, for_ms: int | None = None) -> None:
        """Opens the circuit; it recovers as usual."""

    async def force_open(self) -> None:
        """Refuses every call until `reset` or `trip`."""

    async def disable(self) -> None:
        """Admits every call, counting none, until `reset` or `trip`."""
