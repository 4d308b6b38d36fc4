"""Hears what other instances announce, in a thread of the store."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from switchgear.redis._clients import Client, Kind, client_of
from switchgear.redis._hearing import (
    HANDSHAKE_SECONDS,
    NO_ANSWER,
    SILENCE_SECONDS,
    Ears,
    Pauses,
    Turns,
)
from switchgear.redis._own import own_connection


def begin_hearing(client: Client, ears: Ears) -> Hearer | None:
    """Begins to hear; none where no thread can be started."""
    if sys.is_finalizing():
        # It would wait for ever for a thread that cannot begin.
        return None
    hearer = Hearer(_connections(client), ears)
    try:
        hearer.start()
    except RuntimeError:
        return None
    return hearer


def _connections(client: Client) -> Callable[[], Any]:
    """What makes a connection, not yet connected."""
    given = client.given
    if client.kind is not Kind.CLUSTER:
        return lambda: own_connection(given.connection_pool, seconds=HANDSHAKE_SECONDS, waits=HANDSHAKE_SECONDS)
    turns = Turns()

    def of_node() -> Any:
        node = turns.pick(given.get_nodes())
        source = client_of(given, node).connection_pool
        return own_connection(source, seconds=HANDSHAKE_SECONDS, waits=HANDSHAKE_SECONDS)

    return of_node


class Hearer(threading.Thread):
    """The thread. It keeps no process alive, and ends with `stop`."""

    def __init__(self, connect: Callable[[], Any], ears: Ears) -> None:
        super().__init__(name="switchgear-events", daemon=True)
        self.pid = os.getpid()
        self._connect = connect
        self._ears = ears
        self._connection: Any = None
        self._stopped = False
        self._over = False
        # Not an event of Python's, which has a lock that the collector must not wait for.
        self._wake = threading.Lock()
        self._wake.acquire()

    def lives(self) -> bool:
        """Whether it goes on hearing, or trying to."""
        return not self._over

    def stop(self) -> None:
        """Ends it. Waits for nothing: the garbage collector may ask for it, anywhere."""
        self._stopped = True
        if self.pid != os.getpid():
            # The connection is its process's.
            return
        with suppress(RuntimeError):
            self._wake.release()
        self._cut_off()

    def abandon(self) -> None:
        """Lets go of what a child of its process has inherited of it, and leaves its process alone."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # Of another process it only closes what is its own here.
            with suppress(Exception):
                connection.disconnect()

    def rest(self) -> None:
        """Waits, for some seconds at most, until it has ended; not where it is what calls."""
        if threading.current_thread() is not self:
            self.join(HANDSHAKE_SECONDS)

    def run(self) -> None:
        """Hears, and begins again when the connection is lost."""
        pauses = Pauses()
        try:
            while not self._stopped:
                try:
                    self._hear(pauses)
                except Exception as error:  # noqa: BLE001 - a client is foreign code
                    if not self._stopped:
                        self._ears.failed(error)
                # Until it is time, or until we are stopped.
                if self._wake.acquire(timeout=pauses.next()):
                    self._wake.release()
        finally:
            self._over = True

    def _hear(self, pauses: Pauses) -> None:
        """Hears until the connection is lost, which raises, or until we are stopped."""
        connection = self._connection = self._connect()
        try:
            connection.connect()
            connection.send_command("SUBSCRIBE", self._ears.channel, check_health=False)
            is_asked = True
            while not self._stopped:
                if connection.can_read(timeout=SILENCE_SECONDS):
                    is_asked = False
                    if self._ears.take(connection.read_response()):
                        pauses.over()
                elif is_asked:
                    raise TimeoutError(NO_ANSWER)
                else:
                    # Whether it is still there. Once more the same: it needs no further right.
                    is_asked = True
                    connection.send_command("SUBSCRIBE", self._ears.channel, check_health=False)
        finally:
            self._connection = None
            connection.disconnect()

    def _cut_off(self) -> None:
        sock = getattr(self._connection, "_sock", None)
        if isinstance(sock, socket.socket):
            with suppress(OSError):
                # Under the layer of TLS, if there is one: its reader must not see it half-closed.
                socket.socket.shutdown(sock, socket.SHUT_RDWR)
