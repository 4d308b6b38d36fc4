"""One command over an idle connection of a client's own pool, by the task that waits for the reply.

The client's own way costs more than what it asks the server for. This one is for the plain case: a client and a pool as
their library makes them, and a connection that is ready. Whatever is not plain is left to the client.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Coroutine
from contextlib import suppress
from types import MethodType
from typing import Any

from switchgear.redis._clients import LIBRARIES
from switchgear.redis._replies import is_answer


def idle_connection(client: Any, loop: asyncio.AbstractEventLoop) -> IdleConnection | None:
    """A connection that is ready for a command, taken out of the client's pool; none where there is none.

    The pool's own way would make one then, and wait for the server.
    """
    try:
        pool = client.connection_pool
        kind: Any = type(pool)
        # A client with one connection only has no use for a pool; and what another class than the library's, or a tool
        # that watches commands, does to send one is to be done.
        if client.connection is not None or not _sends_plainly(client.execute_command) or not _is_plain(kind):
            return None
        # A process that was forked knows none of them; where it matters, pools say whose they are.
        if not _is_quiet(pool) or getattr(pool, "pid", None) not in (None, os.getpid()):
            return None
        available, in_use = pool._available_connections, pool._in_use_connections
        # One that is not ready stays: the client's own way finds it there, and makes it anew.
        if not _is_ready(available[-1], loop):
            return None
    except (AttributeError, IndexError):
        # None is idle, or something is of a make that we do not know.
        return None
    connection = available.pop()
    in_use.add(connection)
    return IdleConnection(pool, connection, loop)


class IdleConnection:
    """A connection that was taken out of its pool for one command, after which it is back there."""

    __slots__ = ("_connection", "_loop", "_pool")

    def __init__(self, pool: Any, connection: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._pool = pool
        self._connection = connection
        self._loop = loop

    async def ask(self, packed: bytes, due: float, post: Callable[[Coroutine[Any, Any, None]], object]) -> object:
        """Sends the command, and gives the reply; raises the server's error reply, or whatever goes wrong.

        No other way out leaves a reply behind: who is cancelled, or is late, takes the connection down with him.

        Args:
            packed: The command, as it is sent.
            due: When it is over, on the clock of the event loop: the connection is closed then, and an error says so.
            post: Does in a task of its own what the caller is not to wait for.
        """
        connection, loop = self._connection, self._loop
        writer, own = connection._writer, connection.socket_timeout
        # The one timer of this. The library's would cancel the very task, and before Python 3.11 the caller's own
        # cancellation may be lost in that; this one ends the connection, and with it the wait for a reply.
        timer = loop.call_at(due if own is None else min(due, loop.time() + own), writer.transport.abort)
        connection.socket_timeout = None
        is_in_order = False
        try:
            # Without its check of the connection, which would ask the server first.
            writer.write(packed)
            # As bytes, whatever the encoding of the client is: what is sent is not written in that, either.
            reply: object = await connection.read_response(disable_decoding=True)
            is_in_order = True
            return reply
        except BaseException as error:
            is_in_order = is_answer(error)
            raise
        finally:
            timer.cancel()
            if connection.socket_timeout is None:
                # The server may have had it changed meanwhile.
                connection.socket_timeout = own
            # The deadline may have passed in the moment in which the reply came.
            is_in_order = is_in_order and not writer.transport.is_closing()
            try:
                if not is_in_order:
                    # A reply that is read by nobody must not be taken for that of the next command.
                    with suppress(RuntimeError):
                        # The event loop may be closed already.
                        writer.transport.abort()
                    await _end(connection)
            finally:
                self._give_back(post, is_in_order=is_in_order)

    def _give_back(self, post: Callable[[Coroutine[Any, Any, None]], object], *, is_in_order: bool) -> None:
        """Puts it back without waiting: the caller may be cancelled, or late."""
        pool, connection = self._pool, self._connection
        if (is_in_order or connection._writer is None) and _is_quiet(pool) and not _is_awaited(connection):
            try:
                # As it was taken. What else a pool does here it does not miss: nobody waits for the connection, nothing
                # is to be done to it, and what it counts has not been told of it.
                pool._in_use_connections.remove(connection)
            except KeyError:
                # The pool was emptied meanwhile.
                post(_end(connection))
            else:
                pool._available_connections.append(connection)
        else:
            post(self._release(is_in_order=is_in_order))

    async def _release(self, *, is_in_order: bool) -> None:
        """The same by the pool's own way, which may have to wait."""
        if not is_in_order:
            await _end(self._connection)
        try:
            await self._pool.release(self._connection)
        except Exception:  # noqa: BLE001 - the pool is foreign code, and the caller has a reply to get
            await _end(self._connection)


async def _end(connection: Any) -> None:
    """Closes a connection, if that is still to be done; waits for nothing."""
    if connection._writer is not None:
        with suppress(Exception):
            await connection.disconnect(nowait=True)


def _is_ready(connection: Any, loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a connection waits for a command, in this event loop, and has nothing to be read first."""
    reader, writer = connection._reader, connection._writer
    if type(reader) is not asyncio.StreamReader or type(writer) is not asyncio.StreamWriter:
        # Not connected, or by other means than ours.
        return False
    state: Any = reader
    kind: Any = type(connection)
    parser = connection._parser
    unparsed = getattr(parser, "_reader", None)
    return (
        state._loop is loop
        and not state._buffer
        and not state._eof
        and state._exception is None
        and state._waiter is None
        and not getattr(parser, "_buffer", None)
        and not (unparsed is not None and unparsed.has_data())
        and not writer.transport.is_closing()
        and not _is_awaited(connection)
        and _asks_plainly(kind)
    )


def _is_quiet(pool: Any) -> bool:
    """Whether nobody is at a pool's connections, or waits for one."""
    lock, condition = getattr(pool, "_lock", None), getattr(pool, "_condition", None)
    return (lock is None or not (lock._locked or lock._waiters)) and (
        condition is None or not (condition._waiters or condition._lock._locked or condition._lock._waiters)
    )


def _is_awaited(connection: Any) -> bool:
    """Whether something is to be done to a connection when it goes back to its pool."""
    return getattr(connection, "_should_reconnect", False) or getattr(connection, "_re_auth_token", None) is not None


def _sends_plainly(method: Any) -> bool:
    # What wraps a method, to watch it, passes for it in all but its type.
    return type(method) is MethodType and _is_of_library(method.__func__)


@functools.cache
def _is_plain(pool: Any) -> bool:
    return _has_of_library(pool, "get_connection", "get_available_connection", "ensure_connection", "release")


@functools.cache
def _asks_plainly(connection: Any) -> bool:
    return _has_of_library(
        connection, "send_command", "send_packed_command", "pack_command", "read_response", "disconnect"
    )


def _has_of_library(kind: Any, *names: str) -> bool:
    """Whether a class has these methods from its library, as far as it has them."""
    return all(_is_of_library(getattr(kind, name)) for name in names if hasattr(kind, name))


def _is_of_library(function: Any) -> bool:
    return getattr(function, "__module__", "").partition(".")[0] in LIBRARIES
