"""Answers of a Starlette or FastAPI application whose circuits refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING

from switchgear._error import CircuitOpenError, StoreUnavailableError

try:
    from starlette.responses import JSONResponse
    from starlette.websockets import WebSocket, WebSocketState
except ModuleNotFoundError as error:
    if error.name != "starlette":
        raise
    raise ImportError("switchgear.starlette needs starlette: pip install starlette") from error

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

__all__ = ["circuit_open_handler"]


async def circuit_open_handler(request: Request, error: Exception) -> JSONResponse:
    """Answers a refused call with 503, `Retry-After` where the wait is known, and a problem of RFC 9457.

    The problem has `type` `about:blank`, `title`, `status` and a `detail` that says when to come back, and nothing
    else: which circuit refused, what failed behind it and what its store said is for the log of the service, not for
    its clients. Whoever wants to say more writes a handler of their own; the error has it all.

    A WebSocket is denied with the same answer before it is accepted, and closed with code 1013 (try again later) after.

    Args:
        request: What was asked.
        error: A `CircuitOpenError`, a `StoreUnavailableError`, or a subclass, as `switchgear.httpx` raises them. Any
            other is raised again.

    Example:
        ```python
        from starlette.applications import Starlette

        from switchgear import CircuitOpenError, StoreUnavailableError
        from switchgear.starlette import circuit_open_handler

        app = Starlette()  # or FastAPI()
        app.add_exception_handler(CircuitOpenError, circuit_open_handler)
        app.add_exception_handler(StoreUnavailableError, circuit_open_handler)
        ```
    """
    if not isinstance(error, (CircuitOpenError, StoreUnavailableError)):
        raise error
    if isinstance(request, WebSocket) and request.application_state is not WebSocketState.CONNECTING:
        return _Closing(None)
    headers = error.headers
    seconds = headers.get("Retry-After")
    when = "later" if seconds is None else f"in {seconds} s"
    problem = {
        "type": "about:blank",
        # What RFC 9457 wants of `about:blank`: the phrase of the status.
        "title": "Service Unavailable",
        "status": error.status_code,
        "detail": f"The service cannot answer this request now. Try again {when}.",
    }
    return JSONResponse(problem, error.status_code, headers, "application/problem+json")


class _Closing(JSONResponse):
    """Closes a WebSocket that was accepted: there is no answer left to give."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.close", "code": _TRY_AGAIN_LATER, "reason": "Try Again Later"})


_TRY_AGAIN_LATER = 1013
