"""What the two Python workers have in common: how options are spelled, and what is heard of a circuit."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import threading
from typing import Any

from switchgear import CircuitOpenError, StateChange


class Clock:
    """A made-up clock, for those circuits that are given one."""

    def __init__(self) -> None:
        self.now = 0

    def __call__(self) -> int:
        return self.now


class Heard:
    """What was heard of one circuit."""

    def __init__(self, as_: str, who: str) -> None:
        self.as_ = as_
        self.who = who
        #: How many lines had been logged.
        self.logged = len(lines)
        self.events: dict[str, list[dict[str, Any]]] = {
            "degraded": [],
            "restored": [],
            "storeError": [],
            "configMismatch": [],
        }
        self.told = {"done": 0, "failed": 0, "refused open": 0, "refused half-open": 0}
        self.errors: list[str] = []

    def listen(self, store: Any, breaker: Any) -> None:
        for event, heard in self.events.items():

            def hear(e: Any, heard: list[dict[str, Any]] = heard) -> None:
                heard.append({"circuit": e.circuit, "error": None if e.error is None else str(e.error)})

            store.on(snake(event), hear)
        breaker.on("state_change", changed)

    def refused(self, error: Exception) -> None:
        if isinstance(error, CircuitOpenError):
            self.told[f"refused {error.state}"] += 1
        else:
            self.errors.append(spelled(error))

    def question(self, *, probe: bool) -> bytes:
        """A line for the dependency."""
        line = {"who": self.who, "pid": os.getpid(), "circuit": self.as_, "probe": probe}
        return json.dumps(line).encode() + b"\n"

    def stats(self) -> dict[str, Any]:
        return {**self.events, "told": self.told, "errors": self.errors, "lines": lines[self.logged :]}


def changed(change: StateChange) -> None:
    """Tells a change of state at once: this process may be killed before it is asked."""
    names = {"fromState": change.from_state, "toState": change.to_state, "reason": change.reason}
    say({"change": {"circuit": change.circuit, "source": change.source, **names}})


class FailedError(Exception):
    """The dependency failed."""


def snake(name: str) -> str:
    return re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)


def snaked(options: dict[str, Any] | None) -> dict[str, Any]:
    return {snake(name): value for name, value in (options or {}).items()}


def camel(snapshot: Any) -> dict[str, Any]:
    """A snapshot as JavaScript spells it."""
    names = [name for name in dir(snapshot) if not name.startswith("_") and not callable(getattr(snapshot, name))]
    return {re.sub("_([a-z])", lambda part: part[1].upper(), name): getattr(snapshot, name) for name in names}


def outcome(error: Exception, own: Exception | None) -> str:
    """What a caller got who got an error."""
    if error is own:
        return "own error"
    return f"refused {error.state}" if isinstance(error, CircuitOpenError) else spelled(error)


def spelled(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


_saying = threading.Lock()


def say(message: dict[str, Any]) -> None:
    with _saying:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


lines: list[str] = []
"""What was logged."""


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        lines.append(f"{record.levelname} {record.getMessage()}")


_logger = logging.getLogger("switchgear")
_logger.addHandler(_Lines())
_logger.setLevel(logging.INFO)
_logger.propagate = False
