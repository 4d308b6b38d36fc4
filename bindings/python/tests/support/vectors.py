"""Vectors: reading them, and the one comparison that both Python runners share.

The rules, and the words, are those of tests/src/vectors.rs; the schema is tests/vector.schema.json.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, NoReturn, Protocol, TypeVar

# Failures listed of one vector: what follows a first difference is mostly its echo.
LISTED_PER_VECTOR = 5
# Failures listed of one run.
LISTED_PER_RUN = 500

MAX_TIME = 2**52
MAX_INTEGER = 2**53 - 1
SETTLEMENTS = ("recordSuccess", "recordFailure", "release")
CONTROLS = ("reset", "trip", "forceOpen", "disable")
OPERATIONS = ("canRequest", *SETTLEMENTS, *CONTROLS, "snapshot")

Vector = dict[str, Any]
Step = dict[str, Any]
P = TypeVar("P")


class VectorError(Exception):
    """What is wrong with a vector, or with a file of vectors."""


@dataclass(frozen=True)
class Admitted(Generic[P]):
    """A call may go ahead, with this permit."""

    permit: P


@dataclass(frozen=True)
class Refused:
    """A call may not go ahead; milliseconds until it may be worth asking again, if known."""

    retry_after_ms: int | None


class Machine(Protocol[P]):
    """One fresh circuit under test, whatever it is made of. Operations have the names of the vectors."""

    def acquire(self, at: int) -> Admitted[P] | Refused: ...
    def settle(self, at: int, operation: str, permit: P | None) -> str: ...
    def control(self, at: int, operation: str, for_ms: int | None) -> None: ...
    def snapshot(self, at: int) -> dict[str, object]:
        """The fields of the snapshot under the names of the vectors."""


@dataclass
class Report:
    """What a run found."""

    runner: str
    vectors: int
    steps: int
    failures: list[str] = field(default_factory=list)

    def print(self) -> bool:
        """The counts on stdout, the failures on stderr; whether there were none."""
        print(f"{self.runner}: {self.vectors} vectors, {self.steps} steps", flush=True)
        for failure in self.failures[:LISTED_PER_RUN]:
            print(failure, file=sys.stderr)
        if len(self.failures) > LISTED_PER_RUN:
            print(f"{self.runner}: {len(self.failures) - LISTED_PER_RUN} more", file=sys.stderr)
        return not self.failures


def load(path: Path, check_config: Callable[[dict[str, Any]], object]) -> list[Vector]:
    """A file, or every `*.json` of a folder and of the folders in it, in the order of the paths."""
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    vectors: list[Vector] = []
    for file in files:
        try:
            vectors += _load_file(file, check_config)
        # ValueError: no JSON, no UTF-8, or a configuration that is none.
        except (VectorError, ValueError, OSError) as error:
            raise VectorError(f"{file}: {error}") from error
    if not vectors:
        raise VectorError(f"{path}: no vector in it")
    return vectors


def run(runner: str, vectors: Sequence[Vector], start: Callable[[dict[str, Any]], Machine[P]]) -> Report:
    """Runs all vectors, each on a machine of its own, which `start` makes from the configuration."""
    report = Report(runner, len(vectors), sum(len(vector["steps"]) for vector in vectors))
    for vector in vectors:
        name = vector["name"]
        found = _run_one(vector, start(vector.get("config", {})))
        report.failures += [f"{runner}: {name} {failure}" for failure in found[:LISTED_PER_VECTOR]]
        more = len(found) - LISTED_PER_VECTOR
        if more > 0:
            report.failures.append(f"{runner}: {name}: {more} more differences in this vector")
    return report


def _run_one(vector: Vector, machine: Machine[P]) -> list[str]:
    kept: dict[str, P | None] = {}
    failures: list[str] = []
    for index, step in enumerate(vector["steps"]):
        place = f"steps[{index}] ({step['do']} at {step['at']})"
        try:
            failures += [f"{place}: {difference}" for difference in _run_step(step, machine, kept)]
        # Whatever a step raises is a failure of this vector; the others still run.
        except Exception as error:
            failures.append(f"{place}: {error}")
    return failures


def _run_step(step: Step, machine: Machine[P], kept: dict[str, P | None]) -> list[str]:
    at, operation = step["at"], step["do"]
    got: dict[str, object] = {"allowed": None, "retryAfterMs": None, "status": None}
    if operation == "canRequest":
        admission = machine.acquire(at)
        if isinstance(admission, Admitted):
            got |= {"allowed": True, "retryAfterMs": 0}
        else:
            got |= {"allowed": False, "retryAfterMs": admission.retry_after_ms}
        if "as" in step:
            kept[step["as"]] = admission.permit if isinstance(admission, Admitted) else None
    elif operation in SETTLEMENTS:
        permit = kept[step["permit"]] if "permit" in step else None
        if "permit" in step and permit is None:
            raise VectorError(f'permit: the admission of "{step["permit"]}" was refused, there is none')
        got["status"] = machine.settle(at, operation, permit)
    elif operation in CONTROLS:
        machine.control(at, operation, step.get("forMs"))
    got |= machine.snapshot(at)
    return [
        f"{name}: got {_json(got[name])}, expected {_json(expected)}"
        for name, expected in step.get("expect", {}).items()
        if not _same(got[name], expected)
    ]


def _same(got: object, expected: object) -> bool:
    # In Python 1 == True and 1 == 1.0: an answer of the wrong type is a difference.
    return type(got) is type(expected) and got == expected


@dataclass(frozen=True)
class _Kind:
    """What a value may be, in words and as a check."""

    valid: str
    check: Callable[[object], bool]


def _word(words: Iterable[str]) -> _Kind:
    words = tuple(words)
    return _Kind(" or ".join(f'"{each}"' for each in words), lambda value: value in words)


def _whole(most: int) -> _Kind:
    return _Kind(f"an integer from 0 to {most}", lambda value: type(value) is int and 0 <= value <= most)


def _or_null(kind: _Kind) -> _Kind:
    return _Kind(f"{kind.valid} or null", lambda value: value is None or kind.check(value))


_WHOLE = _whole(MAX_INTEGER)
_TEXT = _Kind("a text", lambda value: isinstance(value, str))
_BOOL = _Kind("true or false", lambda value: isinstance(value, bool))
_OBJECT = _Kind("an object", lambda value: isinstance(value, dict))
_LIST = _Kind("an array", lambda value: isinstance(value, list))

# What may be expected: of the answer, then of the snapshot.
_EXPECT = {
    "allowed": _BOOL,
    "retryAfterMs": _or_null(_WHOLE),
    "status": _word(["applied", "stale"]),
    "state": _word(["closed", "open", "half-open"]),
    "mode": _word(["auto", "forced-open", "disabled"]),
    "failuresInWindow": _WHOLE,
    "callsInWindow": _WHOLE,
    "consecutiveFailures": _WHOLE,
    "halfOpenSuccesses": _WHOLE,
    "halfOpenInFlight": _WHOLE,
    "openedAt": _or_null(_WHOLE),
    "remainingOpenMs": _WHOLE,
    "trips": _WHOLE,
    "epoch": _WHOLE,
}
_STEP = {
    "at": _whole(MAX_TIME),
    "do": _word(OPERATIONS),
    "as": _TEXT,
    "permit": _TEXT,
    "forMs": _WHOLE,
    "expect": _OBJECT,
}
_VECTOR = {"name": _TEXT, "about": _TEXT, "config": _OBJECT, "steps": _LIST}
_FILE = {"about": _TEXT, "vectors": _LIST}

# Which operations a key of a step or of its expectation belongs to.
_OWNERS = {
    "as": ("canRequest", ("canRequest",)),
    "permit": ("a settlement", SETTLEMENTS),
    "forMs": ("trip", ("trip",)),
    "expect.allowed": ("canRequest", ("canRequest",)),
    "expect.retryAfterMs": ("canRequest", ("canRequest",)),
    "expect.status": ("a settlement", SETTLEMENTS),
}


def _load_file(file: Path, check_config: Callable[[dict[str, Any]], object]) -> list[Vector]:
    content = json.loads(
        file.read_text(encoding="utf-8"), object_pairs_hook=_without_duplicates, parse_constant=_no_number
    )
    _check("a file", content, _OBJECT)
    many = "vectors" in content
    if many:
        _check_keys(content, _FILE, ["vectors"])
    vectors: list[Vector] = content["vectors"] if many else [content]
    for vector in vectors:
        _check("a vector", vector, _OBJECT)
        try:
            _check_vector(vector, check_config)
        except (VectorError, ValueError) as error:
            raise VectorError(f"{vector.get('name')}: {error}") from error
    return vectors


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        keys = [key for key, _ in pairs]
        raise VectorError(f"duplicate key `{next(key for key in keys if keys.count(key) > 1)}`")
    return made


def _no_number(text: str) -> NoReturn:
    raise VectorError(f"`{text}` is no JSON")


def _check_vector(vector: Vector, check_config: Callable[[dict[str, Any]], object]) -> None:
    _check_keys(vector, _VECTOR, ["name", "steps"])
    check_config(vector.get("config", {}))
    if not vector["steps"]:
        raise VectorError("steps: none, so nothing to compare")
    labels: set[str] = set()
    for index, step in enumerate(vector["steps"]):
        try:
            _check_step(step, labels)
        except VectorError as error:
            raise VectorError(f"steps[{index}]: {error}") from error


def _check_step(step: Step, labels: set[str]) -> None:
    _check("a step", step, _OBJECT)
    _check_keys(step, _STEP, ["at", "do"])
    expect = step.get("expect", {})
    _check_keys(expect, _EXPECT, [])
    for key in [*step, *(f"expect.{name}" for name in expect)]:
        owner, operations = _OWNERS.get(key, ("", OPERATIONS))
        if step["do"] not in operations:
            raise VectorError(f"`{key}` belongs to {owner}, not to {step['do']}")
    if "permit" in step and step["permit"] not in labels:
        raise VectorError(f'permit: no earlier step has `as`: "{step["permit"]}"')
    if "as" in step:
        labels.add(step["as"])


def _check_keys(value: dict[str, Any], keys: dict[str, _Kind], required: Iterable[str]) -> None:
    for key, each in value.items():
        if key not in keys:
            raise VectorError(f"unknown key `{key}`, expected {', '.join(keys)}")
        _check(key, each, keys[key])
    for key in required:
        if key not in value:
            raise VectorError(f"`{key}` is missing")


def _check(what: str, value: object, kind: _Kind) -> None:
    if not kind.check(value):
        raise VectorError(f"{what} must be {kind.valid}, got `{_json(value)}`")


def _json(value: object) -> str:
    # As JSON.stringify writes it: the runners' lines are compared.
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
