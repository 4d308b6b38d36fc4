"""The circuit that lives in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from switchgear._circuit import SyncCircuit
from switchgear._classify import CODES, CallRules, Ending, Outcome
from switchgear._clock import check_clock, monotonic_now
from switchgear._config import BREAKER_POLICY, HostPolicy, read_policy
from switchgear._error import CircuitOpenError
from switchgear._events import Emitter
from switchgear._native import FAILURE, SUCCESS, Config, Denial, Grant, Machine, Permit, Transition
from switchgear._permit import block_ending, by_hand
from switchgear._settle import settle_as
from switchgear._types import Settled, StateChange


@dataclass(frozen=True, slots=True)
class PreparedPolicy:
    """A policy that was read already, and whom its circuits report to: how a group makes its members."""

    config: Config
    host: HostPolicy
    outer: Emitter | None = None

    @classmethod
    def of(cls, policy: Any, outer: Emitter | None = None) -> PreparedPolicy:
        """Reads the policy of one breaker, and tries its clock."""
        read = read_policy([policy], BREAKER_POLICY)
        check_clock(read.host.clock)
        return cls(read.config, read.host, outer)


class LocalCircuit(SyncCircuit[Permit]):
    """One circuit: the native machine with the host's clock, and what it tells.

    Args:
        name: The circuit's.
        policy: How it behaves.
        noted: Told of each change whether the circuit is closed now.
    """

    __slots__ = ("_noted", "_untold", "machine", "now")

    other_entry = "execute_async"

    def __init__(self, name: str, policy: PreparedPolicy, noted: Callable[[bool], object] | None = None) -> None:
        host = policy.host
        self.now = monotonic_now if host.clock is None else host.clock
        events = Emitter(outer=policy.outer)
        loudness = events.loudness
        super().__init__(CallRules(name, host, self.now, lambda: loudness.count), events)
        self.hints = self.machine = Machine(policy.config, loudness, host.is_plain)
        self._noted = noted
        # Transitions that are being told: whoever is at it may be interrupted.
        self._untold: list[Transition] = []

    def ask(self) -> Grant | int | CircuitOpenError:
        """Asks for one call: the grant, the epoch of a closed one for short, or the refusal."""
        epoch = self.machine.hot
        if epoch is not None:
            return epoch
        admission = self.machine.admit(self.now())
        self.follow()
        if not isinstance(admission, Denial):
            return admission
        refusal = CircuitOpenError(self.rules.circuit, admission.state, admission.retry_after_ms, self.last_failure)
        self.refused(refusal)
        return refusal

    def count(self, grant: Grant | int | None, ending: Ending) -> bool:
        """Counts an ending. Whether it applied."""
        code = CODES[ending.outcome]
        if code == SUCCESS:
            epoch = self.machine.hot
            # Without a permit as with the current one: applied, and nothing changes.
            if epoch is not None and (grant is None or grant == epoch):
                return True
        if code != FAILURE:
            return self._settle(grant, code)
        # Before it trips: the listeners of the trip may be refused already, and want to know why.
        before = self.remember(ending)
        text, applied = self.last_failure, False
        try:
            applied = self._settle(grant, code)
        finally:
            if not applied and self.last_failure is text:
                self.last_failure = before
        return applied

    def permit_of(self, grant: Any, *, probe: bool) -> Permit:
        """The permit that a grant is in."""
        return Permit(self, grant, probe=probe)

    def begin(self) -> int | None:
        """When the block of a permit begins; for `Permit`."""
        return self.rules.begin()

    def settle_permit(self, grant: Any, outcome: Outcome, error: BaseException | None) -> Settled:
        """Settles what was reported by hand, an error as the classification says; for `Permit`."""
        return self.settle_by_hand(grant, by_hand(self.rules, error) if outcome == "failure" else Ending(outcome))

    def leave_block(self, grant: Grant | int, begun: int | None, error: BaseException | None) -> None:
        """Settles the block of a permit that was not settled in it; for `Permit`."""
        # Most blocks end with a success that changes nothing, and that nobody wants to hear of.
        if error is not None or begun is not None or grant != self.machine.hot:
            settle_as(partial(self.settle_block, grant), partial(block_ending, self.rules, begun, error))

    def follow(self) -> None:
        """Tells what the machine has gone through, after each operation. In its order, whichever thread comes first."""
        if self.machine.has_transitions:
            self.events.later(self._tell_transitions)

    def _settle(self, grant: Grant | int | None, code: int) -> bool:
        if isinstance(grant, int):
            applied = self.machine.settle_closed(self.now(), grant, code)
        else:
            applied = self.machine.settle(self.now(), grant, code)
        self.follow()
        return applied

    def _tell_transitions(self) -> None:
        untold = self._untold
        untold.extend(self.machine.take_transitions())
        try:
            while untold:
                self._changed(untold.pop(0))
        finally:
            # A listener was interrupted: the next event that happens brings the rest.
            if untold:
                self.events.later(self._tell_transitions)

    def _changed(self, change: Transition) -> None:
        is_closed = change.to_state == "closed"
        if is_closed:
            self.last_failure = None
        if self._noted is not None:
            self._noted(is_closed)
        if not self.events.hears("state_change"):
            return
        told = StateChange(
            circuit=self.rules.circuit,
            from_state=change.from_state,
            to_state=change.to_state,
            at=change.at,
            failures=change.failures,
            open_ms=change.open_ms,
            reason=change.reason,
        )
        self.events.tell("state_change", told)


def shown_state(machine: Machine) -> str:
    """The state of a circuit in a word; and the mode, where an operator decides."""
    # Neither depends on the time.
    state, mode, *_ = machine.snapshot(0)
    return state if mode == "auto" else f"{state} ({mode})"
