"""A real HTTP server on a free port: a dependency that fails and recovers when the test says so."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing_extensions import Self


class WebServer:
    """Answers each GET with JSON that names the path; with another status than 200 as long as it is told so."""

    def __init__(self) -> None:
        self.status = 200
        #: Cleared, it lets requests wait for their answer.
        self.answering = threading.Event()
        self.answering.set()
        self._lock = threading.Lock()
        self._requests = 0
        web = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                with web._lock:
                    web._requests += 1
                web.answering.wait()
                body = json.dumps({"path": self.path}).encode()
                self.send_response(web.status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has in http.server
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    @property
    def requests(self) -> int:
        """How many have come."""
        with self._lock:
            return self._requests

    def stop(self) -> None:
        self.answering.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()
