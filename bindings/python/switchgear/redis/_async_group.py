"""Shared circuit breakers by key, for `asyncio`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

from switchgear._config import checked_name
from switchgear._events import Emitter
from switchgear._members import Members
from switchgear._types import CallEvent, CallEventName, StateChange
from switchgear._uncopied import Uncopied
from switchgear.redis._async_breaker import DistributedCircuitBreaker
from switchgear.redis._async_store import RedisStore
from switchgear.redis._awaiting_circuit import AwaitingCircuit
from switchgear.redis._shared import PreparedSharedPolicy
from switchgear.redis._store import checked_store

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from switchgear.redis._shared import SharedPolicy


class DistributedCircuitBreakerGroup(Uncopied):
    """One shared breaker per key (host, tenant, partition), of one policy. The circuit of a key is called `name:key`.

    This process holds at most `max_keys` of them: a new key takes the place of the least recently used closed one, and
    only if none is closed that of the least recently used one. What goes is the object alone: the circuit stays in the
    store, and its next breaker finds it there.

    Args:
        name: What the names of its circuits begin with.
        store: Where the circuits are kept.
        max_keys: How many breakers the group holds at most, 1 to 1 000 000; by default 1024.
        **policy: How each breaker behaves, see `SharedPolicy`.

    Raises:
        InvalidNameError: The name cannot name a circuit.
        ConfigError: Names the option, the value and what is valid.
        InvalidTimeError: The policy's clock gives no time.
        TypeError: The store is none, or one for sync code.
    """

    __slots__ = ("__weakref__", "_events", "_members", "_name")

    def __init__(
        self, name: str, store: RedisStore, *, max_keys: int | None = None, **policy: Unpack[SharedPolicy]
    ) -> None:
        self._name = checked_name(name)
        link = checked_store(store, RedisStore, "DistributedCircuitBreakerGroup")
        self._events = Emitter()
        prepared = PreparedSharedPolicy.of(policy, self._events)

        def make(key: str, note: Callable[[bool], None]) -> DistributedCircuitBreaker:
            return DistributedCircuitBreaker._of(AwaitingCircuit(f"{name}:{key}", link, prepared, note))

        self._members: Members[DistributedCircuitBreaker] = Members(max_keys, make)

    @property
    def name(self) -> str:
        """What the names of its circuits begin with."""
        return self._name

    def for_key(self, key: str) -> DistributedCircuitBreaker:
        """The breaker of a key, made if there is none, and now the most recently used. Asks nothing of the store.

        Args:
            key: `name:key` is the circuit's name: 1 to 512 bytes of UTF-8 without control characters.

        Raises:
            InvalidNameError: It can be no key.
        """
        return self._members.for_key(key)

    def delete(self, key: str) -> bool:
        """Gives up the breaker of a key; the circuit stays in the store. Whether there was one.

        Raises:
            InvalidNameError: It is no text.
        """
        return self._members.delete(key)

    def __len__(self) -> int:
        """How many breakers this process holds."""
        return len(self._members)

    def __contains__(self, one: object) -> bool:
        """Whether there is a breaker of this key, or this breaker. Asking is no use of it."""
        name = f"{self._name}:{one}" if isinstance(one, str) else None
        return any(breaker is one or breaker.name == name for breaker in self)

    def __bool__(self) -> bool:
        """An empty group is a group."""
        return True

    def __iter__(self) -> Iterator[DistributedCircuitBreaker]:
        """The breakers that this process holds, the oldest first."""
        return iter(self._members)

    @overload
    def on(self, event: Literal["state_change"], fn: Callable[[StateChange], object]) -> Callable[[], None]: ...
    @overload
    def on(self, event: CallEventName, fn: Callable[[CallEvent], object]) -> Callable[[], None]: ...
    def on(self, event: str, fn: Callable[[Any], object]) -> Callable[[], None]:
        """Listens to an event of all breakers of this process, present and future: see `DistributedCircuitBreaker.on`.

        Returns:
            A function that stops listening.

        Raises:
            TypeError: An unknown event, or a listener that cannot be called, or would have to be awaited.
        """
        return self._events.on(event, fn)

    def __repr__(self) -> str:
        return f"<DistributedCircuitBreakerGroup {self.name!r} of {len(self)}>"
