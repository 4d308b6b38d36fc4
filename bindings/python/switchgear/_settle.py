"""Settling: how the end of a call reaches the circuit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from switchgear._classify import NEUTRAL, Ending

Settle: TypeAlias = Callable[[Ending], object]
"""Counts the end of a call and tells the listeners. No `Exception` comes out: it would hide the caller's result."""

AsyncSettle: TypeAlias = Callable[[Ending], Awaitable[object] | None]
"""The same where counting may take a round trip; the caller's result waits for it, if what it gives is not `None`."""


def settle_as(settle: Settle, ending_of: Callable[[], Ending]) -> Ending:
    """Settles with what the classification says, and gives that.

    Where an interrupt (Ctrl-C) hits a classifier nobody knows what it would have said: neutral, for the slot must be
    free all the same.
    """
    try:
        ending = ending_of()
    except BaseException:
        settle(NEUTRAL)
        raise
    settle(ending)
    return ending


async def settle_as_async(settle: AsyncSettle | Settle, ending_of: Callable[[], Ending]) -> Ending:
    """The same of an async call."""
    try:
        ending = ending_of()
    except BaseException:
        await settled(settle, NEUTRAL)
        raise
    await settled(settle, ending)
    return ending


async def settled(settle: AsyncSettle | Settle, ending: Ending) -> None:
    """Settles, and waits where there is something to wait for."""
    settling: Any = settle(ending)
    if settling is not None:
        await settling
