"""A conversation with the store, without the I/O: what to send next, whatever the reply, and the answer in the end.

The engine decides, whoever drives the conversation carries: it sends the command of each `Ask`, hands in what came of
it, and goes on until there is an answer. What is left to send then is sent as well, but nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from switchgear._error import StoreError
from switchgear._native import Ask, Circuit, Denial, Flight, Node, SharedGrant, Step
from switchgear.redis._replies import error_text, integers

if TYPE_CHECKING:
    from switchgear._native import _Snapshot
    from switchgear.redis._engine import Engine

#: An answer of the store; the error is why there is none.
Answer: TypeAlias = "SharedGrant | Denial | StoreError | str | _Snapshot"

#: The host's time, and the store's where the user says what it is.
Times: TypeAlias = "tuple[int, int | None]"


@dataclass(frozen=True, slots=True)
class Landed:
    """What came of an admission that others had joined."""

    answer: Answer | None
    error: StoreError | None
    """Why the store gave none."""
    others: Literal["share", "ask-again", "go-on"]
    """What it is to them."""


class Talk:
    """A conversation: from one question to its answer."""

    __slots__ = (
        "_circuit",
        "_counted",
        "_engine",
        "_next",
        "_node",
        "_reads",
        "_reported",
        "_rest",
        "_started_at",
        "_ticket",
        "answer",
        "flight",
    )

    def __init__(
        self,
        circuit: Engine,
        engine: Circuit,
        node: Node,
        started_at: Times,
        counted: Callable[[], None] | None = None,
    ) -> None:
        self._circuit = circuit
        self._engine = engine
        self._node = node
        self._started_at = started_at
        self._counted = counted
        self._ticket: int | None = None
        self._next: Ask | None = None
        self._rest: list[Ask] = []
        self._reads = False
        self._reported = False
        #: What is answered to whoever waits; none as long as there is something to send for it.
        self.answer: Answer | None = None
        #: Of an admission: what it leads, or has to join.
        self.flight: Flight | None = None

    @classmethod
    def begun(
        cls,
        circuit: Engine,
        engine: Circuit,
        node: Node,
        started_at: Times,
        step: Step,
        *,
        counted: Callable[[], None] | None = None,
        error: StoreError | None = None,
    ) -> Talk:
        """The conversation that a question begins, or ends at once.

        Args:
            circuit: The circuit that it is about.
            engine: Its native part.
            node: The server that has it.
            started_at: When the question was asked.
            step: What the engine says to it.
            counted: Called when the outcome that it is about has counted, before anybody hears of a trip.
            error: Why there is no answer, should there be none.
        """
        talk = cls(circuit, engine, node, started_at, counted)
        talk._ticket = step.ticket
        talk.flight = step.flight
        talk._follow(step, error, is_news=False)
        return talk

    @classmethod
    def of_flight(cls, circuit: Engine, engine: Circuit, node: Node, started_at: Times, flight: Flight) -> Talk:
        """The conversation of somebody else's flight."""
        talk = cls(circuit, engine, node, started_at)
        talk._ticket, talk.flight = flight.ticket, flight
        return talk

    @property
    def key(self) -> str:
        """What its commands are routed by."""
        return self._circuit.key

    @property
    def is_open(self) -> bool:
        """Whether there is no answer yet."""
        return self.answer is None

    def given(self) -> Answer:
        """The answer; a `StoreError` where there is none."""
        return StoreError("no answer") if self.answer is None else self.answer

    @property
    def succeeds(self) -> bool:
        """Whether what is to be sent for it now tells of successes."""
        return self._next is not None and self._next.succeeds

    def goes_ahead(self, posted: object) -> None:
        """Takes what becomes of it in another thread or task: failures that are told later come after it."""
        self._circuit.goes_ahead(posted)

    @property
    def joined(self) -> Flight | None:
        """What somebody else has asked for already, if that is so."""
        return self.flight if self._ticket is None else None

    def take(self) -> Ask | None:
        """What to send for it now."""
        ask, self._next = self._next, None
        if ask is not None:
            self._reads = ask.reads
        return ask

    def asides(self) -> Iterator[Talk]:
        """The conversations that came of it for which nobody waits; itself, too, where its answer is there already."""
        if self.answer is not None and self._next is not None:
            yield self
        # Two threads may look at the same time; each takes what it finds.
        while self._rest:
            try:
                ask = self._rest.pop(0)
            except IndexError:
                return
            aside = Talk(self._circuit, self._engine, self._node, self._started_at)
            aside._ticket, aside._next = ask.ticket, ask
            yield aside

    def replied(self, reply: object) -> None:
        """Takes a reply."""
        at = self._circuit.later(self._started_at)
        if self._reads:
            step = self._engine.on_reading(self._node, *at, self._of(), reply)
        else:
            step = self._engine.on_reply(self._node, *at, self._of(), integers(reply))
        self._follow(step, StoreError("the reply is none that a command of ours gets") if step.malformed else None)

    def failed(self, error: BaseException) -> None:
        """Takes what the client raised."""
        text = error_text(error)
        step = self._engine.on_error(self._node, *self._circuit.later(self._started_at), self._of(), text)
        self._follow(step, StoreError(text))

    def expired(self) -> None:
        """Takes that the deadline has passed: whoever waits gets an answer now."""
        if self.answer is not None or self._ticket is None:
            return
        step = self._engine.on_deadline(self._node, *self._circuit.later(self._started_at), self._ticket)
        # Said once, by whoever comes first: a reply may come at the same time, in another thread.
        is_news = step.answer is not None or step.health is not None
        self._follow(step, self._circuit.too_late() if is_news else None)

    def lost(self) -> None:
        """Takes that the deadline has passed and that no reply will come."""
        self.expired()
        self._never()

    def gone(self) -> None:
        """Takes that its caller was interrupted, and that no reply will come: that is no trouble of the store's."""
        self.left()
        self._never()

    def left(self) -> None:
        """Takes that its caller was interrupted. A reply may still come."""
        self._reported = True
        if self._ticket is None:
            return
        self._follow(self._engine.on_gone(*self._circuit.later(self._started_at), self._ticket), None)

    def came_late(self, reply: object, error: BaseException | None) -> None:
        """Takes what came when nobody waited any more."""
        self.expired()
        if error is None:
            self.replied(reply)
        else:
            self.failed(error)

    def _never(self) -> None:
        if self._ticket is None:
            return
        at = self._circuit.later(self._started_at)
        self._follow(self._engine.on_error(self._node, *at, self._ticket, "the reply was lost"), None)

    def _of(self) -> int:
        if self._ticket is None:  # pragma: no cover - nothing is sent without one
            raise AssertionError("nothing was asked")
        return self._ticket

    def _follow(self, step: Step, error: StoreError | None, *, is_news: bool = True) -> None:
        """Does what the engine says next."""
        if error is not None:
            self._circuit.link.nodes.note(self._node, error)
        asks_again = False
        for ask in step.asks:
            if ask.ticket == self._ticket:
                asks_again = True
                self._next = ask
            else:
                self._rest.append(ask)
        answer: Any = step.answer
        if answer is not None:
            if answer == "unavailable":
                answer = error or self._circuit.link.nodes.trouble(self._node)
            if self.answer is None:
                self.answer = answer
        if self.flight is not None and self._ticket is not None and (answer is not None or step.others == "ask-again"):
            # Before anything that is foreign code: they wait.
            landed = Landed(answer, error, step.others)
            for waiter in self.flight.land(landed):
                waiter(landed)
        if step.counted and self._counted is not None:
            self._counted()
        if step.transition is not None:
            self._circuit.changed(step.transition)
        if step.config_mismatch:
            self._circuit.report_mismatch()
        if error is not None and is_news and not asks_again and not self._reported:
            self._reported = True
            self._circuit.report(error)
        if step.health is not None:
            self._circuit.report_health(*step.health, error)
