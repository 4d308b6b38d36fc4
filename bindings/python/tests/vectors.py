"""Runs vectors on the Python package: `python bindings/python/tests/vectors.py [PATH]`, by default on tests/vectors.

Once on the state machine alone (`python`), and once on a breaker with an injected clock (`python-hints`), through
`with`, which asks the machine for no more than it has to. Exits 1 if anything differs, 2 if there is nothing to run.
"""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from support.clock import ManualClock
from support.vectors import Admitted, Refused, VectorError, load, run
from switchgear import CircuitBreaker, CircuitBreakerState, CircuitOpenError, Permit, Snapshot, StatePermit
from switchgear._native import FAILURE, RELEASE, SUCCESS, Machine, fields

P = TypeVar("P")

VECTORS = Path(__file__).parents[3] / "tests" / "vectors"

OUTCOMES = {"recordSuccess": SUCCESS, "recordFailure": FAILURE, "release": RELEASE}

# A permit and the epoch of its admission. A vector may settle it twice, which a host answers by itself ("duplicate");
# what the machine says to that is asked one layer below. That goes for calls of a closed circuit: a probe settles once,
# for the scripts take its outcome that comes twice for one command that was sent twice.
Kept: TypeAlias = "tuple[P, int]"


class Stateful:
    """The state machine: the time goes in with every call."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._state = CircuitBreakerState(**in_snake_case(config))

    def acquire(self, at: int) -> Admitted[Kept[StatePermit]] | Refused:
        permit = self._state.acquire(at)
        if permit is None:
            return Refused(self._state.retry_after_ms(at))
        return Admitted((permit, self._state.snapshot(at).epoch))

    def settle(self, at: int, operation: str, permit: Kept[StatePermit] | None) -> str:
        if permit is None:
            answer: str = called(self._state, operation, at)
            return answer
        answer = called(permit[0], operation, at)
        return settled_again(self._state._machine, at, permit, operation) if answer == "duplicate" else answer

    def control(self, at: int, operation: str, for_ms: int | None) -> None:
        if for_ms is None:
            called(self._state, operation, at)
        else:
            self._state.trip(at, for_ms)

    def snapshot(self, at: int) -> dict[str, object]:
        return in_camel_case(self._state.snapshot(at))


class Clocked:
    """A breaker: the time comes from its clock, and calls go through `with`."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._clock = ManualClock(0)
        self._breaker = CircuitBreaker("vector", **in_snake_case(config), clock=self._clock)
        self._blocks: list[Generator[Permit, None, None]] = []

    def acquire(self, at: int) -> Admitted[Kept[Permit]] | Refused:
        self._clock.now = at
        block = self._block()
        try:
            permit = next(block)
        except CircuitOpenError as refusal:
            return Refused(refusal.retry_after_ms)
        # Its block lasts as long as the vector: a call that nothing settles is one in flight.
        self._blocks.append(block)
        return Admitted((permit, self._breaker.get_snapshot().epoch))

    def settle(self, at: int, operation: str, permit: Kept[Permit] | None) -> str:
        self._clock.now = at
        if permit is None:
            answer: str = called(self._breaker, operation)
            return answer
        answer = called(permit[0], operation)
        return settled_again(self._breaker._machine, at, permit, operation) if answer == "duplicate" else answer

    def control(self, at: int, operation: str, for_ms: int | None) -> None:
        self._clock.now = at
        if for_ms is None:
            called(self._breaker, operation)
        else:
            self._breaker.trip(for_ms=for_ms)

    def snapshot(self, at: int) -> dict[str, object]:
        self._clock.now = at
        return in_camel_case(self._breaker.get_snapshot())

    def _block(self) -> Generator[Permit, None, None]:
        with self._breaker as permit:
            yield permit


def called(target: object, operation: str, *args: int) -> Any:
    """What the method of an operation says."""
    return getattr(target, snake(operation))(*args)


def settled_again(machine: Machine, at: int, kept: Kept[StatePermit] | Kept[Permit], operation: str) -> str:
    """What a machine says to a call that was settled before."""
    permit, epoch = kept
    if permit.probe:
        raise VectorError("permit: a probe settles once")
    return "applied" if machine.settle_closed(at, epoch, OUTCOMES[operation]) else "stale"


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def camel(name: str) -> str:
    return re.sub("_([a-z])", lambda letter: letter[1].upper(), name)


# The names of vectors, and what Python calls the same: the options of the machine, and no option of running functions.
OPTIONS = {camel(name): name for option in fields() for name in option[:2] if name is not None}


def in_snake_case(config: dict[str, Any]) -> dict[str, Any]:
    return {OPTIONS[name]: value for name, value in config.items()}


def in_camel_case(snapshot: Snapshot) -> dict[str, object]:
    return {camel(field.name): getattr(snapshot, field.name) for field in dataclasses.fields(snapshot)}


def check_config(config: dict[str, Any]) -> None:
    """Refuses what is no configuration, as `ValueError`s."""
    for name, value in config.items():
        if name not in OPTIONS:
            raise VectorError(f"config: unknown key `{name}`, expected {', '.join(OPTIONS)}")
        # In Python `None` means left out; in a vector a key that is given has a value.
        if value is None:
            raise VectorError(f"config: `{name}` must not be null")
    CircuitBreakerState(**in_snake_case(config))


def main() -> int:
    try:
        vectors = load(Path(sys.argv[1]) if len(sys.argv) > 1 else VECTORS, check_config)
    except VectorError as error:
        print(error, file=sys.stderr)
        return 2
    alone = run("python", vectors, Stateful).print()
    hinted = run("python-hints", vectors, Clocked).print()
    return 0 if alone and hinted else 1


if __name__ == "__main__":
    sys.exit(main())
