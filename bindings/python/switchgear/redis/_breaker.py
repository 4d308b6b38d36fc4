"""The shared circuit breaker for sync code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from switchgear._call import Ways
from switchgear._entered import Entered
from switchgear._guard import guard_with, like
from switchgear._hot import hot_function
from switchgear._kind import kind_of
from switchgear._permit import SharedPermit
from switchgear._sync_breaker import SyncBreaker
from switchgear.redis._blocking_circuit import BlockingCircuit
from switchgear.redis._shared import PreparedSharedPolicy
from switchgear.redis._store import RedisStore, checked_store

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from switchgear._fallback import CheckedCall
    from switchgear._types import Snapshot, State
    from switchgear.redis._shared import SharedPolicy


class DistributedCircuitBreaker(SyncBreaker):
    """Guards the calls to one dependency, together with every process that has a breaker of this name on its store.

    They trip together, and in a half-open circuit no more than `half_open_max_calls` probes run in the whole fleet. An
    admission takes one round trip (two around a half-open period), which concurrent ones share, and none while
    `open_cache_ms` or `closed_cache_ms` allow it; a failure and the outcome of a probe take one. A success of a closed
    circuit is not waited for. Each waits at most the store's `timeout_ms`.

    It guards sync functions and generators; `switchgear.redis.asyncio` has a class of the same name for coroutines.
    While the store cannot be asked a breaker in this process decides, unless `on_store_failure` says otherwise. Safe
    under threads and after fork.

    Args:
        name: The circuit's, the same in the whole fleet: 1 to 512 bytes of UTF-8 without control characters.
        store: Where the circuit is kept.
        **policy: How it behaves, see `SharedPolicy`; every option has a default. `clock` replaces the store's for this
            circuit.

    Raises:
        InvalidNameError: The name cannot name a circuit.
        ConfigError: Names the option, the value and what is valid.
        InvalidTimeError: The policy's clock gives no time.
        TypeError: The store is none, or one for `asyncio`.

    Example:
        ```python
        import redis

        from switchgear.redis import DistributedCircuitBreaker, RedisStore

        store = RedisStore(redis.Redis.from_url(REDIS_URL))
        breaker = DistributedCircuitBreaker("shipping", store, failure_threshold=5)


        @breaker.guard(fallback=lambda refusal, order: f"{order} is queued")
        def ship(order: str) -> str:
            return f"{order} is shipped"


        assert ship("order 7") == "order 7 is shipped"
        breaker.trip()
        assert ship("order 8") == "order 8 is queued"
        ```
    """

    __slots__ = ("__weakref__", "_circuit", "_entered", "_ways")

    _circuit: BlockingCircuit

    def __init__(self, name: str, store: RedisStore, **policy: Unpack[SharedPolicy]) -> None:
        link = checked_store(store, RedisStore, "DistributedCircuitBreaker")
        self._bind(BlockingCircuit(name, link, PreparedSharedPolicy.of(policy, awaited=False)))

    @classmethod
    def _of(cls, circuit: BlockingCircuit) -> Self:
        """The breaker of a circuit that was made already: how a group makes its members."""
        breaker = cls.__new__(cls)
        breaker._bind(circuit)
        return breaker

    def _bind(self, circuit: BlockingCircuit) -> None:
        self._circuit = circuit
        self._ways = Ways(circuit.rules, circuit.admit, circuit.other_entry)
        self._entered: Entered[SharedPermit] = Entered()

    def __enter__(self) -> SharedPermit:
        """The breaker as a context manager: the block is one call.

        What is not settled by its end is a success, or what the exception says that leaves it.

        Raises:
            CircuitOpenError: The circuit refused it.
            StoreUnavailableError: The store did not answer, under `on_store_failure="fail-closed"`.
        """
        permit = self._circuit.permit().__enter__()
        self._entered.enter(sys._getframe(1), permit)
        return permit

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._entered.leave(sys._getframe(1)).leave(error)

    def acquire(self) -> SharedPermit:
        """Asks for one call by hand, and gives the permit to settle it with.

        Raises:
            CircuitOpenError: The circuit refused it.
            StoreUnavailableError: The store did not answer, under `on_store_failure="fail-closed"`.
            InvalidTimeError: The clock fails.
        """
        return self._circuit.permit()

    def get_state(self) -> State:
        """The state as callers see it: forced open reads `open`, disabled reads `closed`. Changes nothing.

        Under `on_store_failure="local"` it is what this process knows, where the store does not answer.

        Raises:
            StoreUnavailableError: The store did not answer, under `fail-closed` and `fail-open`.
            InvalidTimeError: The clock fails.
        """
        return self._circuit.snapshot().state

    def get_snapshot(self) -> Snapshot:
        """Everything the store knows of the circuit. Changes nothing.

        Under `on_store_failure="local"` it is what this process knows, where the store does not answer.

        Raises:
            StoreUnavailableError: The store did not answer, under `fail-closed` and `fail-open`.
            InvalidTimeError: The clock fails.
        """
        return self._circuit.snapshot()

    def reset(self) -> None:
        """Closes the circuit for the whole fleet and forgets everything; outcomes of calls that run do not count.

        Raises:
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        self._circuit.control("reset")

    def trip(self, *, for_ms: int | None = None) -> None:
        """Opens the circuit for the whole fleet now, also when it is open already; it recovers as usual.

        Args:
            for_ms: How long it stays open, in milliseconds; by default as long as after any other trip.

        Raises:
            ConfigError: `for_ms` is wrong.
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        self._circuit.control("trip", for_ms)

    def force_open(self) -> None:
        """Refuses every call of the whole fleet until `reset` or `trip`.

        Raises:
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        self._circuit.control("force_open")

    def disable(self) -> None:
        """Admits every call of the whole fleet and counts none until `reset` or `trip`.

        Raises:
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        self._circuit.control("disable")

    def __repr__(self) -> str:
        # Not its state: nothing is asked of a store to be shown.
        return f"<{type(self).__name__} {self.name!r}>"

    def _guarded(self, fn: Callable[..., Any], call: CheckedCall) -> Callable[..., Any]:
        kind = kind_of(fn)
        if kind in {"coroutine function", "async generator function"}:
            other = self._circuit.other_entry
            raise TypeError(f"circuit `{self.name}` cannot guard a {kind} without blocking its event loop: use {other}")
        slow = guard_with(fn, call, self._ways)
        if kind != "function" or (call.on_failure and call.fallback is not None):
            return slow
        return like(fn, hot_function(fn, slow, self._circuit, call))
