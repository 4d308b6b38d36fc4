"""What is measured in a Python process: switchgear beside a bare call and the libraries in requirements.txt.

Each task imports only what it measures, and gives a function that makes one call: a plain one, or one that is awaited.
Every breaker is as its library makes it without options, closed unless the task is one of refusals.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any

HOUR_S = 3600
HOUR_MS = HOUR_S * 1000

SyncCall = Callable[[], object]
AsyncCall = Callable[[], Awaitable[object]]


def healthy() -> int:
    return 42


async def healthy_async() -> int:
    return 42


def failing() -> int:
    raise OSError("ECONNREFUSED")


def bare_call() -> SyncCall:
    return healthy


def bare_await() -> AsyncCall:
    return healthy_async


def switchgear(**policy: Any) -> Any:
    from switchgear import CircuitBreaker

    return CircuitBreaker("bench", **policy)


def circuitbreaker() -> Any:
    from circuitbreaker import CircuitBreaker

    return CircuitBreaker(name="bench", recovery_timeout=HOUR_S)


def purgatory() -> Any:
    from purgatory import SyncCircuitBreakerFactory

    return SyncCircuitBreakerFactory(default_ttl=HOUR_S)


def purgatory_async() -> Any:
    from purgatory import AsyncCircuitBreakerFactory

    return AsyncCircuitBreakerFactory(default_ttl=HOUR_S)


def pybreaker() -> Any:
    from pybreaker import CircuitBreaker

    return CircuitBreaker(reset_timeout=HOUR_S)


def interlock(**options: Any) -> Any:
    from interlock import CircuitBreaker

    return CircuitBreaker(name="bench", **options)


def executed(breaker: Any) -> SyncCall:
    return partial(breaker.execute, healthy)


def executed_async(breaker: Any) -> AsyncCall:
    return partial(breaker.execute_async, healthy_async)


def entered(breaker: Any) -> SyncCall:
    def call() -> int:
        with breaker:
            return healthy()

    return call


def entered_async(breaker: Any) -> AsyncCall:
    async def call() -> int:
        async with breaker:
            return await healthy_async()

    return call


def entered_pybreaker() -> SyncCall:
    breaker = pybreaker()

    def call() -> int:
        with breaker.calling():
            return healthy()

    return call


def entered_purgatory_async() -> AsyncCall:
    factory = purgatory_async()

    # Its breaker is had from the factory by an await: that is how its documentation writes it, for every call.
    async def call() -> int:
        async with await factory.get_breaker("bench"):
            return await healthy_async()

    return call


def refused(guarded: SyncCall, refusal: type[Exception], failures: int = 5) -> SyncCall:
    """A call that must be refused, with the `except` around it; anything else ends the benchmark."""
    for _ in range(failures):
        with suppress(OSError):
            guarded()

    def call() -> None:
        try:
            guarded()
        except refusal:
            return
        raise AssertionError("not refused")

    return call


def refused_switchgear() -> SyncCall:
    from switchgear import CircuitOpenError

    return refused(switchgear(open_duration_ms=HOUR_MS)(failing), CircuitOpenError)


def refused_circuitbreaker() -> SyncCall:
    from circuitbreaker import CircuitBreakerError

    return refused(circuitbreaker()(failing), CircuitBreakerError)


def refused_purgatory() -> SyncCall:
    from purgatory.domain.model import OpenedState

    return refused(purgatory()("bench")(failing), OpenedState)


def refused_pybreaker() -> SyncCall:
    from pybreaker import CircuitBreakerError

    return refused(pybreaker()(failing), CircuitBreakerError, failures=4)


def refused_interlock() -> SyncCall:
    from interlock import CircuitOpenError, Config

    breaker = interlock(config=Config(minimum_number_of_calls=5, wait_duration_in_open=HOUR_S))
    return refused(breaker(failing), CircuitOpenError)


Task = Callable[[], SyncCall | AsyncCall]

DECORATED: dict[str, Task] = {
    "bare call": bare_call,
    "switchgear, decorator": lambda: switchgear()(healthy),
    "switchgear, decorator (consecutive)": lambda: switchgear(trip_on="consecutive")(healthy),
    "switchgear, execute": lambda: executed(switchgear()),
    "circuitbreaker 2, decorator": lambda: circuitbreaker()(healthy),
    "purgatory 3, decorator": lambda: purgatory()("bench")(healthy),
    "pybreaker 1, decorator": lambda: pybreaker()(healthy),
    "interlock-cb 2, decorator": lambda: interlock()(healthy),
}

# That of circuitbreaker counts, but it lets every call through, also while the circuit is open.
ENTERED: dict[str, Task] = {
    "switchgear, with": lambda: entered(switchgear()),
    "circuitbreaker 2, with, refuses none": lambda: entered(circuitbreaker()),
    "purgatory 3, with": lambda: entered(purgatory().get_breaker("bench")),
    "pybreaker 1, with": entered_pybreaker,
    "interlock-cb 2, with": lambda: entered(interlock()),
}

# pybreaker is not here: its decorator has counted a success before the coroutine function's coroutine begins to run.
AWAITED: dict[str, Task] = {
    "bare await": bare_await,
    "switchgear, async decorator": lambda: switchgear()(healthy_async),
    "switchgear, execute_async": lambda: executed_async(switchgear()),
    "switchgear, async with": lambda: entered_async(switchgear()),
    "circuitbreaker 2, async decorator": lambda: circuitbreaker()(healthy_async),
    "purgatory 3, async decorator": lambda: purgatory_async()("bench")(healthy_async),
    "purgatory 3, async with": entered_purgatory_async,
    "interlock-cb 2, async decorator": lambda: interlock()(healthy_async),
    "interlock-cb 2, async with": lambda: entered_async(interlock()),
}

REFUSED: dict[str, Task] = {
    "switchgear, refused": refused_switchgear,
    "circuitbreaker 2, refused": refused_circuitbreaker,
    "purgatory 3, refused": refused_purgatory,
    "pybreaker 1, refused": refused_pybreaker,
    "interlock-cb 2, refused": refused_interlock,
}

GROUPS: dict[str, dict[str, Task]] = {
    "decorated": DECORATED,
    "entered": ENTERED,
    "awaited": AWAITED,
    "refused": REFUSED,
}
