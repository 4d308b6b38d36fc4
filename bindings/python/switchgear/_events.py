"""Who listens to what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from switchgear._awaitable import discard, must_be_awaited
from switchgear._failure_text import raised_text
from switchgear._kind import is_coroutine_function
from switchgear._log import warn_once
from switchgear._native import Loudness, Queue, describe

EVENT_NAMES: Final = ("state_change", "success", "failure", "ignored", "refused")
"""The events of breakers and groups."""


class Emitter:
    """Delivers events one after another and in order, also those of other threads and those that a listener causes.

    A listener that raises disturbs nobody and is reported once. What is no `Exception` (KeyboardInterrupt) comes
    through to the call that told the event, and what is still to be told is told by the next one.

    No lock is held while a listener runs, and no lock of Python's at all: events may come from a signal handler, or
    from the garbage collector when it closes a generator.

    Args:
        names: The events there are.
        outer: Who also hears everything: the group's listeners. A group and its breakers share one queue, so that the
            group's listeners hear everything in order.
    """

    __slots__ = ("_by_event", "_dropped", "_names", "_outer", "_queue", "loudness")

    def __init__(self, names: tuple[str, ...] = EVENT_NAMES, outer: Emitter | None = None) -> None:
        self.loudness: Loudness = Loudness() if outer is None else Loudness(outer.loudness)
        """How many listen, here and in the group, to what every single call emits."""
        self._names = names
        self._outer = outer
        # Each a dict for its single operations are atomic. Made for the first listener: most breakers of a big group
        # never have one.
        self._by_event: dict[str, dict[_Listener, bool]] = {}
        self._queue: Queue = Queue() if outer is None else outer._queue
        self._dropped: dict[str, object] = {}

    def on(self, event: str, fn: Callable[[Any], object]) -> Callable[[], None]:
        """Adds a listener; the answer removes it.

        Raises:
            TypeError: An unknown event, a listener that cannot be called, or a coroutine function: nobody would await
                it.
        """
        if event not in self._names:
            raise TypeError(f"no event is called {describe(event)}; there are {', '.join(self._names)}")
        if not callable(fn):
            raise TypeError(f"the listener of `{event}` must be callable, got {describe(fn)}")
        if is_coroutine_function(fn):
            raise TypeError(f"the listener of `{event}` is a coroutine function, which nobody would await")
        # One entry per registration: the same function may listen twice, and each answer removes its own.
        listener = _Listener(fn)
        listeners = self._by_event.setdefault(event, {})
        listeners[listener] = True
        volume = 1 if event in _CALL_EVENTS else 0
        self.loudness.add(volume)

        def off() -> None:
            if listeners.pop(listener, False):
                self.loudness.add(-volume)

        return off

    def hears(self, event: str) -> bool:
        """Whether anybody listens to an event: if not, it need not be put together."""
        return bool(self._by_event.get(event)) or (self._outer is not None and self._outer.hears(event))

    def emit(self, event: str, payload: object) -> None:
        """Tells everybody who listens, after the events that are being told right now."""
        if self.hears(event) and not self._put(lambda: self.tell(event, payload), droppable=event in _CALLS):
            text = f"the listeners of `{event}` take longer than the calls they hear of: some events were dropped"
            warn_once(self._dropped, "dropped", text)

    def later(self, tell: Callable[[], object]) -> None:
        """Calls a function after the events that are being told right now, and before those that come later."""
        self._put(tell, droppable=False)

    def _put(self, tell: Callable[[], object], *, droppable: bool) -> bool:
        fits = self._queue.push(tell, droppable)
        # Again if something came between the last look and the end of our turn, when its bringer saw us still at it.
        # Not if our time is up: what is left is told by the next who brings something, and there are many then.
        while (turn := self._queue.begin()) is not None:
            try:
                for waiting in turn:
                    waiting()
            finally:
                has_told_all = turn.end()
            if not has_told_all:
                break
        return fits

    def tell(self, event: str, payload: object) -> None:
        """Tells everybody who listens, at once: for what `later` calls."""
        for listener in list(self._by_event.get(event, ())):
            listener.tell(event, payload)
        if self._outer is not None:
            self._outer.tell(event, payload)


class _Listener:
    """One registration."""

    __slots__ = ("_fn", "_told")

    def __init__(self, fn: Callable[[Any], object]) -> None:
        self._fn = fn
        self._told: dict[str, object] = {}

    def tell(self, event: str, payload: object) -> None:
        try:
            answer = self._fn(payload)
            if not must_be_awaited(answer):
                return
            discard(answer)
            fault = "gave something that has to be awaited, which nobody does"
        except Exception as error:  # noqa: BLE001 - a listener harms nothing
            fault = f"raised {raised_text(error)}"
        warn_once(self._told, event, f"a listener of `{event}` {fault}")


# What a call that was let through emits; refusals are told without being asked for at the start of a call.
_CALL_EVENTS = frozenset({"success", "failure", "ignored"})

# What may be dropped if it is too much: there is another one with the next call.
_CALLS = _CALL_EVENTS | {"refused"}
