"""Lists the circuits of a store, and steers one, for sync code."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any

from switchgear._config import checked_name
from switchgear._error import StoreError
from switchgear._types import Snapshot, State
from switchgear._uncopied import Uncopied
from switchgear.redis._blocking import Line, encoded
from switchgear.redis._clients import Kind, client_of
from switchgear.redis._engine import Control
from switchgear.redis._link import Link
from switchgear.redis._listing import (
    Ask,
    ListedCircuit,
    LostError,
    Master,
    Masters,
    Question,
    Questions,
    check_listing,
    find_names,
    is_lost,
    is_usable,
    masters_of,
    named,
)
from switchgear.redis._own import own_connection
from switchgear.redis._shared import Inquiry, PreparedSharedPolicy, ignore, unavailable


def list_circuits(link: Link[Line], policy: PreparedSharedPolicy) -> list[ListedCircuit]:
    """The circuits under the store's prefix, sorted by name: all of them, or an error."""
    check_listing(link.client)
    in_cluster = link.client.kind is Kind.CLUSTER
    servers = _Servers(link)
    try:
        names = servers.asked(find_names(link.prefix, in_cluster=in_cluster, seconds=link.timeout_ms / 1000))
    except StoreError as error:
        link.report(error)
        raise unavailable("*", error) from error
    finally:
        servers.close()
    return [ListedCircuit(name, CircuitControl(name, link, policy).get_snapshot()) for name in names]


class _Servers:
    """The servers of a store, while its circuits are listed: each over one connection, which is ours."""

    def __init__(self, link: Link[Line]) -> None:
        self._line = link.line
        self._client = link.client
        self._seconds = link.timeout_ms / 1000
        self._connections: dict[str | None, Any] = {}

    def asked(self, questions: Questions) -> list[str]:
        """Carries questions, until there is an end to them."""
        try:
            question = next(questions)
            while True:
                try:
                    answer = self._answer(question)
                except StoreError as error:
                    question = questions.throw(error)
                else:
                    question = questions.send(answer)
        except StopIteration as end:
            names: list[str] = end.value
            return names

    def close(self) -> None:
        """Ends the connections."""
        for name in list(self._connections):
            self._drop(name)

    def _answer(self, question: Question) -> Any:
        if isinstance(question, Masters):
            again = question.again
            return self._line.bounded(lambda: self._masters(again=again))
        if isinstance(question, Ask):
            with named(question.master):
                return self._reply(question.master, question.command)
        time.sleep(question.seconds)
        return None

    def _masters(self, *, again: bool) -> list[Master]:
        given = self._client.given
        if self._client.kind is Kind.COMMANDS:
            return masters_of(given.masters())
        if self._client.kind is Kind.SINGLE:
            return [Master(None, given.connection_pool)]
        if again:
            given.nodes_manager.initialize()
        return [Master(node.name, client_of(given, node).connection_pool) for node in given.get_primaries()]

    def _reply(self, master: Master, command: tuple[str, ...]) -> object:
        try:
            return self._line.bounded(lambda: self._ask(master, command))
        except StoreError as error:
            if not is_usable(error):
                self._drop(master.name)
            if is_lost(error):
                raise LostError(str(error)) from error
            raise

    def _ask(self, master: Master, command: tuple[str, ...]) -> object:
        if self._client.kind is Kind.COMMANDS:
            return master.source.command(list(command), "")
        connection = self._connections.get(master.name)
        if connection is None:
            # Who gives up after so long does it first.
            connection = own_connection(master.source, seconds=self._seconds + 1, waits=self._seconds + 1)
            self._connections[master.name] = connection
            connection.connect()
        connection.send_command(*encoded(command), check_health=False)
        return connection.read_response()

    def _drop(self, name: str | None) -> None:
        connection = self._connections.pop(name, None)
        if connection is not None:
            with suppress(Exception):
                connection.disconnect()


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
