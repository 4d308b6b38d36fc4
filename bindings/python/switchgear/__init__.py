"""Circuit breakers for processes and fleets.

Breakers that live in this process, and the types and errors that all breakers share. Those that a whole fleet shares
are in `switchgear.redis` and `switchgear.redis.asyncio`.
"""

from switchgear._breaker import CircuitBreaker
from switchgear._error import (
    CallTimeoutError,
    CircuitOpenError,
    ConfigError,
    InvalidNameError,
    InvalidTimeError,
    Refusal,
    StoreError,
    StoreUnavailableError,
    SwitchgearError,
)
from switchgear._group import CircuitBreakerGroup
from switchgear._native import Permit, __version__
from switchgear._state import CircuitBreakerState, StatePermit
from switchgear._types import (
    AsyncBreaker,
    Breaker,
    CallEvent,
    GroupPolicy,
    Mode,
    Policy,
    Reason,
    Settled,
    Snapshot,
    State,
    StateChange,
    TripOn,
)

__all__ = [
    "AsyncBreaker",
    "Breaker",
    "CallEvent",
    "CallTimeoutError",
    "CircuitBreaker",
    "CircuitBreakerGroup",
    "CircuitBreakerState",
    "CircuitOpenError",
    "ConfigError",
    "GroupPolicy",
    "InvalidNameError",
    "InvalidTimeError",
    "Mode",
    "Permit",
    "Policy",
    "Reason",
    "Refusal",
    "Settled",
    "Snapshot",
    "State",
    "StateChange",
    "StatePermit",
    "StoreError",
    "StoreUnavailableError",
    "SwitchgearError",
    "TripOn",
    "__version__",
]
