"""The time that a process-local circuit runs by."""

from __future__ import annotations

from collections.abc import Callable

from switchgear import _native
from switchgear._error import InvalidTimeError

monotonic_now = _native.monotonic_now
"""The host's monotonic clock, anchored once to the wall clock: it reads as whole epoch milliseconds."""


def check_clock(clock: Callable[[], int] | None) -> None:
    """Reads a clock that was given, once, and throws the reading away.

    One that never works would otherwise be found out by the first call only, or never where a healthy call reads no
    clock.

    Raises:
        InvalidTimeError: It gives no moment; whatever the clock itself raises comes through.
    """
    if clock is None:
        return
    now = clock()
    try:
        # The core knows what a moment is, and how to say it: any of its operations does.
        _native.Machine(_native.Config([]), _native.Loudness(), True).snapshot(now)
    except InvalidTimeError as error:
        raise InvalidTimeError(f"`clock` gave no time: {error}") from None


def read(now: Callable[[], int]) -> int | None:
    """A reading for measuring; `None` where the clock itself fails, which the next admission reports."""
    try:
        at = now()
        return at if _native.is_moment(at) else None
    except Exception:  # noqa: BLE001 - a clock that raises must not hide what the call gave
        return None
