"""One command over an idle connection of a client's own pool, by the task that waits for the reply.

The client's own way costs more than what it asks the server for. This one is for the plain case: a client and a pool as
their library makes them, and a connection that is ready. Whatever is not plain is left to the client.
"""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from types import MethodType
from typing import Any

from switchgear.redis._clients import LIBRARIES
from switchgear.redis._replies import is_answer

Post = Callable[[Coroutine[Any, Any, Any]], object]
"""Does something in a task of its own."""


def idle_connection(client: Any, loop: asyncio.AbstractEventLoop) -> Any:
    """A connection that is ready for a command, taken out of the client's pool; none where there is none.

    The pool's own way would make one then, and wait for the server.
    """
    try:
        pool = client.connection_pool
        # A client with one connection only has no use for a pool; and what another class than the library's, or a tool
        # that watches commands, does to send one is to be done.
        if client.connection is not None or not _sends_plainly(client.execute_command) or not _is_plain(type(pool)):
            return None
        # A process that was forked knows none of them; where it matters, pools say whose they are.
        if not _is_quiet(pool) or getattr(pool, "pid", None) not in (None, os.getpid()):
            return None
        connection = pool._available_connections.pop()
    except (AttributeError, IndexError):
        # None is idle, or client or pool is of a make that we do not know.
        return None
    if not _is_ready(connection, loop):
        # Its place is where it was: the client's own way finds it there, and makes it anew.
        pool._available_connections.append(connection)
        return None
    pool._in_use_connections.add(connection)
    return connection


async def ask(pool: Any, connection: Any, command: Sequence[str | bytes | int], due: float, post: Post) -> object:
    """Sends a command over a connection that was taken out of a pool, and gives the reply; the connection goes back.

    No other way out leaves a reply behind: whoever is cancelled, or is late, takes the connection down with him.

    Args:
        pool: The pool.
        connection: What `idle_connection` gave.
        command: The command.
        due: When it is over, on the clock of the event loop: what is raised then says that the connection is closed.
        post: How to do what the caller is not to wait for.
    """
    loop = asyncio.get_running_loop()
    writer, own = connection._writer, connection.socket_timeout
    # The one timer of this. The library's cancels the very task, and the caller's own cancellation may be lost in that
    # before Python 3.11; this one ends the connection, and so what waits for it.
    timer = loop.call_at(due if own is None else min(due, loop.time() + own), writer.transport.abort)
    connection.socket_timeout = None
    in_order = False
    try:
        # Without its check of the connection, which would ask the server first.
        writer.write(b"".join(connection.pack_command(*command)))
        reply: object = await connection.read_response()
        in_order = True
        return reply
    except BaseException as error:
        in_order = is_answer(error)
        raise
    finally:
        timer.cancel()
        if connection.socket_timeout is None:
            # The server may have had it changed meanwhile.
            connection.socket_timeout = own
        if not in_order:
            # A reply that is read by nobody must not be taken for that of the next command.
            with suppress(RuntimeError):
                # The event loop may be closed already.
                writer.transport.abort()
        _give_back(pool, connection, post, in_order=in_order)


def _give_back(pool: Any, connection: Any, post: Post, *, in_order: bool) -> None:
    """Puts a connection back into its pool, without waiting for it: the caller may be cancelled, or late."""
    is_closed = connection._writer is None
    if (in_order or is_closed) and _is_quiet(pool) and not _is_awaited(connection):
        try:
            pool._in_use_connections.remove(connection)
        except KeyError:
            # The pool was emptied meanwhile.
            post(_end(connection))
        else:
            pool._available_connections.append(connection)
        return
    post(_release(pool, connection, in_order=in_order))


async def _release(pool: Any, connection: Any, *, in_order: bool) -> None:
    """The same by the pool's own way, which may have to wait for its locks."""
    try:
        if not in_order:
            await _end(connection)
        await pool.release(connection)
    except Exception:  # noqa: BLE001 - the pool is foreign code, and the caller has a reply to get
        await _end(connection)


async def _end(connection: Any) -> None:
    with suppress(Exception):
        await connection.disconnect(nowait=True)


def _is_ready(connection: Any, loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a connection waits for a command, in this event loop, and has nothing to be read first."""
    reader, writer = connection._reader, connection._writer
    if type(reader) is not asyncio.StreamReader or type(writer) is not asyncio.StreamWriter:
        # Not connected, or by other means than ours.
        return False
    state: Any = reader
    parser = connection._parser
    unparsed = getattr(parser, "_reader", None)
    return (
        state._loop is loop
        and not state._buffer
        and not state._eof
        and state._exception is None
        and not getattr(parser, "_buffer", None)
        and not (unparsed is not None and unparsed.has_data())
        and not writer.transport.is_closing()
        and not _is_awaited(connection)
        and _asks_plainly(type(connection))
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
    return all(_is_of_library(getattr(pool, name, None)) for name in ("get_connection", "release"))


@functools.cache
def _asks_plainly(connection: Any) -> bool:
    methods = ("send_command", "send_packed_command", "pack_command", "read_response", "disconnect")
    return all(_is_of_library(getattr(connection, name, None)) for name in methods)


def _is_of_library(function: Any) -> bool:
    return getattr(function, "__module__", "").partition(".")[0] in LIBRARIES
