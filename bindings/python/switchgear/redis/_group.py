"""Shared circuit breakers by key."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from switchgear._config import checked_name
from switchgear._events import Emitter
from switchgear.redis._blocking_circuit import BlockingCircuit
from switchgear.redis._breaker import DistributedCircuitBreaker
from switchgear.redis._keyed import SharedKeyed
from switchgear.redis._shared import PreparedSharedPolicy
from switchgear.redis._store import RedisStore, checked_store

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from switchgear.redis._shared import SharedPolicy


class DistributedCircuitBreakerGroup(SharedKeyed[DistributedCircuitBreaker]):
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
        TypeError: The store is none, or one for `asyncio`.
    """

    __slots__ = ()

    def __init__(
        self, name: str, store: RedisStore, *, max_keys: int | None = None, **policy: Unpack[SharedPolicy]
    ) -> None:
        checked_name(name)
        link = checked_store(store, RedisStore, "DistributedCircuitBreakerGroup")
        events = Emitter()
        prepared = PreparedSharedPolicy.of(policy, events, awaited=False)

        def make(circuit: str, note: Callable[[bool], None]) -> DistributedCircuitBreaker:
            return DistributedCircuitBreaker._of(BlockingCircuit(circuit, link, prepared, note))

        super().__init__(f"{name}:", max_keys, events, make)
