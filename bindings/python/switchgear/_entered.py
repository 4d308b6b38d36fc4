"""Which permit a `with` block runs under.

A breaker is one object, and many blocks are under it at once: in threads, in tasks, in recursion, in generators that
are resumed in any order and by any thread. What tells them apart is the frame that a block is in.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, ExitStack
from types import FrameType
from typing import Generic, NamedTuple, TypeVar

P = TypeVar("P")


class Entered(Generic[P]):
    """The permits of the blocks that are under one shared breaker; local ones have the native `Scope` for theirs."""

    __slots__ = ("_by_frame", "_indirect")

    def __init__(self) -> None:
        # Operations on one key are not at odds with each other, for a frame runs on one thread at a time; and single
        # operations of a dict are atomic.
        self._by_frame: dict[FrameType, P | _Nested[P]] = {}
        self._indirect: Indirect[P] = Indirect()

    def enter(self, frame: FrameType, permit: P) -> None:
        """Notes the permit of a block that begins.

        Args:
            frame: The one that called `__enter__` or `__aenter__`.
            permit: What the block runs under.
        """
        if frame.f_code.co_name in _INDIRECT:
            self._indirect.enter(frame, permit)
            return
        before = self._by_frame.setdefault(frame, permit)
        if before is not permit:
            self._by_frame[frame] = _Nested((*(before if isinstance(before, _Nested) else (before,)), permit))

    def leave(self, frame: FrameType) -> P:
        """Takes out the permit of a block that ends.

        Raises:
            RuntimeError: No block that is not over was entered.
        """
        permit = self._take(frame)
        return self._indirect.leave(frame, self._by_frame, self._take) if permit is None else permit

    def _take(self, frame: FrameType) -> P | None:
        permit = self._by_frame.pop(frame, None)
        if not isinstance(permit, _Nested):
            return permit
        *outer, inner = permit
        self._by_frame[frame] = outer[0] if len(outer) == 1 else _Nested(outer)
        return inner


class Indirect(Generic[P]):
    """The permits of blocks whose frame is not the one that entered: of what is over by the end of the block."""

    __slots__ = ("_by_runner",)

    def __init__(self) -> None:
        # By thread or task.
        self._by_runner: dict[object, list[tuple[_Entry, P]]] = {}

    def enter(self, frame: FrameType | None, permit: P) -> None:
        """Notes the permit of a block that begins."""
        self._by_runner.setdefault(_runner(), []).append((_Entry.of(frame), permit))

    def leave(self, frame: FrameType | None, direct: Iterable[FrameType], take: Callable[[FrameType], P | None]) -> P:
        """Takes out the permit of a block that ends.

        Args:
            frame: The one that called `__exit__`.
            direct: The frames that entered blocks of their own, the oldest first.
            take: Takes out the permit of one of those.

        Raises:
            RuntimeError: No block that is not over was entered.
        """
        leaving = _Entry.of(frame)
        # First the runner's own; an ExitStack may also have been handed to another one.
        for key in (_runner(), *self._by_runner):
            entries = self._by_runner.get(key)
            if not entries:
                continue
            at = max(range(len(entries)), key=lambda at: (leaving.fits(entries[at][0]), at))
            _, permit = entries.pop(at)
            if not entries:
                self._by_runner.pop(key, None)
            return permit
        # Called by hand, in another function than `__enter__` was: the newest whose function is over, one of the same
        # object if there is one.
        running = _running()
        over = [e for e in direct if e not in running and not e.f_code.co_flags & _RESUMABLE]
        found = None
        if over:
            at = max(range(len(over)), key=lambda at: (leaving.fits(_Entry.of(over[at])), at))
            found = take(over[at])
        if found is None:
            raise RuntimeError("the breaker's block ends, but none of them was entered and is not over")
        return found


class _Entry(NamedTuple):
    """Where a block was entered, or is left."""

    frame: FrameType | None
    owner: object
    """Whose method did it: the ExitStack, or whatever has the breaker for a part."""
    outer: FrameType | None
    """The first frame that is no such method: the one that the block is in, if it is in one."""

    @classmethod
    def of(cls, frame: FrameType | None) -> _Entry:
        outer = frame
        while outer is not None and outer.f_code.co_name in _METHODS:
            outer = outer.f_back
        return cls(frame, _owner(frame), outer)

    def fits(self, entered: _Entry) -> int:
        """How well this end fits a beginning.

        Best is the very frame, for a function called `__enter__` may have a block of its own; then the same object in
        the same frame, for one may be in use in several; then the same object; then the same frame.
        """
        if self.frame is not None and self.frame is entered.frame:
            return 4
        is_owner = self.owner is not None and self.owner is entered.owner
        is_outer = self.outer is not None and self.outer is entered.outer
        return (2 if is_owner else 0) + (1 if is_outer else 0)


class _Nested(tuple[P, ...]):
    """The permits of blocks within blocks of one frame, the innermost last."""

    __slots__ = ()


# As in the native `Scope`: `ExitStack.enter_context` and its async sibling; and the same method of a class that has the
# breaker for a part or a base.
_INDIRECT = frozenset({"enter_context", "enter_async_context", "__enter__", "__aenter__"})

# The same at the end of a block.
_METHODS = _INDIRECT | {"__exit__", "__aexit__", "close", "aclose"}

_CO_GENERATOR, _CO_COROUTINE, _CO_ASYNC_GENERATOR = 0x20, 0x80, 0x200
_RESUMABLE = _CO_GENERATOR | _CO_COROUTINE | _CO_ASYNC_GENERATOR


def _owner(frame: FrameType | None) -> object:
    """Whose method a frame runs: what its first argument is."""
    if frame is None or frame.f_code.co_argcount == 0:
        return None
    owner = frame.f_locals.get(frame.f_code.co_varnames[0])
    # An ExitStack hands on what it has to `pop_all`'s, this included.
    return getattr(owner, "_exit_callbacks", owner) if isinstance(owner, (ExitStack, AsyncExitStack)) else owner


def _runner() -> object:
    """Who runs this: the task, or else the thread."""
    # A program that has not imported asyncio has no task.
    asyncio = sys.modules.get("asyncio")
    if asyncio is not None:
        try:
            task = asyncio.current_task()
        except RuntimeError:
            task = None
        if task is not None:
            return task
    return threading.get_ident()


def _running() -> set[FrameType]:
    """All frames that run at this moment, on any thread."""
    frames: set[FrameType] = set()
    for top in sys._current_frames().values():
        frame: FrameType | None = top
        while frame is not None:
            frames.add(frame)
            frame = frame.f_back
    return frames
