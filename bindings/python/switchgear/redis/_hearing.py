"""Hears what other instances announce, over a connection of its own: what sync code and `asyncio` have in common.

A message that is lost makes no answer wrong, only as old as without it. So what goes wrong here is told as
`store_error`, tried again, and otherwise nobody's concern: whether the store is asked does not depend on it.
"""

from __future__ import annotations

import os
import random
import weakref
from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from switchgear._error import StoreError
from switchgear._native import Announcement, event_channel
from switchgear.redis._audience import Audience
from switchgear.redis._replies import error_text

HANDSHAKE_SECONDS = 5.0
"""How long a connection may take to be made, and a message to come whole once it has begun."""

SILENCE_SECONDS = 15.0
"""After how much silence a connection is asked whether it is still there; as long as that it may take to answer."""

NO_ANSWER = f"no answer within {SILENCE_SECONDS:.0f} s"
"""What went wrong if it does not."""


class Session(Protocol):
    """What hears, until it is stopped or its thread or event loop is no more."""

    pid: int
    """The process that it is of."""

    def lives(self) -> bool:
        """Whether it goes on hearing, or trying to."""

    def stop(self) -> None:
        """Ends it. Waits for nothing: the garbage collector may ask for it, anywhere."""

    def abandon(self) -> None:
        """Lets go of what a child of its process has inherited of it, and leaves its process alone."""


S = TypeVar("S", bound=Session)


class Hearing(Generic[S]):
    """Keeps one session going in each process that uses the store, until the store is closed or forgotten.

    Args:
        begin: Begins one; none where that is not possible now. It must not know this object.
    """

    def __init__(self, begin: Callable[[], S | None]) -> None:
        self._begin = begin
        self._session: S | None = None
        self._end: weakref.finalize[Any, Any] | None = None
        # Single operations of a dict are atomic: of two threads that want to begin one, one does. By process, for a
        # fork may leave a claim behind.
        self._claims: dict[int, object] = {}
        self._closed = False

    def ensure(self) -> None:
        """Sees to it that there is one in this process. Raises nothing."""
        here = self._session
        pid = os.getpid()
        if self._is_closed() or (here is not None and here.pid == pid and here.lives()):
            return
        ours = object()
        if self._claims.setdefault(pid, ours) is not ours:
            return
        try:
            if self._session is not here or (session := self._begin()) is None:
                return
            if self._end is not None:
                self._end.detach()
            self._end = weakref.finalize(self, session.stop)
            # Nothing of it keeps a process alive, so nothing has to be done for its end.
            self._end.atexit = False
            self._session = session
        finally:
            self._claims.pop(pid, None)
        if here is not None and here.pid != pid:
            here.abandon()
        if self._is_closed():
            # By another thread, meanwhile.
            session.stop()

    def close(self) -> S | None:
        """Ends it for good. What there was to end, in this process."""
        self._closed = True
        here = self._session
        if here is None or here.pid != os.getpid():
            return None
        here.stop()
        return here

    def _is_closed(self) -> bool:
        return self._closed


class Ears:
    """What is done with what comes, and with what goes wrong meanwhile.

    Args:
        prefix: The store's.
        audience: Who is told.
        failed: Told of what went wrong.
    """

    def __init__(self, prefix: str, audience: Audience, failed: Callable[[StoreError], object]) -> None:
        self.channel = event_channel(prefix)
        self._audience = audience
        self._failed = failed

    def take(self, reply: object) -> bool:
        """Takes what came over the connection. Whether it says that from now on we hear everything."""
        if not isinstance(reply, (list, tuple)) or len(reply) < 3:
            # The answer to whether it is still there, say.
            return False
        kind, channel, content = reply[:3]
        if channel != self.channel.encode():
            return False
        if kind == b"message" and isinstance(content, bytes):
            announcement = Announcement.parse(content)
            if announcement is not None:
                self._audience.tell(announcement)
        return bool(kind == b"subscribe")

    def failed(self, error: BaseException) -> None:
        """Tells what went wrong."""
        self._failed(StoreError(f"events are not heard: {error_text(error)}"))


class Pauses:
    """How long to wait before the next attempt."""

    def __init__(self) -> None:
        self._longest = _FIRST_PAUSE_SECONDS

    def next(self) -> float:
        """Seconds: longer each time, and never as long as those of others who lost the same server."""
        longest = self._longest
        self._longest = min(2 * longest, _LONGEST_PAUSE_SECONDS)
        return longest * random.uniform(0.5, 1)  # noqa: S311 - no secret

    def over(self) -> None:
        """An attempt went well."""
        self._longest = _FIRST_PAUSE_SECONDS


_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0


class Turns:
    """Which of a cluster's nodes to listen to: each tells everything, so after a failure it is the next one's turn."""

    def __init__(self) -> None:
        self._next = random.randrange(_MANY)  # noqa: S311 - no secret

    def pick(self, nodes: list[Any]) -> Any:
        """The next of these nodes."""
        if not nodes:
            raise StoreError("the client knows no node of the cluster")
        self._next += 1
        return nodes[self._next % len(nodes)]


_MANY = 1 << 16
