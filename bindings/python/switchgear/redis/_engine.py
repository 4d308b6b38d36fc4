"""One shared circuit as this process sees it: the native engine, asked with the time, and what it wants to send."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from typing import Any, Literal, Protocol

from switchgear._config import HostPolicy
from switchgear._error import StoreError
from switchgear._log import tell_operator
from switchgear._native import (
    Announcement,
    Circuit,
    Flight,
    Loudness,
    Node,
    SharedConfig,
    SharedGrant,
    Standing,
    Transition,
    forked,
    is_moment,
)
from switchgear.redis._clients import Kind
from switchgear.redis._link import Link, StoreEvent, both
from switchgear.redis._talk import Answer, Landed, Talk, Times

#: The manual operations.
Control = Literal["reset", "trip", "force_open", "disable"]


class Sends(Protocol):
    """What the engine needs of the way to the store."""

    def post_rest(self, talk: Talk) -> None:
        """Sends what came of a conversation and nobody waits for."""


class _OfProcess:
    """What one process knows of the circuit: one that was forked gives its calls ids of its own."""

    __slots__ = ("ahead", "circuit", "heirs", "node", "pid")

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.pid = os.getpid()
        #: Where the circuit was at its last call.
        self.node: Node | None = None
        #: What tells successes that nobody waits for, the last of them.
        self.ahead: Any = None
        #: What took its place in a process that was forked from this one: one at most, by the id of that.
        self.heirs: dict[int, _OfProcess] = {}


class Engine:
    """Asks the engine, which decides, and hands out the conversations to be carried to the store."""

    def __init__(
        self,
        name: str,
        link: Link[Sends],
        config: SharedConfig,
        host: HostPolicy,
        on_transition: Callable[[Transition, str | None], None],
        *,
        heard: Loudness,
    ) -> None:
        """Asks nothing of the store. `heard`: who listens to calls. Raises `InvalidNameError`.

        `on_transition` is told of each transition, and which other instance made it; `None` if it was this process.
        """
        self.name = name
        self.link = link
        self._on_transition = on_transition
        self._config = config
        self._has_one_node = link.client.kind is not Kind.CLUSTER
        self._times = link.times if host.clock is None else both(host.clock)
        self._is_host_time = host.clock is None and link.is_host_time
        #: What calls need not ask for.
        self.standing = Standing(config, heard, host.is_plain and self._is_host_time)
        self._of_process = _OfProcess(self._new_engine())
        self.standing.follow(self._of_process.circuit)
        self.key = self._of_process.circuit.routing_key

    def free(self) -> SharedGrant | None:
        """The grant of a call that need not be asked for. Raises what the clock raises."""
        if self._is_host_time or not self.standing.stands:
            return self.standing.grant
        now = self._times()[0]
        # A clock that gives no time is for `admit` to refuse.
        return self.standing.grant_at(now) if is_moment(now) else None

    def admit(self) -> Talk | Flight:
        """Asks for one call, or gives what has been asked for others already, to be joined.

        Raises `InvalidTimeError` if the clock is wrong, or what the clock raises.
        """
        self.link.listen()
        engine, at, node = self._engine(), self._times(), self._node()
        step = engine.admit(node, *at)
        if isinstance(step, Flight):
            return step
        talk = Talk.begun(self, engine, node, at, step)
        if (flight := talk.joined) is None:
            return talk
        self.link.line.post_rest(talk)
        return flight

    def admit_unasked(self, error: StoreError | None) -> Talk:
        """Decides on one call without the store, because of an error. Raises as `admit`."""
        engine, at, node = self._engine(), self._times(), self._node()
        return Talk.begun(self, engine, node, at, engine.admit_unasked(*at), error=error)

    def after(self, landed: Landed | None, flight: Flight) -> Answer | Talk | Flight:
        """What comes of having joined a flight, which may not have landed within the deadline. Raises as `admit`."""
        if landed is None:
            self._bury(flight)
            return self.admit_unasked(self.too_late())
        if landed.others == "share" and landed.answer is not None:
            return landed.answer
        if landed.others == "ask-again":
            return self.admit()
        return self.admit_unasked(landed.error)

    def settle(self, grant: SharedGrant | None, outcome: int, counted: Callable[[], None] | None) -> Talk:
        """Settles a call; without a grant by the plain rules of the current state. Raises nothing.

        `counted` is called when the outcome has counted, also after the deadline, and before anybody hears of a trip.
        """
        engine, node = self._engine(), self._node()
        try:
            at = self._times()
            step = engine.settle(node, *at, grant, outcome)
        except Exception as error:  # noqa: BLE001 - a clock is foreign code
            # A broken clock: the next admission reports it to its caller, this caller has a result to get.
            self.report(error)
            talk = Talk(self, engine, node, (0, 0))
            talk.answer = "stale"
            return talk
        return Talk.begun(self, engine, node, at, step, counted=counted)

    def goes_ahead(self, posted: object) -> None:
        """Takes what tells successes that nobody waits for: failures that are told later come after it."""
        self._of_process.ahead = posted

    def told_before(self) -> Iterator[Any]:
        """What a failure that is told now has to wait for, one after the other.

        Commands over several connections overtake each other, and a success that comes after the failure which it
        preceded ends another row than it did.
        """
        here = self._of_process
        if (first := here.ahead) is None:
            return
        yield first
        # What had been summed meanwhile, and is on its way since. What comes later still is none of this failure's.
        if (then := here.ahead) is not first:
            yield then

    def snapshot(self) -> Talk:
        """Reads the circuit. Raises `InvalidTimeError` if the clock is wrong, or what the clock raises."""
        self.link.listen()
        engine, at, node = self._engine(), self._times(), self._node()
        return Talk.begun(self, engine, node, at, engine.get_state(node, *at))

    def control(self, operation: Control, for_ms: object = None) -> Talk:
        """Does a manual operation. Raises `ConfigError`, `InvalidTimeError`, or what the clock raises."""
        self.link.listen()
        engine, at, node = self._engine(), self._times(), self._node()
        if operation == "trip":
            step = engine.trip(node, *at, for_ms)
        else:
            operations = {"reset": engine.reset, "force_open": engine.force_open, "disable": engine.disable}
            step = operations[operation](node, *at)
        return Talk.begun(self, engine, node, at, step)

    def later(self, fallback: Times) -> Times:
        """The time now, or the time given where the clock is wrong: its next reading for a caller will say so."""
        try:
            at = self._times()
            return at if is_moment(at[0]) else fallback
        except Exception:  # noqa: BLE001 - a clock is foreign code
            return fallback

    def heard(self, announcement: Announcement) -> None:
        """Takes what an instance has announced of the circuit. Raises nothing of ours: nobody has asked."""
        engine, node = self._engine(), self._node()
        step = engine.on_event(node, *self.later((0, 0)), announcement)
        if step.transition is not None:
            self._on_transition(step.transition, announcement.instance)

    def changed(self, transition: Transition) -> None:
        """Takes a transition that a call of this process has made."""
        self._on_transition(transition, None)

    def report(self, error: BaseException) -> None:
        """Tells the store's listeners of an error."""
        events = self.link.events
        if events.hears("store_error"):
            events.emit("store_error", StoreEvent(circuit=self.name, at=self._now(), error=error))

    def report_mismatch(self) -> None:
        """Tells the store's listeners that the half-open period runs by another configuration than ours."""
        self.link.events.emit("config_mismatch", StoreEvent(circuit=self.name, at=self._now()))

    def report_health(
        self, health: Literal["degraded", "restored"], whose: Literal["node", "circuit"], error: StoreError | None
    ) -> None:
        """Tells the operator and the store's listeners that the store is not asked any more, or is asked again."""
        circuit = self.name if whose == "circuit" else None
        self.link.events.emit(health, StoreEvent(circuit=circuit, at=self._now(), error=error))
        of = f"store with prefix `{self.link.prefix}`"
        whom = f"circuit `{circuit}`, and the {of}," if circuit is not None else f"the {of}"
        if health == "degraded":
            said = str(error).rstrip(".")
            tell_operator("warning", f"{whom} is not asked any more: {said}; what calls meet is `on_store_failure`")
        else:
            tell_operator("info", f"{whom} is asked again")

    def too_late(self) -> StoreError:
        """The error of who has waited long enough."""
        return StoreError(f"no answer within {self.link.timeout_ms} ms")

    def _node(self) -> Node:
        """Where the circuit is now, or was when the client knew it last.

        Of a server that another has taken over from nobody would hear that it is back: so it is no trouble any more.
        """
        here = self._of_process
        before = here.node
        if before is not None and self._has_one_node:
            return before
        node = here.node = self.link.nodes.of(self.key, before)
        if before is not None and before is not node and before.replaced():
            self.report_health("restored", "node", None)
        return node

    def _now(self) -> int:
        return self.later((0, 0))[0]

    def _bury(self, flight: Flight) -> None:
        """Ends a flight whose leader is no more: one that is alive has ended it by now, which makes this nothing."""
        if flight.age_seconds * 1000 <= self.link.timeout_ms:
            # Ours began before it: we had joined others.
            return
        engine, node = self._engine(), self._node()
        Talk.of_flight(self, engine, node, self.later((0, 0)), flight).expired()

    def _engine(self) -> Circuit:
        here = self._of_process
        pid = os.getpid()
        if here.pid != pid:
            # Two threads may both get here. Single operations of a dict are atomic: both take the one that is first, as
            # each must know what the other has been told. What stands is what that one says, and no other.
            here = here.heirs.setdefault(pid, _OfProcess(self._new_engine()))
            self.standing.follow(here.circuit)
            self._of_process = here
        return here.circuit

    def _new_engine(self) -> Circuit:
        # Drawn anew for each circuit object, so that two of one name do not give their calls the same ids.
        nonce = secrets.randbits(64)
        link = self.link
        reads_primary = link.client.reads_primary
        return Circuit(self.name, link.prefix, nonce, link.instance, reads_primary, self._config)


# What stands in a process does not stand in one that is forked from it.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forked)
