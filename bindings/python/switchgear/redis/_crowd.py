"""Who waits, in one event loop, for an admission that somebody else has asked for."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TypeAlias

from switchgear._native import Flight
from switchgear.redis._talk import Landed

Waiting: TypeAlias = "asyncio.Future[Landed | None]"


class Crowd:
    """They may be hundreds: the flight knows them as one, and one timer ends the waiting that takes too long.

    It is the event loop's: only `_land` may be called from elsewhere.
    """

    __slots__ = ("_dues", "_ends_at", "_landed", "_timer", "_waiting", "flight", "loop")

    def __init__(self, flight: Flight, loop: asyncio.AbstractEventLoop) -> None:
        #: What they wait for; `None` once nobody does, for it has hold of this in turn.
        self.flight: Flight | None = flight
        self.loop = loop
        # Who waits, and until when; two lists, for each call of a busy circuit comes by here.
        self._waiting: list[Waiting] = []
        self._dues: list[float] = []
        self._timer: asyncio.TimerHandle | None = None
        self._ends_at = 0.0
        self._landed = flight.join(self._land)

    def wait(self, due: float) -> Landed | Waiting:
        """What came of it, or what gives that: nothing, if it has not come when that is due on the loop's clock."""
        if self._landed is not None:
            return self._landed
        waiting: Waiting = self.loop.create_future()
        self._waiting.append(waiting)
        self._dues.append(due)
        # Earlier than the first is who has waited for another answer before.
        if self._timer is None or due < self._ends_at:
            self._end_at(due)
        return waiting

    def _land(self, landed: Landed) -> None:
        if asyncio._get_running_loop() is not self.loop:
            with suppress(RuntimeError):
                # An event loop that has ended has nobody who waits.
                self.loop.call_soon_threadsafe(self._land, landed)
            return
        self._landed, self.flight = landed, None
        self._stop_timer()
        waiting, self._waiting, self._dues = self._waiting, [], []
        for one in waiting:
            if not one.done():
                one.set_result(landed)

    def _end(self) -> None:
        """Ends the waiting of those who have waited long enough."""
        now = self.loop.time()
        waiting, dues = self._waiting, self._dues
        self._waiting, self._dues, self._timer = [], [], None
        for one, due in zip(waiting, dues, strict=True):
            if one.done():
                continue
            if due > now:
                self._waiting.append(one)
                self._dues.append(due)
            else:
                one.set_result(None)
        if self._dues:
            self._end_at(min(self._dues))
        else:
            self.flight = None

    def _end_at(self, due: float) -> None:
        self._stop_timer()
        self._ends_at = due
        self._timer = self.loop.call_at(due, self._end)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
