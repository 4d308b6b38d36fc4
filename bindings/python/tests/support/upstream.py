"""A real HTTP server that fails in each of the ways in which servers fail, and counts what reaches it."""

from __future__ import annotations

import gzip
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote


class Upstream(ThreadingHTTPServer):
    """What it does is in the path; see the methods of its handler."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hits: list[str] = []
        """The paths that were asked for."""
        self.go_on = threading.Event()
        """Ends what hangs."""

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def url(self, path: str) -> str:
        return f"{self.origin}/{path}"

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is no news here."""


@contextmanager
def upstream() -> Iterator[Upstream]:
    with Upstream() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.go_on.set()
            server.shutdown()
            thread.join()


def closed_port() -> int:
    """A port at which nobody listens, and nobody can: it is taken as long as this process lives."""
    probe = socket.socket()
    probe.bind(("127.0.0.1", 0))
    port: int = probe.getsockname()[1]
    probe.detach()
    return port


class _Handler(BaseHTTPRequestHandler):
    server: Upstream
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.server.hits.append(self.path)
        self._received = self._read_body()
        kind, _, rest = self.path[1:].partition("/")
        act: Callable[[str], None] = getattr(self, f"_{kind}")
        with suppress(OSError):
            act(rest)

    def do_POST(self) -> None:
        self.do_GET()

    def do_HEAD(self) -> None:
        self.do_GET()

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def _status(self, code: str) -> None:
        self._answer(int(code), b"status " + code.encode())

    def _flaky(self, failures: str) -> None:
        """Unavailable so many times, then well."""
        earlier = self.server.hits.count(self.path) - 1
        self._status("503" if earlier < int(failures) else "200")

    def _echo(self, _: str) -> None:
        self._answer(200, self._received)

    def _empty(self, _: str) -> None:
        self._answer(200, b"")

    def _to(self, url: str) -> None:
        self.send_response(302)
        self.send_header("Location", unquote(url))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _hang(self, _: str) -> None:
        """Answers only when the test is over."""
        self.server.go_on.wait()
        self.close_connection = True

    def _reset(self, _: str) -> None:
        self._hang_up()

    def _garbage(self, _: str) -> None:
        self.wfile.write(b"this is no HTTP\r\n\r\n")
        self.close_connection = True

    def _break(self, _: str) -> None:
        """Announces more than it sends."""
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"x" * 10)
        self.close_connection = True

    def _snap(self, _: str) -> None:
        """Leaves in the middle of a chunked body."""
        self._begin_chunks()
        self._chunk(b"x" * 10)
        self.close_connection = True

    def _body(self, chunks: str) -> None:
        self._begin_chunks()
        for _ in range(int(chunks)):
            self._chunk(b"x" * 1000)
        self._chunk(b"")

    def _gzip(self, _: str) -> None:
        self.send_response(200)
        self.send_header("Content-Encoding", "gzip")
        body = gzip.compress(b"x" * 10)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _drip(self, _: str) -> None:
        """Sends a chunk, and the rest only when it is told to go on."""
        self._begin_chunks()
        self._chunk(b"x" * 1000)
        self.server.go_on.wait()
        self._chunk(b"")

    def _answer(self, status: int, body: bytes) -> None:
        self.send_response(status)
        if status not in {204, 304}:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD" and status not in {204, 304}:
            self.wfile.write(body)

    def _begin_chunks(self) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def _hang_up(self) -> None:
        # Without lingering, closing sends a reset.
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        self.close_connection = True

    def _read_body(self) -> bytes:
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while size := int(self.rfile.readline() or b"0", 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body
