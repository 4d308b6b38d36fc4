"""Real servers for tests: a `redis-server` on a free port of 127.0.0.1, a cluster of masters, a sentinel.

No server outlives its starter: each runs under a small shell that holds the read end of a pipe whose only write end is
in this process. However this process ends, SIGKILL included, the pipe closes, and the shell kills the server and
removes its folder. `REDIS_SERVER` names another binary, for example `valkey-server`. The like for Node is
`tests/support/servers.mjs`.
"""

from __future__ import annotations

import errno
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import IO, TypeVar

from typing_extensions import Self

_T = TypeVar("_T")


class Server:
    """A running server."""

    def __init__(self, guardian: subprocess.Popen[str], pid: int, port: int, password: str | None) -> None:
        self._guardian = guardian
        # Its output is read on, so that it never blocks.
        self._reader = threading.Thread(target=_read_all, args=(guardian.stdout,), daemon=True)
        self._reader.start()
        self._starter = os.getpid()
        self._password = password
        self.pid = pid
        self.port = port
        self.url = f"redis://127.0.0.1:{port}"

    def cli(self, *args: str) -> str:
        """What `redis-cli` answers."""
        env = os.environ if self._password is None else {**os.environ, "REDISCLI_AUTH": self._password}
        ran = subprocess.run(
            ["redis-cli", "-p", str(self.port), *args], env=env, check=True, capture_output=True, text=True
        )
        return ran.stdout.rstrip("\n")

    def pause(self) -> None:
        """Makes it hang: it takes connections, for the kernel does, and answers nothing."""
        os.kill(self.pid, signal.SIGSTOP)
        # It may run on another processor until the signal gets there. Not every system shows that.
        shown = Path(f"/proc/{self.pid}/stat")
        if shown.exists():
            wait_until(lambda: shown.read_text().rpartition(")")[2].split()[0] == "T")

    def resume(self) -> None:
        """Lets it go on."""
        os.kill(self.pid, signal.SIGCONT)

    def kill(self) -> None:
        """Ends it as a crash does, and waits until it is gone."""
        os.kill(self.pid, signal.SIGKILL)
        self.stop()

    def stop(self) -> None:
        """Ends it, and waits until it is gone. A child that was forked leaves the server alone."""
        if os.getpid() != self._starter:
            return
        if self._guardian.stdin is not None:
            self._guardian.stdin.close()
        self._guardian.wait()
        self._reader.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


class Cluster:
    """Masters that share the slots."""

    def __init__(self, nodes: Sequence[Server]) -> None:
        self.nodes = list(nodes)

    def join(self) -> Server:
        """One more master, without a slot: all know it, and it knows them all with their slots."""
        node = start_server(args=CLUSTERED)
        others = list(self.nodes)
        self.nodes.append(node)
        for other in others:
            node.cli("cluster", "meet", "127.0.0.1", str(other.port))
        identity = node.cli("cluster", "myid")
        for other in others:
            wait_until(partial(is_taken_for, other, identity, "master"))
        wait_until(partial(is_joined, node))
        return node

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


def start_server(*, port: int | None = None, args: Sequence[str] = (), password: str | None = None) -> Server:
    """A server, once it takes connections. Ends with `stop`, as a context manager, or with this process."""
    if port is not None:
        return _launch(port, args, password=password)
    return _on_some_port(lambda some: _launch(some, args, password=password))


def start_sentinel(master: Server, name: str) -> Server:
    """A sentinel that watches a server under a name."""
    config = f"sentinel monitor {name} 127.0.0.1 {master.port} 1\n"
    return _on_some_port(lambda port: _launch(port, ["--sentinel"], config=config))


def start_cluster(masters: int = 3) -> Cluster:
    """A cluster that has all its slots."""
    nodes: list[Server] = []
    try:
        for _ in range(masters):
            nodes.append(start_server(args=CLUSTERED))
        addresses = [f"127.0.0.1:{node.port}" for node in nodes]
        create = ["redis-cli", "--cluster", "create", *addresses, "--cluster-replicas", "0", "--cluster-yes"]
        subprocess.run(create, check=True, capture_output=True)
        for node in nodes:
            wait_until(partial(is_joined, node))
    except BaseException:
        for node in nodes:
            node.stop()
        raise
    return Cluster(nodes)


def has_all_slots(node: Server) -> bool:
    """Whether a node knows of each slot who has it."""
    return "cluster_state:ok" in node.cli("cluster", "info")


def is_joined(node: Server) -> bool:
    """Whether a node has all slots, and a link to each other node: what is published does not go to one without."""
    view = node.cli("cluster", "nodes")
    return has_all_slots(node) and "disconnected" not in view and "handshake" not in view


def is_taken_for(node: Server, identity: str, role: str) -> bool:
    """Whether a node takes another one for a "master", or a "slave". A handshake goes under a name not yet its own."""
    lines = node.cli("cluster", "nodes").splitlines()
    return any(line.startswith(f"{identity} ") and role in line.split()[2].split(",") for line in lines)


def own_port() -> int:
    """A port that no other process starts a server on while this one lives, so that one may go and come back there.

    Whoever starts servers as this does, `tests/support/servers.mjs` too, first takes the port at another address of
    this machine, at which nobody listens otherwise.
    """
    for _ in range(1000):
        port = random.SystemRandom().choice(_PORTS)
        try:
            # Open until this process ends.
            socket.create_server(("127.0.0.2", port)).detach()
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                continue
            # Not everywhere is there such an address: then all that is left is that ports are many.
        return port
    raise RuntimeError("no port is free")


def wait_until(is_so: Callable[[], bool], seconds: float = 60) -> None:
    """Asks again until it is so; that it never is fails the test."""
    give_up_at = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > give_up_at:
            raise AssertionError(f"it is not so after {seconds} s")
        time.sleep(0.01)


#: What makes a server a node of a cluster. One that a test or a busy machine holds up for a while is not given up.
CLUSTERED = ("--cluster-enabled", "yes", "--cluster-node-timeout", "60000")

_READY = re.compile(r"Ready to accept connections|Sentinel ID is")
_TAKEN = "Address already in use"

# Below the range from which the system takes the ports of outgoing connections, with room for the cluster bus
# (port + 10000) below it too, so that no client of a parallel test can sit on either; nor does a server sit on a bus.
_PORTS = range(11_000, 21_000)

# The watcher reads until this process closes the pipe or ends; `wait` ends when the server does, whoever ended it.
_GUARDIAN = """
  exec 3<&0
  "$@" --dir "$GUARDED_DIR" </dev/null & server=$!
  echo "guarding $server"
  exec 2>/dev/null
  { read -r line <&3; kill -9 $server; } & watcher=$!
  wait $server; code=$?
  kill $watcher
  rm -rf "$GUARDED_DIR"
  exit $code
"""


class _PortTakenError(Exception):
    pass


def _on_some_port(start: Callable[[int], _T]) -> _T:
    for _ in range(20):
        try:
            return start(own_port())
        except _PortTakenError:
            continue
    raise RuntimeError("no port is free")


def _launch(port: int, args: Sequence[str], *, password: str | None = None, config: str | None = None) -> Server:
    directory = tempfile.mkdtemp(prefix="switchgear-redis-")
    command = [os.environ.get("REDIS_SERVER", "redis-server")]
    if config is None:
        # A replica need not wait for others that might come.
        command += ["--repl-diskless-sync-delay", "0"]
    else:
        file = Path(directory, "server.conf")
        file.write_text(config)
        command.append(str(file))
    command += ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", *args]
    if password is not None:
        command += ["--requirepass", password]
    # A session of its own: Ctrl-C in a terminal goes to this process alone, and the closing pipe does the rest.
    guardian = subprocess.Popen(
        ["sh", "-c", _GUARDIAN, "guardian", *command],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "GUARDED_DIR": directory},
    )
    assert guardian.stdout is not None
    pid = _until_ready(guardian, guardian.stdout, port)
    return Server(guardian, pid, port, password)


def _read_all(output: IO[str]) -> None:
    with output:
        for _ in output:
            pass


def _until_ready(guardian: subprocess.Popen[str], output: IO[str], port: int) -> int:
    """The server's process id, once it takes connections."""
    said = ""
    for line in output:
        said += line
        pid = re.search(r"guarding (\d+)", said)
        if pid is not None and _READY.search(said):
            return int(pid[1])
    code = guardian.wait()
    if _TAKEN in said:
        raise _PortTakenError(port)
    if code == 127:
        raise RuntimeError("redis-server is not installed (Debian: apt-get install redis-server)")
    raise RuntimeError(f"redis-server ended with {code}:\n{said}")
