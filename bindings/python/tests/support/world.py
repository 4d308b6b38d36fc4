"""What scenarios are told with: both kinds of breaker, their clock, and the ways to bring one where it is wanted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NoReturn, TypeAlias, TypeVar
from uuid import uuid4

from redis import Redis
from support.clock import ManualClock
from support.servers import Server
from support.stores import PATIENT
from switchgear import CircuitBreaker, CircuitOpenError, StateChange
from switchgear._types import Listening
from switchgear.redis import DistributedCircuitBreaker, RedisStore

T = TypeVar("T")

AnyBreaker: TypeAlias = "CircuitBreaker | DistributedCircuitBreaker"


class DownError(Exception):
    """A failure of the dependency."""


class NotFoundError(Exception):
    """An error of the caller, where a policy says so."""


def fail() -> NoReturn:
    raise DownError("ECONNREFUSED")


def succeed() -> str:
    return "ok"


@dataclass(frozen=True)
class World:
    """Where a scenario takes place."""

    clock: ManualClock
    breaker: Callable[..., AnyBreaker]
    """Another breaker on the clock, each of a circuit of its own; takes a policy."""
    is_shared: bool = False

    def tripped(self, **policy: Any) -> AnyBreaker:
        """A breaker that was tripped, at the moment when probes are admitted."""
        breaker = self.breaker(**{"failure_threshold": 1, "open_duration_ms": 1000, **policy})
        breaker.trip()
        self.clock.now += 1000
        return breaker


@contextmanager
def local_world() -> Iterator[World]:
    clock = ManualClock()
    yield World(clock, lambda **policy: CircuitBreaker("c", **policy, clock=clock))


@contextmanager
def shared_world(server: Server) -> Iterator[World]:
    clock = ManualClock()
    names = (f"{uuid4()}-{number}" for number in count())
    with ExitStack() as stack:
        client = Redis(port=server.port)
        stack.callback(client.close)
        store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
        yield World(clock, lambda **policy: DistributedCircuitBreaker(next(names), store, **policy), is_shared=True)


def guarded(breaker: AnyBreaker, fn: Callable[[], T]) -> Callable[[], T]:
    """The function, decorated: on a breaker that is one or the other, the types of its overloads get lost."""
    decorated: Callable[[], T] = breaker(fn)
    return decorated


def changes_of(breaker: AnyBreaker) -> list[StateChange]:
    """The changes of state that a breaker tells from now on."""
    changes: list[StateChange] = []
    breaker.on("state_change", changes.append)
    return changes


def refusal_of(call: Callable[[], object]) -> CircuitOpenError:
    """The refusal that a call must meet."""
    try:
        call()
    except CircuitOpenError as refusal:
        return refusal
    raise AssertionError("it was let through")


async def refusal_of_async(call: Callable[[], Awaitable[object]]) -> CircuitOpenError:
    """The refusal that an awaited call must meet."""
    try:
        await call()
    except CircuitOpenError as refusal:
        return refusal
    raise AssertionError("it was let through")


@dataclass
class Heard:
    """The calls that a breaker tells of, in order."""

    events: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, breaker: Listening) -> Heard:
        heard = cls()
        for event in ("success", "failure", "ignored", "refused"):
            breaker.on(event, lambda _, event=event: heard.events.append(event))
        return heard
