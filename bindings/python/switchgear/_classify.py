"""Whether the end of a call says that the dependency failed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from switchgear._awaitable import discard, must_be_awaited
from switchgear._clock import read
from switchgear._config import HostPolicy
from switchgear._error import Refusal
from switchgear._log import warn_once
from switchgear._native import FAILURE, RELEASE, SUCCESS

Outcome: TypeAlias = Literal["success", "failure", "ignored"]
"""How a call ended. `ignored` is neutral: cancelled, or an error that does not count."""

CODES: dict[Outcome, int] = {"success": SUCCESS, "failure": FAILURE, "ignored": RELEASE}
"""Outcomes as the native module takes them."""


class Ending(NamedTuple):
    """The end of a call as the circuit is told it."""

    outcome: Outcome
    error: BaseException | None = None
    """What was raised, if anything was."""
    duration_ms: int | None = None
    """How long it took; `None` if nobody measured."""
    reason: str | None = None
    """Why a call that raised nothing counts as a failure."""


SUCCEEDED = Ending("success")
FAILED = Ending("failure")
NEUTRAL = Ending("ignored")


@dataclass(slots=True)
class CallRules:
    """What all calls of one breaker have in common."""

    circuit: str
    host: HostPolicy
    now: Callable[[], int]
    """The time that durations are measured with, in milliseconds."""
    is_heard: Callable[[], object]
    """Whether somebody listens to calls, and so wants to know how long they take."""
    told: dict[str, object] = field(default_factory=dict)
    """What `warn_once` has told about this breaker."""

    def is_timed(self) -> bool:
        """Whether anybody wants to know how long a call takes."""
        return self.host.slow_call_ms is not None or bool(self.is_heard())

    def begin(self) -> int | None:
        """When a call begins; if nobody wants to know how long it takes, the clock is not read."""
        return read(self.now) if self.is_timed() else None

    def since(self, begun: int | None) -> int | None:
        """The milliseconds since then; never negative, though a clock may step back."""
        at = None if begun is None else read(self.now)
        return None if begun is None or at is None else max(0, at - begun)


def raised(error: BaseException, rules: CallRules, duration_ms: int | None, *, timed_out: bool = False) -> Ending:
    """How a call ended that raised.

    Args:
        error: What it raised.
        rules: The breaker's.
        duration_ms: How long it took.
        timed_out: The error is the call's own timeout, which counts whatever `is_failure` thinks of it.
    """
    counts = timed_out or counts_as_failure(error, rules)
    return Ending("failure" if counts else "ignored", error, duration_ms)


def returned(value: object, rules: CallRules, duration_ms: int | None) -> Ending:
    """How a call ended that returned."""
    if rules.host.is_failure_result is not None:
        answer = _asked("is_failure_result", rules.host.is_failure_result, value, rules)
        if answer is _UNCLASSIFIED:
            return Ending("failure", None, duration_ms, "a result that could not be classified")
        if answer:
            return Ending("failure", None, duration_ms, "a result that counts as a failure")
    return finished(rules, duration_ms)


def finished(rules: CallRules, duration_ms: int | None) -> Ending:
    """How a call ended that came to its end and has no value to look at."""
    slow = rules.host.slow_call_ms
    if slow is not None and duration_ms is not None and duration_ms > slow:
        return Ending("failure", None, duration_ms, f"slower than {slow} ms")
    return SUCCEEDED if duration_ms is None else Ending("success", None, duration_ms)


def counts_as_failure(error: BaseException, rules: CallRules) -> bool:
    """Whether an error says that the dependency failed.

    Only a clear `False` of `is_failure` says that it does not: a classifier that forgets to answer must not keep the
    circuit closed for ever. What is no `Exception` says something of this program, or of its user. And a refusal by the
    very circuit, from a guarded call within this one, says something of the circuit.
    """
    if not isinstance(error, Exception):
        return False
    if isinstance(error, Refusal) and error.circuit == rules.circuit:
        # Counting it, a probe whose own slot is what refused the inner call would open the circuit again, each time.
        return False
    host = rules.host
    # By the classes it has, as `except` does: a metaclass with an `__instancecheck__` of its own has no say.
    if host.ignore and any(kind in type(error).__mro__ for kind in host.ignore):
        return False
    return host.is_failure is None or _asked("is_failure", host.is_failure, error, rules) is not False


_UNCLASSIFIED = object()


def _asked(option: str, classifier: Callable[[Any], object], about: object, rules: CallRules) -> object:
    """What a classifier answers; `_UNCLASSIFIED` for one that raises, or would answer later."""
    try:
        answer = classifier(about)
        if not must_be_awaited(answer):
            # Here, for asking some objects whether they are true raises.
            return answer if option == "is_failure" else bool(answer)
    except Exception:  # noqa: BLE001 - whatever it is, the call has its own result to give
        fault = "raised"
    else:
        discard(answer)
        fault = "must answer at once, it gave an awaitable"
    text = f"`{option}` of circuit `{rules.circuit}` {fault}: the call counts as a failure"
    warn_once(rules.told, option, text)
    return _UNCLASSIFIED
