"""Sees to it that something is done when a deadline has passed.

Most of all that no exchange takes longer than it may, however the server drips its reply: what waits for one piece of
it is bounded by the socket; this bounds them all together.
"""

from __future__ import annotations

import itertools
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
        self._wake = threading.Event()
        self._asleep = True
        self._ended = False
        self._thread: threading.Thread | None = None

    def begin(self, sock: socket.socket, deadline: float) -> int:
        """An exchange begins that is to end by the deadline (`time.monotonic()`). What to `end` it with."""
        return self.await_end(deadline, partial(_cut_off, sock))

    def await_end(self, deadline: float, overdue: Callable[[], object]) -> int:
        """Something begins; if it has not ended by the deadline (`time.monotonic()`), a function is called."""
        key = next(self._keys)
        self._running[key] = (deadline, overdue)
        if self._asleep:
            self._rouse()
        return key

    def end(self, key: int) -> bool:
        """It has ended. Whether it was in time; if not, its connection was cut off, or the function called."""
        return self._running.pop(key, None) is not None

    def stop(self) -> None:
        """Nothing begins any more."""
        self._ended = True
        self._wake.set()

    def _rouse(self) -> None:
        self._wake.set()
        if self._thread is None and not sys.is_finalizing():
            # Of two threads that both get here each makes one; both watch, which does no harm.
            self._thread = threading.Thread(target=self._run, name="switchgear-watch", daemon=True)
            with suppress(RuntimeError):
                self._thread.start()

    def _run(self) -> None:
        while not self._ended:
            running = list(self._running.items())
            if not running:
                self._asleep = True
                if not self._running and not self._ended:
                    self._wake.wait()
                self._asleep = False
                self._wake.clear()
                continue
            # All are given the same time, so that whatever begins meanwhile is due later.
            delay = min(due for _, (due, _) in running) - time.monotonic()
            if delay > 0:
                if self._wake.wait(delay):
                    self._wake.clear()
                continue
            for key, (due, overdue) in running:
                if due <= time.monotonic() and self.end(key):
                    overdue()


def _cut_off(sock: socket.socket) -> None:
    with suppress(OSError):
        # Under the layer of TLS, if there is one: its reader must not see it half-closed.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
