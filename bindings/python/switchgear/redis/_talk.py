"""A conversation with the store, without the I/O: what to send next, whatever the reply, and the answer in the end.

The engine decides, whoever drives the conversation carries: it sends the command of each `Ask`, hands in what came of
it, and goes on until there is an answer. What is left to send then is sent as well, but nobody waits for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from switchgear._error import StoreError
from switchgear._native import Ask, Circuit, Denial, SharedGrant, Step
from switchgear.redis._replies import error_text, integers

if TYPE_CHECKING:
    from switchgear._native import _Snapshot
    from switchgear.redis._engine import Engine

#: An answer of the store; the error is why there is none.
Answer: TypeAlias = "SharedGrant | Denial | StoreError | str | _Snapshot"


class Talk:
    """A conversation: from one question to its answer."""

    __slots__ = ("_circuit", "_counted", "_engine", "_reads", "_reported", "_started_at", "_ticket", "answer")

    def __init__(
        self,
        circuit: Engine,
        engine: Circuit,
        ask: Ask,
        started_at: int,
        counted: Callable[[], None] | None = None,
    ) -> None:
        self._circuit = circuit
        self._engine = engine
        self._ticket = ask.ticket
        self._reads = ask.reads
        self._started_at = started_at
        self._counted = counted
        self._reported = False
        #: What is answered to whoever waits; none as long as there is something to send for it.
        self.answer: Answer | None = None

    @property
    def key(self) -> str:
        """What its commands are routed by."""
        return self._circuit.key

    def replied(self, reply: object) -> Ask | None:
        """Takes a reply. What to send next: for this conversation if there is no answer yet, else for `aftermath`."""
        now = self._circuit.later(self._started_at)
        if self._reads:
            step = self._engine.on_reading(now, self._ticket, reply)
        else:
            step = self._engine.on_reply(now, self._ticket, integers(reply))
        error = StoreError("the reply is none that a command of ours gets") if step.malformed else None
        return self._follow(step, error)

    def failed(self, error: BaseException) -> Ask | None:
        """Takes what the client raised. What to send next, as in `replied`."""
        text = error_text(error)
        step = self._engine.on_error(self._circuit.later(self._started_at), self._ticket, text)
        return self._follow(step, StoreError(text))

    def expired(self) -> None:
        """Takes that the deadline has passed: whoever waits gets an answer now."""
        step = self._engine.on_deadline(self._ticket)
        # Said once, by whoever comes first: a reply may come at the same time, in another thread.
        if step.answer is not None:
            self._follow(step, self._circuit.too_late())

    def lost(self) -> Ask | None:
        """Takes that the deadline has passed and that no reply will come. What to send next, for `aftermath`."""
        self.expired()
        step = self._engine.on_error(self._circuit.later(self._started_at), self._ticket, "the reply was lost")
        return self._follow(step, None)

    def came_late(self, reply: object, error: BaseException | None) -> Ask | None:
        """Takes what came when nobody waited any more. What to send next, for `aftermath`."""
        self.expired()
        return self.replied(reply) if error is None else self.failed(error)

    def hush(self) -> None:
        """Its caller was interrupted: that there is no answer for him is no trouble of the store's."""
        self._reported = True

    def aftermath(self, ask: Ask) -> Talk:
        """The conversation that an `Ask` belongs to which is left when this one has its answer."""
        return self if ask.ticket == self._ticket else Talk(self._circuit, self._engine, ask, self._started_at)

    def _follow(self, step: Step, error: StoreError | None) -> Ask | None:
        """Does what the engine says next."""
        ask, answer = step.ask, step.answer
        asks_again = ask is not None and ask.ticket == self._ticket
        if ask is not None and asks_again:
            self._reads = ask.reads
        if answer is not None and self.answer is None:
            self.answer = (error or StoreError("no answer")) if answer == "unavailable" else answer
        if step.counted and self._counted is not None:
            self._counted()
        if step.transition is not None:
            self._circuit.on_transition(step.transition)
        if step.config_mismatch:
            self._circuit.report_mismatch()
        if error is not None and not asks_again and not self._reported:
            self._reported = True
            self._circuit.report(error)
        return ask
