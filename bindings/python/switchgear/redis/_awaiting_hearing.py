"""Hears what other instances announce, in a task of an event loop."""

from __future__ import annotations

import asyncio
import contextvars
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

from switchgear.redis._clients import Client, Kind
from switchgear.redis._hearing import (
    HANDSHAKE_SECONDS,
    NO_ANSWER,
    SILENCE_SECONDS,
    Ears,
    Pauses,
    Turns,
)
from switchgear.redis._own import own_connection

T = TypeVar("T")


def begin_hearing(client: Client, ears: Ears) -> AsyncHearer | None:
    """Begins to hear in the event loop at hand; none where there is none."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return None
    return AsyncHearer(_connections(client), ears, loop)


def _connections(client: Client) -> Callable[[], Awaitable[Any]]:
    """What makes a connection, not yet connected."""
    given = client.given

    async def of_server() -> Any:
        return own_connection(given.connection_pool, seconds=HANDSHAKE_SECONDS, waits=None)

    turns = Turns()

    async def of_node() -> Any:
        # Which nodes there are it knows once it is connected.
        await given.initialize()
        return own_connection(turns.pick(given.get_nodes()), seconds=HANDSHAKE_SECONDS, waits=None)

    return of_node if client.kind is Kind.CLUSTER else of_server


class AsyncHearer:
    """The task. It ends with `stop`, and with its event loop."""

    def __init__(self, connect: Callable[[], Awaitable[Any]], ears: Ears, loop: asyncio.AbstractEventLoop) -> None:
        self.pid = os.getpid()
        self._connect = connect
        self._ears = ears
        self._loop = loop
        # Nothing of what its first caller is at is its own.
        self.task = contextvars.Context().run(loop.create_task, self._run())
        self.task.set_name("switchgear-events")

    def lives(self) -> bool:
        """Whether it goes on hearing, or trying to."""
        return not self.task.done() and not self._loop.is_closed()

    def stop(self) -> None:
        """Ends it. Waits for nothing: the garbage collector may ask for it, anywhere."""
        if self.pid != os.getpid():
            return
        with suppress(RuntimeError):
            # Its event loop may be closed already.
            self._loop.call_soon_threadsafe(self.task.cancel)

    def abandon(self) -> None:
        """Leaves what a child of its process has inherited of it alone: the two share what waits for sockets."""

    async def rest(self) -> None:
        """Waits, for some seconds at most, until it has ended; not where it is what calls, or is of another loop."""
        if asyncio.get_running_loop() is self._loop and asyncio.current_task() is not self.task:
            await asyncio.wait({self.task}, timeout=HANDSHAKE_SECONDS)

    async def _run(self) -> None:
        """Hears, and begins again when the connection is lost."""
        pauses = Pauses()
        while True:
            try:
                await self._hear(pauses)
            except Exception as error:  # noqa: BLE001 - a client is foreign code
                self._ears.failed(error)
            await asyncio.sleep(pauses.next())

    async def _hear(self, pauses: Pauses) -> None:
        """Hears until the connection is lost, which raises."""
        connection = await _within(HANDSHAKE_SECONDS, self._connect())
        try:
            await _within(HANDSHAKE_SECONDS, connection.connect())
            await self._subscribe(connection)
            is_asked = True
            reading = asyncio.ensure_future(connection.read_response())
            try:
                while True:
                    await asyncio.wait({reading}, timeout=SILENCE_SECONDS)
                    if reading.done():
                        is_asked = False
                        if self._ears.take(reading.result()):
                            pauses.over()
                        reading = asyncio.ensure_future(connection.read_response())
                    elif is_asked:
                        raise TimeoutError(NO_ANSWER)
                    else:
                        # Whether it is still there. Once more the same: it needs no further right.
                        is_asked = True
                        await self._subscribe(connection)
            finally:
                await _end(reading)
        finally:
            # Without waiting for what the server makes of it: the event loop may be about to end.
            await connection.disconnect(nowait=True)

    async def _subscribe(self, connection: Any) -> None:
        await _within(HANDSHAKE_SECONDS, connection.send_command("SUBSCRIBE", self._ears.channel, check_health=False))


async def _within(seconds: float, work: Awaitable[T]) -> T:
    """What is to be done by then.

    Raises:
        TimeoutError: It was not.
    """
    task = asyncio.ensure_future(work)
    try:
        await asyncio.wait({task}, timeout=seconds)
        if task.done():
            return task.result()
        raise TimeoutError(f"no answer within {seconds:.0f} s")
    finally:
        await _end(task)


async def _end(task: asyncio.Future[Any]) -> None:
    """Sees to it that a task is over, whatever comes of it."""
    if not task.done():
        task.cancel()
        # What a client makes of that is its affair; nobody waits for it for long.
        await asyncio.wait({task}, timeout=1)
    if task.done() and not task.cancelled():
        # So that Python does not say that nobody asked for it.
        task.exception()
