"""A shared circuit whose callers block."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from switchgear._circuit import UNCOUNTED, SyncCircuit
from switchgear._classify import NEUTRAL, Ending
from switchgear._error import Refusal
from switchgear._native import Flight, SharedGrant
from switchgear._permit import SharedPermit
from switchgear._types import Snapshot
from switchgear.redis._blocking import Line, Posted
from switchgear.redis._carry import PATIENCE_SECONDS
from switchgear.redis._engine import Control
from switchgear.redis._link import Link
from switchgear.redis._shared import Asking, PreparedSharedPolicy, rules_of
from switchgear.redis._talk import Answer, Talk


class BlockingCircuit(SyncCircuit[SharedPermit]):
    """One circuit: the engine with the store's clock and client, and what it tells.

    Args:
        name: The circuit's.
        link: The store's.
        policy: How it behaves.
        noted: Told of each change whether the circuit is closed now.
    """

    __slots__ = ("_asking", "_leaving", "_line")

    other_entry = "`switchgear.redis.asyncio.DistributedCircuitBreaker`"

    def __init__(
        self,
        name: object,
        link: Link[Line],
        policy: PreparedSharedPolicy,
        noted: Callable[[bool], object] | None = None,
    ) -> None:
        super().__init__(*rules_of(name, link, policy))
        self._line = link.line
        self._asking = Asking(self, link, policy, noted)
        self.hints = self._asking.engine.standing
        # Slots that are on their way back, and until when that may take.
        self._leaving: dict[Posted, float] = {}

    def ask(self) -> SharedGrant | Refusal:
        """Asks for one call: the grant, or the refusal, which was told already."""
        free = self._asking.engine.free()
        if free is not None:
            return free
        answer = self._admission()
        if not isinstance(answer, SharedGrant):
            return self._asking.refusal(answer)
        if answer.is_probe:
            # The garbage collector may have to give it back.
            self._line.ready()
        return answer

    def permit_of(self, grant: Any, *, probe: bool) -> SharedPermit:
        """The permit that a grant is in."""
        return SharedPermit(self, grant, probe=probe)

    def count(self, grant: Any, ending: Ending) -> bool:
        """Counts an ending. Whether it applied; what the store does not take does not."""
        talk = self._asking.settle(grant, ending)
        ahead = self._asking.engine.told_before() if ending.outcome == "failure" else ()
        return self._line.converse(talk, ahead=ahead) == "applied"

    def settle_block(self, grant: Any, ending: Ending) -> None:
        """Counts the end of a call, and tells it. Waits for nothing where it ended because nobody wants it any more.

        That is said of a generator that is closed, also by the garbage collector: in whatever this thread is doing,
        which may be to hold a lock of the very client.
        """
        if ending is not NEUTRAL or grant is UNCOUNTED:
            if grant is not UNCOUNTED and ending.outcome == "success" and grant.is_free:
                self.tell(ending)
                return
            super().settle_block(grant, ending)
            return
        talk = self._asking.settle(grant, ending)
        for aside in talk.asides():
            self._line.post(aside, starts=False)
        if talk.answer is None:
            done = self._line.post(talk, insists=True, starts=False)
            self._leaving[done] = time.monotonic() + PATIENCE_SECONDS
        self.tell(ending)

    def snapshot(self) -> Snapshot:
        """Everything the store knows of the circuit."""
        return self._asking.snapshot(self._converse(self._asking.engine.snapshot()))

    def control(self, operation: Control, for_ms: object = None) -> None:
        """Does a manual operation."""
        self._asking.check_done(self._converse(self._asking.engine.control(operation, for_ms)))

    def _admission(self) -> Answer:
        """Asks for one call, or waits with others for what somebody has asked; all in all until one deadline."""
        engine = self._asking.engine
        asked = engine.admit()
        deadline = self._line.deadline()
        while isinstance(asked, Flight):
            after = engine.after(self._line.join(asked, deadline), asked)
            if not isinstance(after, (Talk, Flight)):
                return after
            asked = after
        answer = self._converse(asked, deadline)
        if asked.answer is None:
            # Somebody who had waited for it has given it up before us.
            return self._line.converse(engine.admit_unasked(engine.too_late()))
        return answer

    def _converse(self, talk: Talk, deadline: float | None = None) -> Answer:
        """Asks the store, after what this process has told it before."""
        if not self._leaving or talk.answer is not None:
            return self._line.converse(talk, deadline)
        now = time.monotonic()
        for done, until in list(self._leaving.items()):
            if done.is_set() or until < now:
                self._leaving.pop(done, None)
        return self._line.converse(talk, deadline, ahead=list(self._leaving))
