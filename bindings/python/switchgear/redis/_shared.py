"""What shared circuits have in common, whether their callers block or await: policy, engine, what is told of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from switchgear._circuit import Told
from switchgear._classify import CODES, CallRules, Ending
from switchgear._clock import check_clock
from switchgear._config import HostPolicy, PolicyKind, checked_name, out_of_range, read_policy
from switchgear._error import CircuitOpenError, Refusal, StoreError, StoreUnavailableError
from switchgear._events import Emitter
from switchgear._failure_text import failure_text
from switchgear._native import Denial, Loudness, SharedConfig, SharedGrant, Transition
from switchgear._types import Policy, Snapshot, StateChange
from switchgear.redis._engine import Engine, Sends
from switchgear.redis._link import Link
from switchgear.redis._talk import Answer, Talk


class SharedPolicy(Policy, total=False):
    """A breaker's policy, and what a shared breaker adds to it."""

    on_store_failure: Literal["local", "fail-open", "fail-closed"] | None
    """What decides on a call while the store cannot be asked, by default `"local"`.

    `"local"`: a breaker in this process with the same policy, which is fed with every outcome and so knows what this
    process has seen; an opening that the store told of before holds on. No call ever meets an error of the store.
    `"fail-open"`: the call goes ahead unguarded, and its outcome counts nowhere. `"fail-closed"`: the call is refused
    with a `StoreUnavailableError`.
    """
    open_cache_ms: int | None
    """How long an open circuit refuses without asking, in milliseconds from the last question on and never past the
    moment when it reopens, by default 1000. 0: it asks every time. What another instance or an operator does takes
    effect here by then."""
    closed_cache_ms: int | None
    """How long a closed circuit admits without asking, in milliseconds from the last question on, by default 0: it asks
    every time. More saves the round trip; a trip of another instance is then noticed so much later."""
    quorum: int | None
    """How many instances must have seen failures before the circuit trips for all, by default 1; at most
    `failure_threshold` (`minimum_calls` with `trip_on="rate"`). An instance whose own failures reach the threshold
    opens for itself alone. Who is an instance: `instance` of the store."""
    idle_ttl_ms: int | None
    """How long an idle circuit is remembered, in milliseconds, by default 86 400 000 (24 hours).

    At least twice the longest duration of the policy plus 60 000, which is also the default where that is more: so an
    idle open circuit comes back through a probe. A circuit that an operator holds open or has switched off is
    remembered until he changes his mind.
    """


SHARED_POLICY = PolicyKind(
    SharedConfig, core=("on_store_failure", "idle_ttl_ms", "open_cache_ms", "closed_cache_ms", "quorum")
)
SHARED_GROUP_POLICY = PolicyKind(SharedConfig, core=SHARED_POLICY.core, own=("max_keys",))


@dataclass(frozen=True, slots=True)
class PreparedSharedPolicy:
    """A policy that was read already, and whom its circuits report to: how a group makes its members."""

    config: SharedConfig
    host: HostPolicy
    outer: Emitter | None = None

    @classmethod
    def to_steer(cls, policy: Mapping[str, object], *, awaited: bool) -> PreparedSharedPolicy:
        """The same for who reads and steers circuits, and guards no call: the store itself answers, or nobody."""
        given = cls.of(policy, awaited=awaited)
        config = read_policy([policy, {"on_store_failure": "fail-closed"}], SHARED_POLICY).config
        return cls(config, given.host)

    @classmethod
    def of(
        cls, policy: Mapping[str, object], outer: Emitter | None = None, *, awaited: bool = True
    ) -> PreparedSharedPolicy:
        """Reads the policy of one breaker, or of a group, and tries its clock.

        Args:
            policy: As the user gave it.
            outer: What a group tells with; `None` for a breaker that is on its own.
            awaited: Whether it guards coroutines; what does not has no timeout.
        """
        read = read_policy([policy], SHARED_POLICY if outer is None else SHARED_GROUP_POLICY)
        if not awaited and read.host.timeout_ms is not None:
            valid = "left out where no coroutine is guarded, for a sync call cannot be interrupted"
            raise out_of_range("timeout_ms", valid, read.host.timeout_ms)
        check_clock(read.host.clock)
        return cls(read.config, read.host, outer)


class Inquiry:
    """The engine of one circuit, and what the store's answers mean.

    Args:
        name: The circuit's.
        link: The store's.
        policy: How the circuit behaves.
        changed: Told of each transition, and which other instance made it; `None` if it was this process.
        heard: How many listen to its calls.
    """

    __slots__ = ("_name", "engine")

    def __init__(
        self,
        name: str,
        link: Link[Sends],
        policy: PreparedSharedPolicy,
        changed: Callable[[Transition, str | None], None],
        heard: Loudness | None = None,
    ) -> None:
        self._name = name
        self.engine = Engine(name, link, policy.config, policy.host, changed, heard=heard or Loudness())

    def snapshot(self, answer: Answer) -> Snapshot:
        """What was read.

        Raises:
            StoreUnavailableError: Nothing was.
        """
        if not isinstance(answer, tuple):
            raise self.unavailable(answer)
        return Snapshot(*answer)

    def check_done(self, answer: Answer) -> None:
        """A manual operation was done.

        Raises:
            StoreUnavailableError: It was not, as far as is known.
        """
        if answer != "controlled":
            raise self.unavailable(answer)

    def unavailable(self, answer: Answer) -> StoreUnavailableError:
        """The error of who needed an answer of the store."""
        if not isinstance(answer, StoreError):
            return StoreUnavailableError(self._name)
        return unavailable(self._name, answer)


class Asking(Inquiry):
    """The same of a circuit that guards calls.

    Args:
        told: The circuit as its listeners know it.
        link: The store's.
        policy: How the circuit behaves.
        noted: Told of each change whether the circuit is closed now.
    """

    __slots__ = ("_instance", "_noted", "_told")

    def __init__(
        self,
        told: Told,
        link: Link[Sends],
        policy: PreparedSharedPolicy,
        noted: Callable[[bool], object] | None,
    ) -> None:
        self._told = told
        self._noted = noted
        self._instance = link.instance
        super().__init__(told.rules.circuit, link, policy, self._changed, told.events.loudness)
        if link.hearing is not None:
            link.audience.add(self.engine)

    def settle(self, grant: SharedGrant | None, ending: Ending) -> Talk:
        """Counts an ending; whether it counts is the answer, where the store need not hear of it. Raises nothing."""
        counted = self._remembering(ending) if ending.outcome == "failure" else None
        return self.engine.settle(grant, CODES[ending.outcome], counted)

    def refusal(self, answer: Answer) -> Refusal:
        """Why a call may not go ahead; the listeners hear of it."""
        if not isinstance(answer, Denial):
            return self._told.refused(self.unavailable(answer))
        last_failure = self._told.last_failure
        return self._told.refused(CircuitOpenError(self._name, answer.state, answer.retry_after_ms, last_failure))

    def _remembering(self, ending: Ending) -> Callable[[], None]:
        """What is remembered of a failure once it has counted, before its trip is told: who hears of that asks why."""

        def remember() -> None:
            # Put into words only now: whatever the error does then, the store knows of it.
            self._told.last_failure = failure_text(ending.error) if ending.reason is None else ending.reason

        return remember

    def _changed(self, change: Transition, instance: str | None) -> None:
        """Takes a change, and which other instance made it; `None` if it was this process."""
        is_closed = change.to_state == "closed"
        if is_closed:
            self._told.last_failure = None
        if self._noted is not None:
            self._noted(is_closed)
        if not self._told.events.hears("state_change"):
            return
        told = StateChange(
            circuit=self._name,
            from_state=change.from_state,
            to_state=change.to_state,
            at=change.at,
            failures=change.failures,
            open_ms=change.open_ms,
            reason=change.reason,
            source="local" if instance is None else "remote",
            instance=self._instance if instance is None else instance,
        )
        self._told.events.emit("state_change", told)


def ignore(_change: Transition, _instance: str | None) -> None:
    """Whoever steers knows what he has brought about."""


def unavailable(circuit: str, cause: StoreError) -> StoreUnavailableError:
    """The error of who needed an answer of the store: `*` stands for all of its circuits."""
    error = StoreUnavailableError(circuit, str(cause))
    error.__cause__ = cause
    return error


def rules_of(name: object, link: Link[Sends], policy: PreparedSharedPolicy) -> tuple[CallRules, Emitter]:
    """What all calls of one circuit have in common, and who listens to them.

    Raises:
        InvalidNameError: The name cannot be one.
    """
    events = Emitter(outer=policy.outer)
    loudness = events.loudness
    stopwatch = link.stopwatch if policy.host.clock is None else policy.host.clock
    return CallRules(checked_name(name), policy.host, stopwatch, lambda: loudness.count), events
