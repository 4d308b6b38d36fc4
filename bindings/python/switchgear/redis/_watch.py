"""Sees to it that something is done when a deadline has passed.

Most of all that no exchange takes longer than it may, however the server drips its reply: what waits for one piece of
it is bounded by the socket; this bounds them all together.
"""

from __future__ import annotations

import itertools
import math
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial


class Watch:
    """Waits for deadlines. One thread watches all of one store in one process; what it does must not take long."""

    def __init__(self) -> None:
        self._keys = itertools.count()
        # Single operations of a dict are atomic: who takes an entry out first has it.
        self._running: dict[int, tuple[float, Callable[[], object]]] = {}
        # Held while the thread may sleep. No event, whose own lock may be held for ever in a process that was forked
        # meanwhile, and by the very code that a signal handler has interrupted.
        self._asleep = threading.Lock()
        self._asleep.acquire()
        # When the thread looks again, on `time.monotonic()`: what is due before has to rouse it.
        self._looks_at = math.inf
        self._ended = False
        self._thread: threading.Thread | None = None

    def begin(self, sock: socket.socket, deadline: float) -> int:
        """An exchange begins that is to end by the deadline (`time.monotonic()`). What to `end` it with."""
        return self.await_end(deadline, partial(_cut_off, sock))

    def await_end(self, deadline: float, overdue: Callable[[], object]) -> int:
        """Something begins; if it has not ended by the deadline (`time.monotonic()`), a function is called."""
        key = next(self._keys)
        self._running[key] = (deadline, overdue)
        if deadline < self._looks_at:
            self._rouse(deadline)
        return key

    def end(self, key: int) -> bool:
        """It has ended. Whether it was in time; if not, its connection was cut off, or the function called."""
        return self._running.pop(key, None) is not None

    def stop(self) -> None:
        """Nothing begins any more."""
        self._ended = True
        self._wake()

    def _rouse(self, deadline: float) -> None:
        try:
            # Whoever comes before it has woken need not rouse it as well.
            self._looks_at = deadline
            self._wake()
            if self._thread is None and not sys.is_finalizing():
                # Of two threads that both get here each makes one; both watch, which does no harm.
                self._thread = threading.Thread(target=self._run, name="switchgear-watch", daemon=True)
                self._thread.start()
        except BaseException as error:
            # No thread can be made, or this one is interrupted: whoever comes next tries again.
            if self._thread is not None and not self._thread.is_alive():
                self._thread = None
            self._looks_at = math.inf
            self._wake()
            if not isinstance(error, RuntimeError):
                raise

    def _wake(self) -> None:
        if self._asleep.locked():
            with suppress(RuntimeError):
                # Unless another thread has done so since.
                self._asleep.release()

    def _run(self) -> None:
        while not self._ended:
            now = time.monotonic()
            for key, (due, overdue) in list(self._running.items()):
                if due <= now and self.end(key):
                    # Whatever comes of one, the others are watched on.
                    with suppress(Exception):
                        overdue()
            # What it was roused for is over already, as a rule. It waits until that would have been due all the same:
            # else each exchange of a busy process would rouse it, which costs more than the exchange.
            roused_for = self._looks_at
            self._looks_at = at = self._next_due(roused_for if roused_for > now else math.inf)
            # What has begun meanwhile may have seen the time that stood there before.
            if self._next_due(at) < at:
                continue
            self._asleep.acquire(timeout=-1 if at == math.inf else max(0.0, at - time.monotonic()))
        # There may be a second one.
        self._wake()

    def _next_due(self, otherwise: float) -> float:
        """When the first of what is running is due."""
        return min((due for due, _ in list(self._running.values())), default=otherwise)


def _cut_off(sock: socket.socket) -> None:
    with suppress(OSError):
        # Under the layer of TLS, if there is one: its reader must not see it half-closed.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
