"""Answers of a Starlette or FastAPI application whose circuits refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, overload

from switchgear._error import Refusal

try:
    from starlette.responses import JSONResponse
    from starlette.websockets import WebSocket, WebSocketState
except ModuleNotFoundError as error:
    if error.name != "starlette":
        raise
    raise ImportError("switchgear.starlette needs starlette: pip install starlette") from error

if TYPE_CHECKING:
    from starlette.requests import Request

__all__ = ["circuit_open_handler"]


@overload
async def circuit_open_handler(request: Request, error: Exception) -> JSONResponse: ...
@overload
async def circuit_open_handler(request: WebSocket, error: Exception) -> None: ...
async def circuit_open_handler(request: Request | WebSocket, error: Exception) -> JSONResponse | None:
    """Answers a refused call with 503, `Retry-After` where the wait is known, and a problem of RFC 9457.

    The problem has `type` `about:blank`, `title`, `status` and a `detail` that says when to come back, and nothing
    else: which circuit refused, what failed behind it and what its store said is for the log of the service, not for
    its clients. Whoever wants to say more writes a handler of their own; the error has it all.

    A WebSocket is denied with the same answer before it is accepted, and closed with code 1013 (try again later) after,
    or where the server cannot deny.

    Args:
        request: What was asked.
        error: A `Refusal`: a `CircuitOpenError`, a `StoreUnavailableError`, or a subclass, as `switchgear.httpx` raises
            them. Any other is raised again.

    Example:
        ```python
        from starlette.applications import Starlette

        from switchgear import Refusal
        from switchgear.starlette import circuit_open_handler

        app = Starlette()  # or FastAPI()
        app.add_exception_handler(Refusal, circuit_open_handler)
        ```
    """
    if not isinstance(error, Refusal):
        raise error
    answer = _problem(error)
    if not isinstance(request, WebSocket):
        return answer
    if request.application_state is WebSocketState.CONNECTING and _DENIAL in request.scope.get("extensions", {}):
        await request.send_denial_response(answer)
    elif request.application_state is not WebSocketState.DISCONNECTED:
        await request.close(_TRY_AGAIN_LATER, "Try Again Later")
    return None


_DENIAL = "websocket.http.response"
_TRY_AGAIN_LATER = 1013


def _problem(error: Refusal) -> JSONResponse:
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
