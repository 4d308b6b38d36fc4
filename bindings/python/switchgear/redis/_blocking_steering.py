"""Lists the circuits of a store, and steers one, for sync code."""

from __future__ import annotations

import time
from typing import Any

from switchgear._config import checked_name
from switchgear._error import StoreError
from switchgear._types import Snapshot, State
from switchgear._uncopied import Uncopied
from switchgear.redis._blocking import Line, encoded
from switchgear.redis._clients import Client, Kind, client_of
from switchgear.redis._engine import Control
from switchgear.redis._link import Link
from switchgear.redis._listing import (
    Ask,
    ListedCircuit,
    Master,
    Masters,
    Question,
    Questions,
    check_listing,
    find_names,
    masters_of,
    named,
)
from switchgear.redis._shared import Inquiry, PreparedSharedPolicy, ignore, unavailable


def list_circuits(link: Link[Line], policy: PreparedSharedPolicy) -> list[ListedCircuit]:
    """The circuits under the store's prefix, sorted by name: all of them, or an error."""
    check_listing(link.client)
    try:
        in_cluster = link.client.kind is Kind.CLUSTER
        names = _found(link, find_names(link.prefix, in_cluster=in_cluster, seconds=link.timeout_ms / 1000))
    except StoreError as error:
        link.report(error)
        raise unavailable("*", error) from error
    return [ListedCircuit(name, CircuitControl(name, link, policy).get_snapshot()) for name in names]


def _found(link: Link[Line], questions: Questions) -> list[str]:
    """Carries the questions, until there is an end to them."""
    try:
        question = next(questions)
        while True:
            try:
                answer = _answer(link, question)
            except StoreError as error:
                question = questions.throw(error)
            else:
                question = questions.send(answer)
    except StopIteration as end:
        names: list[str] = end.value
        return names


def _answer(link: Link[Line], question: Question) -> Any:
    client = link.client
    if isinstance(question, Masters):
        again = question.again
        return link.line.bounded(lambda: _masters(client, again=again))
    if isinstance(question, Ask):
        master, command = question.master, question.command
        with named(master):
            return link.line.bounded(lambda: _ask(client, master, command))
    time.sleep(question.seconds)
    return None


def _masters(client: Client, *, again: bool) -> list[Master]:
    given = client.given
    if client.kind is Kind.COMMANDS:
        return masters_of(given.masters())
    if client.kind is Kind.SINGLE:
        return [Master(None, given)]
    if again:
        given.nodes_manager.initialize()
    return [Master(node.name, client_of(given, node)) for node in given.get_primaries()]


def _ask(client: Client, master: Master, command: tuple[str, ...]) -> object:
    if client.kind is Kind.COMMANDS:
        return master.client.command(list(command), "")
    return master.client.execute_command(*encoded(command), NEVER_DECODE=True)


class CircuitControl(Uncopied):
    """Steers one circuit for the whole fleet, from anywhere, without a breaker: what `RedisStore.control` gives.

    Every operation asks the store, and waits at most its `timeout_ms`. Breakers of this process hear of it as those of
    others do: with `events` at once, else with their next answer.
    """

    __slots__ = ("_inquiry", "_line", "_name")

    def __init__(self, name: str, link: Link[Line], policy: PreparedSharedPolicy) -> None:
        self._name = checked_name(name)
        self._line = link.line
        self._inquiry = Inquiry(name, link, policy, ignore)

    @property
    def name(self) -> str:
        """The circuit's name."""
        return self._name

    def get_state(self) -> State:
        """The state as callers see it: forced open reads `open`, disabled reads `closed`. Changes nothing.

        Raises:
            StoreUnavailableError: The store did not answer.
            InvalidTimeError: The clock fails.
        """
        return self.get_snapshot().state

    def get_snapshot(self) -> Snapshot:
        """Everything the store knows of the circuit, counted by the policy that was given. Changes nothing.

        Raises:
            StoreUnavailableError: The store did not answer.
            InvalidTimeError: The clock fails.
        """
        return self._inquiry.snapshot(self._line.converse(self._inquiry.engine.snapshot()))

    def reset(self) -> None:
        """Closes the circuit for the whole fleet and forgets everything; outcomes of calls that run do not count.

        Raises:
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        self._control("reset")

    def trip(self, *, for_ms: int | None = None) -> None:
        """Opens the circuit for the whole fleet now, also when it is open already; it recovers as usual.

        Args:
            for_ms: How long it stays open, in milliseconds; by default `open_duration_ms` of the policy that was given,
                30 000 without one, and with its `open_backoff`.

        Raises:
            ConfigError: `for_ms` is wrong.
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        self._control("trip", for_ms)

    def force_open(self) -> None:
        """Refuses every call of the whole fleet until `reset` or `trip`.

        Raises:
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        self._control("force_open")

    def disable(self) -> None:
        """Admits every call of the whole fleet and counts none until `reset` or `trip`.

        Raises:
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        self._control("disable")

    def __repr__(self) -> str:
        # Not its state: nothing is asked of a store to be shown.
        return f"<{type(self).__name__} {self.name!r}>"

    def _control(self, operation: Control, for_ms: object = None) -> None:
        engine = self._inquiry.engine
        self._inquiry.check_done(self._line.converse(engine.control(operation, for_ms)))
