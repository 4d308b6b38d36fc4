"""A shared circuit whose callers block."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from switchgear._circuit import UNCOUNTED, SyncCircuit
from switchgear._classify import NEUTRAL, Ending
from switchgear._error import Refusal
from switchgear._native import Ask, SharedGrant
from switchgear._permit import SharedPermit
from switchgear._types import Snapshot
from switchgear.redis._blocking import Line
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
        # Slots that are on their way back, and until when that may take.
        self._leaving: dict[threading.Event, float] = {}

    def ask(self) -> SharedGrant | Refusal:
        """Asks for one call: the grant, or the refusal, which was told already."""
        answer = self._converse(self._asking.engine.admit())
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
        told = self._asking.settle(grant, ending)
        return (told if isinstance(told, str) else self._line.converse(*told)) == "applied"

    def settle_block(self, grant: Any, ending: Ending) -> None:
        """Counts the end of a call, and tells it. Waits for nothing where it ended because nobody wants it any more.

        That is said of a generator that is closed, also by the garbage collector: in whatever this thread is doing,
        which may be to hold a lock of the very client.
        """
        if ending is not NEUTRAL or grant is UNCOUNTED:
            super().settle_block(grant, ending)
            return
        told = self._asking.settle(grant, ending)
        if not isinstance(told, str):
            self._leaving[self._line.post(*told, starts=False)] = time.monotonic() + PATIENCE_SECONDS
        self.tell(ending)

    def snapshot(self) -> Snapshot:
        """Everything the store knows of the circuit."""
        return self._asking.snapshot(self._converse(self._asking.engine.snapshot()))

    def control(self, operation: Control, for_ms: object = None) -> None:
        """Does a manual operation."""
        self._asking.check_done(self._converse(self._asking.engine.control(operation, for_ms)))

    def _converse(self, opening: tuple[Talk, Ask]) -> Answer:
        """Asks the store, after what this process has told it before."""
        if not self._leaving:
            return self._line.converse(*opening)
        now = time.monotonic()
        for done, until in list(self._leaving.items()):
            if done.is_set() or until < now:
                self._leaving.pop(done, None)
        return self._line.converse(*opening, ahead=list(self._leaving))
