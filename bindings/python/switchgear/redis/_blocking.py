"""Carries conversations for callers that block, within the deadline, however the client is configured."""

from __future__ import annotations

import functools
import inspect
import os
import queue
import select
import socket
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from switchgear._error import StoreError
from switchgear._native import Ask, Flight
from switchgear.redis._carry import PATIENCE_SECONDS, Carriers, OverdueError
from switchgear.redis._clients import LIBRARIES, Client, Kind, client_of
from switchgear.redis._replies import error_text, is_answer, is_broken_connection, is_redirection
from switchgear.redis._talk import Answer, Landed, Talk
from switchgear.redis._watch import Watch

T = TypeVar("T")


class Line:
    """The way to the store of `switchgear.redis`."""

    def __init__(self, client: Client, timeout_ms: int) -> None:
        self._kind = client.kind
        self._client = client.given
        self._seconds = timeout_ms / 1000
        self._of_process = _OfProcess()

    def converse(self, talk: Talk, deadline: float | None = None, ahead: Iterable[Posted] = ()) -> Answer:
        """Has a conversation, and waits for the answer, at most until the deadline.

        Args:
            talk: The conversation.
            deadline: When it is over (`time.monotonic()`); by default what the store may take from now on.
            ahead: What was posted, and is to be done first.
        """
        self.post_rest(talk)
        if talk.is_open:
            self._carry_on(talk, self.deadline() if deadline is None else deadline, ahead)
        return talk.given()

    def _carry_on(self, talk: Talk, deadline: float, ahead: Iterable[Posted]) -> None:
        """Has a conversation, until there is an answer."""
        try:
            for posted in ahead:
                if not posted.is_set():
                    self.ready()
                    posted.let_by(deadline)
            while talk.is_open and (ask := talk.take()) is not None:
                self._exchange(talk, ask, deadline)
                self.post_rest(talk)
        except BaseException:
            talk.left()
            self.post_rest(talk)
            raise

    def bounded(self, do: Callable[[], T]) -> T:
        """Does something with the client, for as long as one question may take.

        Raises:
            StoreError: There was no answer in time, or an error.
        """
        try:
            return self._here().carriers.carry(do, self.deadline(), _nothing, _let_go)
        except OverdueError as error:
            raise StoreError(f"no answer within {round(self._seconds * 1000)} ms") from error
        except StoreError:
            raise
        except Exception as error:  # a client is foreign code
            raise StoreError(error_text(error)) from error

    def deadline(self) -> float:
        """When what begins now is over."""
        return time.monotonic() + self._seconds

    def join(self, flight: Flight, deadline: float) -> Landed | None:
        """Waits for somebody else's admission, at most until the deadline."""
        waiter = _Waiter()
        landed = flight.join(waiter)
        return waiter.wait(deadline) if landed is None else landed

    def post_rest(self, talk: Talk) -> None:
        """Sends what came of a conversation and nobody waits for."""
        for aside in talk.asides():
            self._post_aside(aside)

    def _post_aside(self, aside: Talk) -> None:
        succeeds = aside.succeeds
        posted = self.post(aside)
        if succeeds:
            aside.goes_ahead(posted)

    def post(self, talk: Talk, *, insists: bool = False, starts: bool = True) -> Posted:
        """Sends what nobody waits for, in another thread: the garbage collector may ask for it, anywhere.

        Args:
            talk: The conversation.
            insists: Whether to try for some seconds, whatever its deadline.
            starts: Whether a thread may be started for it, which the garbage collector may not; see `ready`.

        Returns:
            What is set when it is done.
        """
        done = Posted()
        began = time.monotonic()

        def send() -> None:
            done.thread = threading.get_ident()
            try:
                self._see_to(talk, began, insists=insists)
            finally:
                done.set()

        try:
            self._here().carriers.post(send, starts=starts)
        except RuntimeError as error:
            # No thread can be made; the slot that this may give back expires.
            talk.failed(error)
            done.set()
        return done

    def ready(self) -> None:
        """Sees to it that there is a thread for what the garbage collector posts."""
        with suppress(RuntimeError):
            self._here().carriers.ready()

    def _see_to(self, talk: Talk, began: float, *, insists: bool) -> None:
        """Has a conversation that nobody waits for, in a thread that is made for it."""
        here = self._here()

        def expire() -> None:
            talk.expired()
            self.post_rest(talk)

        # Whatever the client does: a server that does not answer must be noticed. By another thread, for listeners may
        # hear of it.
        watched = here.watch.await_end(began + self._seconds, lambda: here.carriers.post(expire))
        try:
            while (ask := talk.take()) is not None:
                until = began + (max(self._seconds, PATIENCE_SECONDS) if insists or ask.frees else self._seconds)
                if time.monotonic() > until:
                    talk.lost()
                else:
                    self._exchange_unwatched(here, talk, ask, until)
                for aside in talk.asides():
                    if aside is not talk:
                        self._post_aside(aside)
        finally:
            here.watch.end(watched)

    def _exchange_unwatched(self, here: _OfProcess, talk: Talk, ask: Ask, until: float) -> None:
        if ask.delay_ms:
            time.sleep(ask.delay_ms / 1000)
        try:
            try:
                if self._kind is Kind.COMMANDS or not here.bounded:
                    raise _NotHereError
                reply = self._send_here(here, talk.key, ask.packed, until, waits=False)
            except _NotHereError:
                reply = self._execute(talk.key, ask.command)
        except _UnansweredError:
            talk.lost()
        except Exception as error:  # noqa: BLE001 - a client is foreign code
            talk.failed(error)
        else:
            talk.replied(reply)

    def _exchange(self, talk: Talk, ask: Ask, deadline: float) -> None:
        """Sends one command, and hands in what comes of it."""
        if ask.delay_ms:
            time.sleep(max(0.0, min(ask.delay_ms / 1000, deadline - time.monotonic())))
        try:
            reply = self._send(talk, ask, deadline)
        except _UnansweredError:
            talk.lost()
        except OverdueError:
            return
        except Exception as error:  # noqa: BLE001 - a client is foreign code
            talk.failed(error)
        else:
            talk.replied(reply)

    def _send(self, talk: Talk, ask: Ask, deadline: float) -> object:
        here = self._here()
        if self._kind is not Kind.COMMANDS and here.bounded:
            try:
                return self._send_here(here, talk.key, ask.packed, deadline)
            except _NotHereError:
                # Whoever knows how does it, as long as there is time.
                pass
            except Exception:
                raise
            except BaseException:
                # Interrupted: the connection was cut off, so no reply will come.
                talk.gone()
                raise

        def over(interrupted: bool) -> None:
            if interrupted:
                talk.left()
            else:
                talk.expired()

        def late(reply: object, error: BaseException | None) -> None:
            if isinstance(error, OverdueError):
                talk.lost()
            else:
                talk.came_late(reply, error)
            self.post_rest(talk)

        return here.carriers.carry(lambda: self._execute(talk.key, ask.command), deadline, over, late)

    def _execute(self, key: str, command: Sequence[str]) -> object:
        """Has the client do it, for as long as it takes."""
        if self._kind is Kind.COMMANDS:
            return self._client.command(list(command), key)
        if self._kind is Kind.CLUSTER and names_no_key(command):
            return self._client.execute_command(*command, target_nodes=self._client.get_node_from_key(key.encode()))
        return self._client.execute_command(*encoded(command))

    def _send_here(self, here: _OfProcess, key: str, packed: bytes, deadline: float, *, waits: bool = True) -> object:
        """Sends a command in this thread, over a connection of the client's pool.

        Args:
            here: What belongs to this process.
            key: What it is routed by.
            packed: The command, as it is sent.
            deadline: When it is over.
            waits: Whether somebody waits for it here: then another thread makes a connection, if there is none.
        """
        try:
            try:
                return here.ask(self._pool(key), packed, deadline, waits=waits)
            except Exception as error:
                if not is_broken_connection(error):
                    raise
            # One that broke while it was idle, say. The id in a command makes it count once.
            return here.ask(self._pool(key), packed, deadline, waits=waits)
        except Exception as error:
            # Only the cluster's client knows where a slot has gone.
            if self._kind is Kind.CLUSTER and (is_redirection(error) or is_broken_connection(error)):
                raise _NotHereError from error
            raise

    def _pool(self, key: str) -> Any:
        client = self._client
        if self._kind is Kind.CLUSTER:
            try:
                client = client_of(client, client.get_node_from_key(key.encode()))
            except Exception as error:
                # The slots are not known yet, say.
                raise _NotHereError from error
        pool = getattr(client, "connection_pool", None)
        kind: Any = type(pool)
        # A client with one connection only has no use for a pool; and what another class than the library's does to
        # give a connection, or to take it back, is to be done.
        if pool is None or getattr(client, "connection", None) is not None or not _is_of_library(kind):
            raise _NotHereError
        return pool

    def _here(self) -> _OfProcess:
        here = self._of_process
        if here.pid != os.getpid():
            # Threads do not come along into a forked process, and a lock may be held for ever there.
            here = self._of_process = _OfProcess()
        return here


class Posted(threading.Event):
    """Set when something that was posted is done."""

    def __init__(self) -> None:
        super().__init__()
        self._pid = os.getpid()

    thread: int | None = None
    """The thread that does it, once it has begun."""

    def let_by(self, deadline: float) -> None:
        """Waits for it, until the deadline. A listener of its may call the breaker: that waits for nothing.

        Nor does a process that was forked meanwhile: the thread that does it has not come along.
        """
        if self.thread != threading.get_ident() and self._pid == os.getpid():
            self.wait(max(0.0, deadline - time.monotonic()))


def encoded(command: Sequence[str]) -> list[str | bytes | int]:
    """A command as a client takes it: in UTF-8, whatever encoding it is told to use, so that all know the same keys."""
    name, *args = command
    words: list[str | bytes | int] = [name, *(arg.encode() for arg in args)]
    if name in {"EVAL", "EVALSHA"}:
        # A cluster's client counts the keys to know where to send it.
        words[2] = int(args[1])
    return words


def names_no_key(command: Sequence[str]) -> bool:
    """Whether a cluster's client cannot see from a command where it is to go."""
    return command[0] == "TIME"


class _Waiter:
    """Who waits for somebody else's admission."""

    __slots__ = ("_landed", "_lock")

    def __init__(self) -> None:
        self._landed: Landed | None = None
        self._lock = threading.Lock()
        self._lock.acquire()

    def __call__(self, landed: Landed) -> None:
        self._landed = landed
        self._lock.release()

    def wait(self, deadline: float) -> Landed | None:
        self._lock.acquire(timeout=min(max(deadline - time.monotonic(), 0.0), threading.TIMEOUT_MAX))
        return self._landed


class _NotHereError(Exception):
    """It cannot be done in this thread within a deadline."""


class _UnansweredError(Exception):
    """There was no reply within the deadline, and there will be none."""


class _OfProcess:
    """What belongs to one process."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.carriers = Carriers()
        self.watch = Watch()
        # Their threads know nothing of this, and end with it.
        for end in (self.carriers.end, self.watch.stop):
            weakref.finalize(self, end).atexit = False
        self.bounded = True
        """Whether connections are of a make that can be told how long to wait."""

    def ask(self, pool: Any, packed: bytes, deadline: float, *, waits: bool) -> object:
        """Sends a command over a connection of a pool."""
        connection = self._take(pool, deadline) if waits else _idle_connection(pool) or _get_connection(pool)
        try:
            return _ask(connection, packed, deadline, self.watch)
        except _NotHereError:
            self.bounded = False
            raise
        finally:
            pool.release(connection)

    def _take(self, pool: Any, deadline: float) -> Any:
        """A connection of the pool. Where one has to be made another thread does it."""
        connection = _idle_connection(pool)
        if connection is not None:
            return connection

        def late(connection: Any, _: BaseException | None) -> None:
            if connection is not None:
                pool.release(connection)

        try:
            return self.carriers.carry(lambda: _get_connection(pool), deadline, _nothing, late)
        except OverdueError as error:
            raise _UnansweredError from error


def _nothing(interrupted: bool) -> None:
    """The conversation learns it from who had the command to send."""


def _let_go(value: object, error: BaseException | None) -> None:
    """Nobody wants it any more."""


def _idle_connection(pool: Any) -> Any:
    """A connection that is ready for a command, taken out of its pool; none where there is none.

    The pool's own way would make one then, and wait for the server here.
    """
    if getattr(pool, "pid", None) != os.getpid():
        return None
    try:
        blocking = getattr(pool, "pool", None)
        if blocking is None:
            in_use = pool._in_use_connections
            connection = pool._available_connections.pop()
            in_use.add(connection)
        elif (connection := blocking.get_nowait()) is None:
            # The place of one that is still to be made.
            blocking.put_nowait(None)
            return None
    except (AttributeError, IndexError, queue.Empty):
        # None is idle, or the pool is of a make that we do not know.
        return None
    sock = getattr(connection, "_sock", None)
    # One that can be read from was closed by the server, or has something to be read first.
    if isinstance(sock, socket.socket) and not _is_readable(sock):
        return connection
    pool.release(connection)
    return None


def _is_readable(sock: socket.socket) -> bool:
    if not hasattr(select, "poll"):
        return bool(select.select([sock], [], [], 0)[0])
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(0))


def _get_connection(pool: Any) -> Any:
    kind: Any = type(pool)
    # Until redis-py 5.3 it wanted the name of a command, which it never used.
    return pool.get_connection("HMGET") if _wants_name(kind) else pool.get_connection()


@functools.cache
def _is_of_library(kind: Any) -> bool:
    methods = (getattr(kind, name, None) for name in ("get_connection", "release"))
    return all(getattr(method, "__module__", "").partition(".")[0] in LIBRARIES for method in methods)


@functools.cache
def _wants_name(kind: Any) -> bool:
    _, *parameters = inspect.signature(kind.get_connection).parameters.values()
    return any(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters)


def _ask(connection: Any, packed: bytes, deadline: float, watch: Watch) -> object:
    """Sends a command and reads the reply, both within the deadline."""
    sock = getattr(connection, "_sock", None)
    if not isinstance(sock, socket.socket):
        raise _NotHereError
    remaining = deadline - time.monotonic()
    if remaining <= 0:
        raise _UnansweredError
    own, watched = sock.gettimeout(), None
    try:
        sock.settimeout(remaining if own is None else min(own, remaining))
        watched = watch.begin(sock, deadline)
        # Its check of the connection would ask the server first.
        connection.send_packed_command([packed], check_health=False)
        # As bytes, whatever the client's encoding is: what is sent is not written in that, either.
        return connection.read_response(disable_decoding=True)
    except BaseException as error:
        if is_answer(error):
            raise
        # A reply that is read by nobody must not be taken for that of the next command.
        connection.disconnect()
        if isinstance(error, Exception) and time.monotonic() >= deadline:
            raise _UnansweredError from error
        raise
    finally:
        if watched is None or not watch.end(watched):
            connection.disconnect()
        elif connection._sock is sock:
            sock.settimeout(own)
