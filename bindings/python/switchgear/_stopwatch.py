"""How long a generator takes."""

from __future__ import annotations

from switchgear._classify import CallRules


class Stopwatch:
    """The time within a generator, over all its steps."""

    __slots__ = ("_begun", "_rules", "closing", "runs", "took_ms")

    def __init__(self, rules: CallRules) -> None:
        self.runs = rules.is_timed()
        """Whether anybody wanted to know when it began."""
        self.took_ms: int | None = 0 if self.runs else None
        """All steps together, in milliseconds; `None` if nobody measured, or once a step could not be."""
        self.closing = False
        """Whether its consumer wants no more: what its clean-up raises then is for him, and for no fallback."""
        self._rules = rules
        self._begun: int | None = None

    def start(self) -> None:
        """A step begins."""
        self._begun = self._rules.begin() if self.runs else None

    def stop(self) -> None:
        """It ended."""
        step = self._rules.since(self._begun)
        self.took_ms = None if step is None or self.took_ms is None else self.took_ms + step
