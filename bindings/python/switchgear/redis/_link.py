"""What the circuits of one store share, and the options that say so."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, TypeAlias, TypeVar

from switchgear import _native
from switchgear._clock import check_clock, monotonic_now
from switchgear._config import checked_bool, checked_number, out_of_range
from switchgear._error import InvalidNameError, StoreError
from switchgear._events import Emitter
from switchgear.redis._audience import Audience
from switchgear.redis._clients import Client
from switchgear.redis._hearing import Ears, Hearing, Session
from switchgear.redis._nodes import Nodes
from switchgear.redis._own import check_source

StoreEventName: TypeAlias = Literal["store_error", "config_mismatch", "degraded", "restored"]
"""What a store says about itself.

`store_error`: the store did not answer, not in time, or with an error; once per question that was sent, which
concurrent admissions share. With `events=True` also each time that the connection for events is lost, or not made.
`config_mismatch`: a half-open period of the circuit runs by another `probe_timeout_ms`, `half_open_max_calls` or
`success_threshold` than ours; once per circuit object. Other differences are not noticed.
`degraded`: a server of the store has failed three times in a row, or has for one circuit. From here on no call waits
for it; what calls meet is `on_store_failure`. It is asked once a second whether it is back.
`restored`: it is asked again.
"""


@dataclass(frozen=True, slots=True)
class StoreEvent:
    """One thing that happened at the store."""

    circuit: str | None
    """The name of the circuit it happened to.

    `None` where a server is `degraded` or `restored` for all of its circuits, where `events` are not heard, and where
    circuits cannot be listed.
    """
    at: int
    """When, in milliseconds on the circuit's clock."""
    error: BaseException | None = None
    """What the store said, as a `StoreError`; `None` for `config_mismatch` and `restored`."""


L = TypeVar("L")
L_co = TypeVar("L_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Link(Generic[L_co]):
    """What the circuits of one store share."""

    line: L_co
    """The way to the store."""
    client: Client
    prefix: str
    timeout_ms: int
    times: Callable[[], tuple[int, int | None]]
    """The host's time, and the store's where the user says what that is."""
    stopwatch: Callable[[], int]
    """The time that calls are measured with."""
    is_host_time: bool
    """Whether the host's time is its own monotonic clock, and not what the user says."""
    instance: str
    events: Emitter
    nodes: Nodes
    audience: Audience
    """The circuits that are told of what other instances announce."""
    hearing: Hearing[Any] | None
    """What hears it, where that is wanted."""

    def report(self, error: StoreError) -> None:
        """Tells the store's listeners of an error that is no circuit's own."""
        _report(self.events, self.times, error)

    def listen(self) -> None:
        """Sees to it that announcements are heard in this process, if that is wanted."""
        if self.hearing is not None:
            self.hearing.ensure()


@dataclass(frozen=True, slots=True)
class StoreOptions:
    """The options of a store, checked."""

    prefix: str
    timeout_ms: int
    times: Callable[[], tuple[int, int | None]]
    stopwatch: Callable[[], int]
    instance: str
    events: bool

    def link(self, line: L, client: Client, begin_hearing: Callable[[Client, Ears], Session | None]) -> Link[L]:
        """What the circuits of the store share.

        Raises:
            ConfigError: `events`, and no connection can be made for them.
        """
        emitter, audience = Emitter(_EVENTS), Audience()
        return Link(
            line=line,
            client=client,
            prefix=self.prefix,
            timeout_ms=self.timeout_ms,
            times=self.times,
            stopwatch=self.stopwatch,
            is_host_time=self.stopwatch is monotonic_now,
            instance=self.instance,
            events=emitter,
            nodes=Nodes(client),
            audience=audience,
            hearing=self._hearing(client, audience, emitter, begin_hearing) if self.events else None,
        )

    def _hearing(
        self,
        client: Client,
        audience: Audience,
        emitter: Emitter,
        begin_hearing: Callable[[Client, Ears], Session | None],
    ) -> Hearing[Session]:
        check_source(client, "for `events=True`")
        ears = Ears(self.prefix, audience, partial(_report, emitter, self.times))
        return Hearing(lambda: begin_hearing(client, ears))


def _report(events: Emitter, times: Callable[[], tuple[int, int | None]], error: StoreError) -> None:
    try:
        now = times()[0]
    except Exception:  # noqa: BLE001 - a clock is foreign code
        now = monotonic_now()
    events.emit("store_error", StoreEvent(circuit=None, at=now, error=error))


def read_options(prefix: object, timeout_ms: object, clock: object, instance: object, events: object) -> StoreOptions:
    """Checks the options of a store; `None` is left out.

    Raises:
        ConfigError: Names the option, the value and what is valid.
        InvalidNameError: The prefix cannot be one.
        InvalidTimeError: The clock gives no moment; whatever the clock itself raises comes through.
    """
    _, default_prefix, default_timeout_ms = _native.defaults()
    times, stopwatch = _read_clock(clock)
    return StoreOptions(
        prefix=default_prefix if prefix is None else _checked_prefix(prefix),
        timeout_ms=default_timeout_ms if timeout_ms is None else checked_number("timeout_ms", timeout_ms),
        times=times,
        stopwatch=stopwatch,
        instance=socket.gethostname() if instance is None else _checked_instance(instance),
        events=events is not None and checked_bool("events", events),
    )


_EVENTS = ("store_error", "config_mismatch", "degraded", "restored")


def _checked_prefix(prefix: object) -> str:
    if not isinstance(prefix, str):
        raise InvalidNameError(f"`prefix` must be a string, got `{_native.describe(prefix)}`")
    _native.check_prefix(prefix)
    return prefix


def _read_clock(clock: object) -> tuple[Callable[[], tuple[int, int | None]], Callable[[], int]]:
    if clock is None or clock == "server":
        return _of_server, monotonic_now
    if clock == "system":
        return _of_system, monotonic_now
    if not callable(clock):
        raise out_of_range("clock", "'server', 'system' or callable", clock)
    check_clock(clock)
    return both(clock), clock


def both(clock: Callable[[], int]) -> Callable[[], tuple[int, int | None]]:
    """A clock of the user's: it serves for the host and for the store."""

    def times() -> tuple[int, int | None]:
        now = clock()
        return now, now

    return times


def _of_server() -> tuple[int, int | None]:
    return monotonic_now(), None


def _of_system() -> tuple[int, int | None]:
    return monotonic_now(), time.time_ns() // 1_000_000


def _checked_instance(instance: object) -> str:
    if not isinstance(instance, str) or not instance:
        raise out_of_range("instance", "a text that is not empty", instance)
    return instance
