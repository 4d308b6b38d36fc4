"""Who waits, in one event loop, for an admission that somebody else has asked for."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from switchgear._native import Flight
from switchgear.redis._talk import Landed

Waiting: TypeAlias = "asyncio.Future[None]"


class Crowd:
    """They may be hundreds: the flight knows them as one, and one timer ends the waiting that takes too long.

    It is the event loop's: only `_land` may be called from elsewhere.
    """

    __slots__ = ("__weakref__", "_ends_at", "_timer", "_waiting", "flight", "landed", "loop")

    def __init__(self, flight: Flight, loop: asyncio.AbstractEventLoop) -> None:
        self.flight = flight
        self.loop = loop
        # Who waits, and until when: in one, so that an exception out of nowhere (a signal's, say) leaves no half of it.
        self._waiting: dict[Waiting, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ends_at = 0.0
        #: What came of it, once it has landed: who was woken because he is due may find it, too.
        self.landed: Landed | None = None
        if (landed := flight.join(_landing(weakref.ref(self)))) is not None:
            self.landed = landed

    def wait(self, due: float) -> Waiting:
        """What is done when it has landed, or else when that is due on the loop's clock."""
        waiting: Waiting = self.loop.create_future()
        self._waiting[waiting] = due
        # Earlier than the first is who has waited for another answer before.
        if self._timer is None or due < self._ends_at:
            self._end_at(due)
        return waiting

    def _land(self, landed: Landed) -> None:
        """Takes what came of it. Called anywhere: in another thread, or by the garbage collector in the midst of this.

        It collects a leader whose event loop was closed over him, say.
        """
        self.landed = landed
        is_here = asyncio._get_running_loop() is self.loop
        with suppress(RuntimeError):
            # An event loop that has ended has nobody who waits.
            (self.loop.call_soon if is_here else self.loop.call_soon_threadsafe)(self._wake)

    def _wake(self) -> None:
        self._stop_timer()
        waiting, self._waiting = self._waiting, {}
        for one in waiting:
            if not one.done():
                one.set_result(None)

    def _end(self) -> None:
        """Ends the waiting of those who have waited long enough."""
        now = self.loop.time()
        waiting, self._waiting, self._timer = self._waiting, {}, None
        for one, due in waiting.items():
            if one.done():
                continue
            if due > now:
                self._waiting[one] = due
            else:
                one.set_result(None)
        if self._waiting:
            self._end_at(min(self._waiting.values()))

    def _end_at(self, due: float) -> None:
        self._stop_timer()
        self._ends_at = due
        self._timer = self.loop.call_at(due, self._end)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _landing(crowd: weakref.ref[Crowd]) -> Callable[[Landed], None]:
    """What a flight calls.

    The timer of those who wait has hold of them. Had the flight, too, nobody would ever collect those whose event loop
    has ended before it landed: what is native the collector does not look into.
    """

    def land(landed: Landed) -> None:
        if (those := crowd()) is not None:
            those._land(landed)

    return land
