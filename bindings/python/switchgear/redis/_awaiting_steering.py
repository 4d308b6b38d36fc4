"""Lists the circuits of a store, and steers one, for `asyncio`."""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from typing import Any

from switchgear._config import checked_name
from switchgear._error import StoreError
from switchgear._types import Snapshot, State
from switchgear._uncopied import Uncopied
from switchgear.redis._awaiting import AsyncLine
from switchgear.redis._blocking import encoded
from switchgear.redis._clients import Kind
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


async def list_circuits(link: Link[AsyncLine], policy: PreparedSharedPolicy) -> list[ListedCircuit]:
    """The circuits under the store's prefix, sorted by name: all of them, or an error."""
    check_listing(link.client)
    in_cluster = link.client.kind is Kind.CLUSTER
    servers = _Servers(link)
    try:
        names = await servers.asked(find_names(link.prefix, in_cluster=in_cluster, seconds=link.timeout_ms / 1000))
    except StoreError as error:
        link.report(error)
        raise unavailable("*", error) from error
    finally:
        await servers.close()
    return await _read(link, policy, names)


async def _read(link: Link[AsyncLine], policy: PreparedSharedPolicy, names: list[str]) -> list[ListedCircuit]:
    """Reads circuits, some at a time; the first that cannot be read ends it."""
    rest = iter(names)
    snapshots: dict[str, Snapshot] = {}

    async def reader() -> None:
        for name in rest:
            snapshots[name] = await CircuitControl(name, link, policy).get_snapshot()

    readers = [asyncio.ensure_future(reader()) for _ in range(min(_AT_ONCE, len(names)))]
    try:
        await asyncio.gather(*readers)
    finally:
        for task in readers:
            task.cancel()
        await asyncio.gather(*readers, return_exceptions=True)
    return [ListedCircuit(name, snapshots[name]) for name in names]


#: Enough to hide the way there and back, and few enough for each to be answered in time.
_AT_ONCE = 16


class _Servers:
    """The servers of a store, while its circuits are listed: each over one connection, which is ours."""

    def __init__(self, link: Link[AsyncLine]) -> None:
        self._line = link.line
        self._client = link.client
        self._seconds = link.timeout_ms / 1000
        self._connections: dict[str | None, Any] = {}

    async def asked(self, questions: Questions) -> list[str]:
        """Carries questions, until there is an end to them."""
        try:
            question = next(questions)
            while True:
                try:
                    answer = await self._answer(question)
                except StoreError as error:
                    question = questions.throw(error)
                else:
                    question = questions.send(answer)
        except StopIteration as end:
            names: list[str] = end.value
            return names

    async def close(self) -> None:
        """Ends the connections."""
        for name in list(self._connections):
            await self._drop(name)

    async def _answer(self, question: Question) -> Any:
        if isinstance(question, Masters):
            return await self._line.bounded(self._masters(again=question.again))
        if isinstance(question, Ask):
            with named(question.master):
                return await self._reply(question.master, question.command)
        await asyncio.sleep(question.seconds)
        return None

    async def _masters(self, *, again: bool) -> list[Master]:
        given = self._client.given
        if self._client.kind is Kind.COMMANDS:
            masters = given.masters()
            return masters_of(await masters if inspect.isawaitable(masters) else masters)
        if self._client.kind is Kind.SINGLE:
            return [Master(None, given.connection_pool)]
        # Which nodes there are it knows once it is connected.
        await given.initialize()
        if again:
            await given.nodes_manager.initialize()
        return [Master(node.name, node) for node in given.get_primaries()]

    async def _reply(self, master: Master, command: tuple[str, ...]) -> object:
        try:
            return await self._line.bounded(self._ask(master, command))
        except StoreError as error:
            if not is_usable(error):
                await self._drop(master.name)
            if is_lost(error):
                raise LostError(str(error)) from error
            raise

    async def _ask(self, master: Master, command: tuple[str, ...]) -> object:
        if self._client.kind is Kind.COMMANDS:
            return await master.source.command(list(command), "")
        connection = self._connections.get(master.name)
        if connection is None:
            connection = own_connection(master.source, seconds=self._seconds + 1, waits=None)
            self._connections[master.name] = connection
            await connection.connect()
        await connection.send_command(*encoded(command), check_health=False)
        return await connection.read_response()

    async def _drop(self, name: str | None) -> None:
        connection = self._connections.pop(name, None)
        if connection is not None:
            with suppress(Exception):
                await connection.disconnect(nowait=True)


class CircuitControl(Uncopied):
    """Steers one circuit for the whole fleet, from anywhere, without a breaker: what `RedisStore.control` gives.

    Every operation asks the store, and waits at most its `timeout_ms`. Breakers of this process hear of it as those of
    others do: with `events` at once, else with their next answer.
    """

    __slots__ = ("_inquiry", "_line", "_name")

    def __init__(self, name: str, link: Link[AsyncLine], policy: PreparedSharedPolicy) -> None:
        self._name = checked_name(name)
        self._line = link.line
        self._inquiry = Inquiry(name, link, policy, ignore)

    @property
    def name(self) -> str:
        """The circuit's name."""
        return self._name

    async def get_state(self) -> State:
        """The state as callers see it: forced open reads `open`, disabled reads `closed`. Changes nothing.

        Raises:
            StoreUnavailableError: The store did not answer.
            InvalidTimeError: The clock fails.
        """
        return (await self.get_snapshot()).state

    async def get_snapshot(self) -> Snapshot:
        """Everything the store knows of the circuit, counted by the policy that was given. Changes nothing.

        Raises:
            StoreUnavailableError: The store did not answer.
            InvalidTimeError: The clock fails.
        """
        return self._inquiry.snapshot(await self._line.converse(self._inquiry.engine.snapshot()))

    async def reset(self) -> None:
        """Closes the circuit for the whole fleet and forgets everything; outcomes of calls that run do not count.

        Raises:
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        await self._control("reset")

    async def trip(self, *, for_ms: int | None = None) -> None:
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
        await self._control("trip", for_ms)

    async def force_open(self) -> None:
        """Refuses every call of the whole fleet until `reset` or `trip`.

        Raises:
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        await self._control("force_open")

    async def disable(self) -> None:
        """Admits every call of the whole fleet and counts none until `reset` or `trip`.

        Raises:
            StoreUnavailableError: The store did not answer. It may still take effect: the answer was lost or late,
                not the command.
            InvalidTimeError: The clock fails.
        """
        await self._control("disable")

    def __repr__(self) -> str:
        # Not its state: nothing is asked of a store to be shown.
        return f"<{type(self).__name__} {self.name!r}>"

    async def _control(self, operation: Control, for_ms: object = None) -> None:
        engine = self._inquiry.engine
        self._inquiry.check_done(await self._line.converse(engine.control(operation, for_ms)))
