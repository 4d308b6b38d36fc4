"""Circuits that a whole fleet shares, in Redis or Valkey, for `asyncio`. For sync code: `switchgear.redis`.

Needs a client: `pip install "switchgear[redis]"`. Nothing is imported of it, and nothing sent, before a circuit is
asked.
"""

from switchgear._permit import AsyncPermit
from switchgear.redis._async_breaker import DistributedCircuitBreaker
from switchgear.redis._async_group import DistributedCircuitBreakerGroup
from switchgear.redis._async_store import RedisStore
from switchgear.redis._awaiting_steering import CircuitControl
from switchgear.redis._clients import AsyncCommands
from switchgear.redis._link import StoreEvent
from switchgear.redis._listing import ListedCircuit
from switchgear.redis._shared import SharedPolicy

__all__ = [
    "AsyncCommands",
    "AsyncPermit",
    "CircuitControl",
    "DistributedCircuitBreaker",
    "DistributedCircuitBreakerGroup",
    "ListedCircuit",
    "RedisStore",
    "SharedPolicy",
    "StoreEvent",
]

for _class in (
    AsyncCommands,
    CircuitControl,
    DistributedCircuitBreaker,
    DistributedCircuitBreakerGroup,
    RedisStore,
):
    # Where users find them, and what tracebacks are to say.
    _class.__module__ = __name__
del _class
