"""One shared circuit as this process sees it: the native engine, asked with the time, and what it wants to send."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from typing import Literal

from switchgear._error import StoreError
from switchgear._native import Ask, Circuit, SharedConfig, SharedGrant, Step, Transition, is_moment
from switchgear.redis._link import Link, StoreEvent
from switchgear.redis._talk import Talk

#: The manual operations.
Control = Literal["reset", "trip", "force_open", "disable"]


class Engine:
    """Asks the engine, which decides, and hands out the conversations to be carried to the store."""

    def __init__(
        self,
        name: str,
        link: Link[object],
        config: SharedConfig,
        clock: Callable[[], int],
        on_transition: Callable[[Transition], None],
    ) -> None:
        """Asks nothing of the store. Raises `InvalidNameError`."""
        self.name = name
        self.link = link
        self.on_transition = on_transition
        self._config = config
        self._clock = clock
        self._of_process = (self._new_engine(), os.getpid())
        self.key = self._of_process[0].routing_key

    def admit(self) -> tuple[Talk, Ask]:
        """Asks for one call. Raises `InvalidTimeError` if the clock is wrong, or what the clock raises."""
        engine, now = self._engine(), self._clock()
        ask = engine.admit(now)
        return Talk(self, engine, ask, now), ask

    def settle(
        self, grant: SharedGrant | None, outcome: int, counted: Callable[[], None] | None
    ) -> tuple[Talk, Ask] | Literal["applied", "stale"]:
        """Settles a call; without a grant by the plain rules of the current state. Raises nothing.

        `counted` is called when the outcome has counted, also after the deadline, and before anybody hears of a trip.
        """
        engine = self._engine()
        try:
            now = self._clock()
            step = engine.settle(now, grant, outcome)
        except Exception as error:  # noqa: BLE001 - a clock is foreign code
            # A broken clock: the next admission reports it to its caller, this caller has a result to get.
            self.report(error)
            return "stale"
        if step.ask is not None:
            return Talk(self, engine, step.ask, now, counted), step.ask
        return "applied" if step.answer == "applied" else "stale"

    def snapshot(self) -> tuple[Talk, Ask]:
        """Reads the circuit. Raises `InvalidTimeError` if the clock is wrong, or what the clock raises."""
        engine, now = self._engine(), self._clock()
        return self._asked(engine, engine.get_state(now), now)

    def control(self, operation: Control, for_ms: object = None) -> tuple[Talk, Ask]:
        """Does a manual operation. Raises `ConfigError`, `InvalidTimeError`, or what the clock raises."""
        engine, now = self._engine(), self._clock()
        if operation == "trip":
            return self._asked(engine, engine.trip(now, for_ms), now)
        operations = {"reset": engine.reset, "force_open": engine.force_open, "disable": engine.disable}
        return self._asked(engine, operations[operation](now), now)

    def later(self, fallback: int) -> int:
        """The time now, or the time given where the clock is wrong: its next reading for a caller will say so."""
        try:
            now = self._clock()
        except Exception:  # noqa: BLE001 - a clock is foreign code
            return fallback
        return now if is_moment(now) else fallback

    def report(self, error: BaseException) -> None:
        """Tells the store's listeners of an error."""
        events = self.link.events
        if events.hears("store_error"):
            events.emit("store_error", StoreEvent(circuit=self.name, at=self.later(0), error=error))

    def report_mismatch(self) -> None:
        """Tells the store's listeners that the half-open period runs by another configuration than ours."""
        self.link.events.emit("config_mismatch", StoreEvent(circuit=self.name, at=self.later(0)))

    def too_late(self) -> StoreError:
        """The error of who has waited long enough."""
        return StoreError(f"no answer within {self.link.timeout_ms} ms")

    def _asked(self, engine: Circuit, step: Step, now: int) -> tuple[Talk, Ask]:
        ask = step.ask
        if ask is None:  # pragma: no cover - the engine always asks
            raise AssertionError("the engine asks the store")
        return Talk(self, engine, ask, now), ask

    def _engine(self) -> Circuit:
        """The engine of this process: one that was forked gives its calls ids of its own."""
        engine, pid = self._of_process
        if pid != os.getpid():
            engine = self._new_engine()
            # Two threads may both get here: each then has an engine of its own, which does no harm.
            self._of_process = (engine, os.getpid())
        return engine

    def _new_engine(self) -> Circuit:
        # Drawn anew for each circuit object, so that two of one name do not give their calls the same ids.
        nonce = secrets.randbits(64)
        return Circuit(self.name, self.link.prefix, nonce, self.link.reads_primary, self._config)
