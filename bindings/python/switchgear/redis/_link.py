"""What the circuits of one store share, and the options that say so."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar

from switchgear import _native
from switchgear._clock import check_clock, monotonic_now
from switchgear._config import checked_number, out_of_range
from switchgear._error import InvalidNameError
from switchgear._events import Emitter

StoreEventName: TypeAlias = Literal["store_error", "config_mismatch"]
"""What a store says about itself.

`store_error`: the store did not answer, not in time, or with an error; once per admission, outcome or question.
`config_mismatch`: a half-open period of the circuit runs by another `probe_timeout_ms`, `half_open_max_calls` or
`success_threshold` than ours; once per circuit object. Other differences are not noticed.
"""


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """One thing that happened at the store."""

    circuit: str
    """The name of the circuit it happened to."""
    at: int
    """When, in milliseconds on the circuit's clock."""
    error: BaseException | None = None
    """What the store said, as a `StoreError`; `None` for a `config_mismatch`."""


L = TypeVar("L")
L_co = TypeVar("L_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Link(Generic[L_co]):
    """What the circuits of one store share."""

    line: L_co
    """The way to the store."""
    reads_primary: bool
    prefix: str
    timeout_ms: int
    clock: Callable[[], int]
    """The time that goes into commands."""
    stopwatch: Callable[[], int]
    """The time that calls are measured with: the wall clock may step, so that is another one."""
    instance: str
    events: Emitter


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The options of a store, checked."""

    prefix: str
    timeout_ms: int
    clock: Callable[[], int]
    stopwatch: Callable[[], int]
    instance: str

    def link(self, line: L, *, reads_primary: bool) -> Link[L]:
        """What the circuits of the store share."""
        events = Emitter(_EVENTS)
        return Link(
            line, reads_primary, self.prefix, self.timeout_ms, self.clock, self.stopwatch, self.instance, events
        )


def read_options(prefix: object, timeout_ms: object, clock: object, instance: object) -> StoreOptions:
    """Checks the options of a store; `None` is left out.

    Raises:
        ConfigError: Names the option, the value and what is valid.
        InvalidNameError: The prefix cannot be one.
        InvalidTimeError: The clock gives no moment; whatever the clock itself raises comes through.
    """
    _, default_prefix, default_timeout_ms = _native.defaults()
    now, stopwatch = _read_clock(clock)
    return StoreOptions(
        prefix=default_prefix if prefix is None else _checked_prefix(prefix),
        timeout_ms=default_timeout_ms if timeout_ms is None else checked_number("timeout_ms", timeout_ms),
        clock=now,
        stopwatch=stopwatch,
        instance=socket.gethostname() if instance is None else _checked_instance(instance),
    )


_EVENTS = ("store_error", "config_mismatch")


def _checked_prefix(prefix: object) -> str:
    if not isinstance(prefix, str):
        raise InvalidNameError(f"`prefix` must be a string, got `{_native.describe(prefix)}`")
    _native.check_prefix(prefix)
    return prefix


def _read_clock(clock: object) -> tuple[Callable[[], int], Callable[[], int]]:
    if clock is None or clock == "system":
        return _system_now, monotonic_now
    if not callable(clock):
        raise out_of_range("clock", "'system' or callable", clock)
    check_clock(clock)
    return clock, clock


def _system_now() -> int:
    return time.time_ns() // 1_000_000


def _checked_instance(instance: object) -> str:
    if not isinstance(instance, str) or not instance:
        raise out_of_range("instance", "a text that is not empty", instance)
    return instance
