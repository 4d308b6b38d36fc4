"""Circuit breakers by key: what groups have in common, local or shared, of sync code and of `asyncio`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Generic, Literal, Protocol, TypeVar, overload

from switchgear._events import Emitter
from switchgear._members import Members
from switchgear._types import CallEvent, CallEventName, StateChange
from switchgear._uncopied import Uncopied


class Named(Protocol):
    """A breaker."""

    @property
    def name(self) -> str:
        """The circuit's."""


B = TypeVar("B", bound=Named)


class Keyed(Uncopied, Generic[B]):
    """One breaker per key, of one policy.

    Args:
        prefix: What the names of the circuits begin with: the key comes behind it.
        max_keys: How many breakers are held at most.
        events: What all of them tell with.
        make: Makes the breaker of a circuit's name, and is told of each change whether it is closed now.

    Raises:
        ConfigError: `max_keys` is wrong.
    """

    __slots__ = ("__weakref__", "_events", "_members", "_prefix")

    def __init__(
        self,
        prefix: str,
        max_keys: int | None,
        events: Emitter,
        make: Callable[[str, Callable[[bool], None]], B],
    ) -> None:
        self._prefix = prefix
        self._events = events
        self._members: Members[B] = Members(max_keys, lambda key, note: make(f"{prefix}{key}", note))

    def for_key(self, key: str) -> B:
        """The breaker of a key, made if there is none, and now the most recently used. Asks nothing of a store.

        Args:
            key: Together with the group's name a circuit's name: 1 to 512 bytes of UTF-8 without control characters.

        Raises:
            InvalidNameError: It can be no key.
        """
        return self._members.for_key(key)

    def delete(self, key: str) -> bool:
        """Gives up the breaker of a key. Whether there was one.

        A breaker that somebody still holds goes on, on its own; a shared circuit stays in the store.

        Raises:
            InvalidNameError: It is no text.
        """
        return self._members.delete(key)

    def __len__(self) -> int:
        """How many breakers this process holds."""
        return len(self._members)

    def __contains__(self, one: object) -> bool:
        """Whether there is a breaker of this key, or this breaker. Asking is no use of it."""
        name = f"{self._prefix}{one}" if isinstance(one, str) else None
        return any(breaker is one or breaker.name == name for breaker in self)

    def __bool__(self) -> bool:
        """An empty group is a group."""
        return True

    def __iter__(self) -> Iterator[B]:
        """The breakers that this process holds, the oldest first."""
        return iter(self._members)

    @overload
    def on(self, event: Literal["state_change"], fn: Callable[[StateChange], object]) -> Callable[[], None]: ...
    @overload
    def on(self, event: CallEventName, fn: Callable[[CallEvent], object]) -> Callable[[], None]: ...
    def on(self, event: str, fn: Callable[[Any], object]) -> Callable[[], None]:
        """Listens to an event of all breakers of this process, present and future: see `CircuitBreaker.on`.

        Returns:
            A function that stops listening.

        Raises:
            TypeError: An unknown event, or a listener that cannot be called, or would have to be awaited.
        """
        return self._events.on(event, fn)
