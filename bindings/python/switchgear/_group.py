"""Circuit breakers by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from switchgear._breaker import CircuitBreaker
from switchgear._clock import check_clock
from switchgear._config import GROUP_POLICY, checked_name, read_policy
from switchgear._events import Emitter
from switchgear._keyed import Keyed
from switchgear._local import LocalCircuit, PreparedPolicy

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from switchgear._types import Policy


class CircuitBreakerGroup(Keyed[CircuitBreaker]):
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

    __slots__ = ()

    def __init__(self, *, name: str | None = None, max_keys: int | None = None, **policy: Unpack[Policy]) -> None:
        read = read_policy([policy], GROUP_POLICY)
        check_clock(read.host.clock)
        prefix = "" if name is None else f"{checked_name(name)}:"
        events = Emitter()
        prepared = PreparedPolicy(read.config, read.host, events)

        def make(circuit: str, note: Callable[[bool], None]) -> CircuitBreaker:
            return CircuitBreaker._of(LocalCircuit(checked_name(circuit), prepared, note))

        super().__init__(prefix, max_keys, events, make)

    def __repr__(self) -> str:
        return f"<CircuitBreakerGroup of {len(self)}>"
