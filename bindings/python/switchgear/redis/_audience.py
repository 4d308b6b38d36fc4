"""Who is told of what other instances announce: the circuits of one store, by name, as long as somebody has them."""

from __future__ import annotations

import weakref
from functools import partial
from typing import Protocol

from switchgear._native import Announcement


class Listener(Protocol):
    """A circuit that may be told."""

    @property
    def name(self) -> str:
        """The circuit's."""

    def heard(self, announcement: Announcement) -> None:
        """Takes what an instance has announced of it."""


class Audience:
    """The circuits of one store. Without a lock: the collector may take one out, in whatever a thread is doing."""

    def __init__(self) -> None:
        # Only single operations of each dict, which are atomic.
        self._by_name: dict[str, dict[weakref.ref[Listener], bool]] = {}

    def add(self, listener: Listener) -> None:
        """Tells a circuit from now on."""
        self._add(listener.name, weakref.ref(listener, partial(self._gone, listener.name)))

    def tell(self, announcement: Announcement) -> None:
        """Tells the circuits that it is about."""
        for ref in list(self._by_name.get(announcement.circuit, ())):
            listener = ref()
            if listener is not None:
                listener.heard(announcement)

    def _add(self, name: str, ref: weakref.ref[Listener]) -> None:
        while True:
            named = self._by_name.setdefault(name, {})
            named[ref] = True
            # Else it was taken away as empty meanwhile.
            if self._by_name.get(name) is named:
                return

    def _gone(self, name: str, ref: weakref.ref[Listener]) -> None:
        named = self._by_name.get(name)
        if named is None:
            return
        named.pop(ref, None)
        if named:
            return
        # Whoever came between the last look and the end of it comes again.
        for late in list(self._by_name.pop(name, ())):
            self._add(name, late)
            if late() is None:
                self._gone(name, late)
