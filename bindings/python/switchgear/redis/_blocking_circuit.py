"""A shared circuit whose callers block."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from switchgear._circuit import SyncCircuit
from switchgear._classify import Ending
from switchgear._error import Refusal
from switchgear._native import SharedGrant
from switchgear._types import Snapshot
from switchgear.redis._blocking import Line
from switchgear.redis._engine import Control
from switchgear.redis._link import Link
from switchgear.redis._shared import Asking, PreparedSharedPolicy, rules_of


class BlockingCircuit(SyncCircuit):
    """One circuit: the engine with the store's clock and client, and what it tells.

    Args:
        name: The circuit's.
        link: The store's.
        policy: How it behaves.
        noted: Told of each change whether the circuit is closed now.
    """

    __slots__ = ("_asking", "_line")

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

    def ask(self) -> SharedGrant | Refusal:
        """Asks for one call: the grant, or the refusal, which was told already."""
        answer = self._line.converse(*self._asking.engine.admit())
        return answer if isinstance(answer, SharedGrant) else self._asking.refusal(answer)

    def count(self, grant: Any, ending: Ending) -> bool:
        """Counts an ending. Whether it applied; what the store does not take does not."""
        told = self._asking.settle(grant, ending)
        return (told if isinstance(told, str) else self._line.converse(*told)) == "applied"

    def snapshot(self) -> Snapshot:
        """Everything the store knows of the circuit."""
        return self._asking.snapshot(self._line.converse(*self._asking.engine.snapshot()))

    def control(self, operation: Control, for_ms: object = None) -> None:
        """Does a manual operation."""
        self._asking.check_done(self._line.converse(*self._asking.engine.control(operation, for_ms)))
