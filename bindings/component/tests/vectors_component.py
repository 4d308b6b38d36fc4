"""Runs vectors on the component: `vectors_component.py [PATH]`, by default on tests/vectors.

Once asking it for everything (`component`), and once answering by its hints wherever they hold, as a host does to save
calls (`component-hints`). Exits 1 if anything differs, 2 if there is nothing to run. It must have been built.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

# What reads and compares vectors is that of the Python package.
sys.path.append(str(Path(__file__).parents[2] / "python" / "tests"))

from component import ComponentError, Instance, Resource, fields_of, settings
from support.vectors import Admitted, Refused, VectorError, load, run
from wasmtime.component import Record

VECTORS = Path(__file__).parents[3] / "tests" / "vectors"

OUTCOMES = {"recordSuccess": "success", "recordFailure": "failure", "release": "release"}
CONTROLS = {"reset": "reset", "forceOpen": "force-open", "disable": "disable"}

INSTANCE = Instance()


class Asked:
    """A breaker that is asked for everything."""

    def __init__(self, config: dict[str, Any]) -> None:
        self.breaker = breaker(config)

    def acquire(self, at: int) -> Admitted[Record] | Refused:
        decision = fields_of(self.breaker.call("can-request", at))["decision"]
        if decision.tag == "allowed":
            return Admitted(decision.payload)
        return Refused(fields_of(decision.payload)["retry-after-ms"])

    def settle(self, at: int, operation: str, permit: Record | None) -> str:
        status: str = self.breaker.call("settle", at, permit, OUTCOMES[operation]).status
        return status

    def control(self, at: int, operation: str, for_ms: int | None) -> None:
        if operation == "trip":
            self.breaker.call("trip", at, for_ms)
        else:
            self.breaker.call(CONTROLS[operation], at)

    def snapshot(self, at: int) -> dict[str, object]:
        return {camel(name): value for name, value in fields_of(self.breaker.call("snapshot", at)).items()}

    def __del__(self) -> None:
        self.breaker.drop()


class Hinted(Asked):
    """A breaker whose answers are known beforehand wherever its hints say so."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__(config)
        self._look()

    def acquire(self, at: int) -> Admitted[Record] | Refused:
        if self.hints["admit-free"] is not None:
            return Admitted(self.hints["admit-free"])
        refuse = self.hints["refuse"]
        if refuse is not None and refuse.begin <= at < refuse.end:
            return Refused(refuse.end - at)
        answer = super().acquire(at)
        self._look()
        return answer

    def settle(self, at: int, operation: str, permit: Record | None) -> str:
        is_free = self.hints["success-free"] and operation == "recordSuccess"
        if is_free and permit is not None and permit == self.hints["admit-free"]:
            return "applied"
        status = super().settle(at, operation, permit)
        self._look()
        return status

    def control(self, at: int, operation: str, for_ms: int | None) -> None:
        super().control(at, operation, for_ms)
        self._look()

    def _look(self) -> None:
        self.hints = fields_of(self.breaker.call("hints"))


def breaker(config: dict[str, Any]) -> Resource:
    return Resource(INSTANCE, "local", "breaker", "camel", [settings(config)])


def check_config(config: dict[str, Any]) -> None:
    try:
        breaker(config).drop()
    except ComponentError as error:
        raise VectorError(f"config: {error}") from error


def camel(name: str) -> str:
    first, *rest = name.split("-")
    return first + "".join(word.capitalize() for word in rest)


def main() -> int:
    try:
        vectors = load(Path(sys.argv[1]) if len(sys.argv) > 1 else VECTORS, check_config)
    except VectorError as error:
        print(error, file=sys.stderr)
        return 2
    asked = run("component", vectors, Asked).print()
    hinted = run("component-hints", vectors, Hinted).print()
    return 0 if asked and hinted else 1


if __name__ == "__main__":
    sys.exit(main())
