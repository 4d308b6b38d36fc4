"""Circuit breakers by key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Literal, overload

from switchgear._breaker import CircuitBreaker
from switchgear._clock import check_clock
from switchgear._config import GROUP_POLICY, checked_name, read_policy
from switchgear._events import Emitter
from switchgear._local import LocalCircuit, PreparedPolicy
from switchgear._members import Members
from switchgear._types import CallEvent, CallEventName, StateChange
from switchgear._uncopied import Uncopied

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from switchgear._types import Policy


class CircuitBreakerGroup(Uncopied):
    """One breaker per key (host, tenant, route), of one policy.

    It holds at most `max_keys` of them: a new key takes the place of the least recently used closed breaker, whose
    state is the least to lose, and only if none is closed that of the least recently used one.

    Args:
        name: Comes before each key in the name of its circuit: `name:key`. By default the key alone is the name.
        max_keys: How many breakers the group holds at most, 1 to 1 000 000; by default 1024.
        **policy: How each breaker behaves, see `Policy`.

    Raises:
        ConfigError: Names the option, the value and what is valid.
        InvalidNameError: The name cannot name a circuit.
        InvalidTimeError: The policy's clock gives no time.

    Example:
        ```python
        from switchgear import CircuitBreakerGroup

        per_host = CircuitBreakerGroup(failure_threshold=3, max_keys=1024)
        assert per_host.for_key("api.example.com").execute(lambda: "delivered") == "delivered"
        ```
    """

    __slots__ = ("__weakref__", "_events", "_members", "_prefix")

    def __init__(self, *, name: str | None = None, max_keys: int | None = None, **policy: Unpack[Policy]) -> None:
        read = read_policy([policy], GROUP_POLICY)
        check_clock(read.host.clock)
        prefix = self._prefix = "" if name is None else f"{checked_name(name)}:"
        self._events = Emitter()
        prepared = PreparedPolicy(read.config, read.host, self._events)

        def make(key: str, note: Callable[[bool], None]) -> CircuitBreaker:
            return CircuitBreaker._of(LocalCircuit(checked_name(prefix + key), prepared, note))

        self._members: Members[CircuitBreaker] = Members(max_keys, make)

    def for_key(self, key: str) -> CircuitBreaker:
        """The breaker of a key, made if there is none, and now the most recently used.

        Args:
            key: Together with the group's name a circuit's name: 1 to 512 bytes of UTF-8 without control characters.

        Raises:
            InvalidNameError: It can be no key.
        """
        return self._members.for_key(key)

    def delete(self, key: str) -> bool:
        """Forgets a key. Whether there was one. A breaker that somebody still holds goes on, on its own.

        Raises:
            InvalidNameError: It is no text.
        """
        return self._members.delete(key)

    def __len__(self) -> int:
        """How many breakers there are."""
        return len(self._members)

    def __contains__(self, one: object) -> bool:
        """Whether there is a breaker of this key, or this breaker. Asking is no use of it."""
        name = f"{self._prefix}{one}" if isinstance(one, str) else None
        return any(breaker is one or breaker.name == name for breaker in self)

    def __bool__(self) -> bool:
        """An empty group is a group."""
        return True

    def __iter__(self) -> Iterator[CircuitBreaker]:
        """The breakers, the oldest first."""
        return iter(self._members)

    @overload
    def on(self, event: Literal["state_change"], fn: Callable[[StateChange], object]) -> Callable[[], None]: ...
    @overload
    def on(self, event: CallEventName, fn: Callable[[CallEvent], object]) -> Callable[[], None]: ...
    def on(self, event: str, fn: Callable[[Any], object]) -> Callable[[], None]:
        """Listens to an event of all breakers, present and future: see `CircuitBreaker.on`.

        Returns:
            A function that stops listening.

        Raises:
            TypeError: An unknown event, or a listener that cannot be called, or would have to be awaited.
        """
        return self._events.on(event, fn)

    def __repr__(self) -> str:
        return f"<CircuitBreakerGroup of {len(self)}>"
