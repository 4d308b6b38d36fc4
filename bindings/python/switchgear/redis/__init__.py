"""Circuits that a whole fleet shares, in Redis or Valkey, for sync code. For `asyncio`: `switchgear.redis.asyncio`.

Needs a client: `pip install "switchgear[redis]"`. Nothing is imported of it, and nothing sent, before a circuit is
asked.
"""

from switchgear._permit import SharedPermit
from switchgear.redis._blocking_steering import CircuitControl
from switchgear.redis._breaker import DistributedCircuitBreaker
from switchgear.redis._clients import Commands
from switchgear.redis._group import DistributedCircuitBreakerGroup
from switchgear.redis._link import StoreEvent
from switchgear.redis._listing import ListedCircuit
from switchgear.redis._shared import SharedPolicy
from switchgear.redis._store import RedisStore

__all__ = [
    "CircuitControl",
    "Commands",
    "DistributedCircuitBreaker",
    "DistributedCircuitBreakerGroup",
    "ListedCircuit",
    "RedisStore",
    "SharedPermit",
    "SharedPolicy",
    "StoreEvent",
]

for _class in (
    CircuitControl,
    Commands,
    DistributedCircuitBreaker,
    DistributedCircuitBreakerGroup,
    ListedCircuit,
    RedisStore,
    StoreEvent,
):
    # Where users find them, and what tracebacks are to say.
    _class.__module__ = __name__
del _class
