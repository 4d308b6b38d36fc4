"""switchgear.starlette in applications on a real uvicorn server."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import httpx
import pytest
import switchgear.httpx
import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket
from support.clock import ManualClock
from switchgear import CircuitBreaker, Refusal, StoreUnavailableError
from switchgear.starlette import circuit_open_handler

SECRET = "db-17.internal says no"


App = TypeVar("App", bound=Starlette)


def handled(app: App) -> App:
    app.add_exception_handler(Refusal, circuit_open_handler)
    return app


def opened(for_ms: int = 12_300) -> CircuitBreaker:
    """A circuit that an internal failure opened."""
    breaker = CircuitBreaker("internal-billing", failure_threshold=1, open_duration_ms=for_ms, clock=ManualClock())
    breaker.record_failure(ConnectionError(SECRET))
    return breaker


@contextmanager
def served(app: Starlette) -> Iterator[httpx.Client]:
    """The application on a server of its own, and a client of it."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        # From here on who connects is waited for, whenever the server is ready.
        listener.listen()
        config = uvicorn.Config(app, log_level="critical", lifespan="off", ws="none")
        server = uvicorn.Server(config)
        thread = threading.Thread(target=lambda: asyncio.run(server.serve([listener])))
        thread.start()
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=30) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


def fastapi_app(breaker: CircuitBreaker) -> Starlette:
    app = handled(FastAPI())

    @app.get("/sync")
    def sync() -> str:
        return breaker.execute(lambda: "charged")

    @app.get("/async")
    async def endpoint() -> str:
        async def charge() -> str:
            return "charged"

        return await breaker.execute_async(charge)

    @app.get("/with")
    async def entered() -> str:
        async with breaker:
            return "charged"

    return app


def starlette_app(breaker: CircuitBreaker) -> Starlette:
    def sync(request: Request) -> PlainTextResponse:
        return PlainTextResponse(breaker.execute(lambda: "charged"))

    async def endpoint(request: Request) -> PlainTextResponse:
        async def charge() -> str:
            return "charged"

        return PlainTextResponse(await breaker.execute_async(charge))

    async def entered(request: Request) -> PlainTextResponse:
        async with breaker:
            return PlainTextResponse("charged")

    return handled(Starlette(routes=[Route("/sync", sync), Route("/async", endpoint), Route("/with", entered)]))


@pytest.mark.parametrize("app", [fastapi_app, starlette_app])
def test_a_refusal_is_a_503_that_says_when_to_come_back_and_nothing_of_what_is_inside(
    app: Callable[[CircuitBreaker], Starlette],
) -> None:
    breaker = opened()
    with served(app(breaker)) as client:
        for path in ("/sync", "/async", "/with"):
            answer = client.get(path)
            assert answer.status_code == 503
            assert answer.headers["Retry-After"] == "13"
            assert answer.headers["Content-Type"] == "application/problem+json"
            assert answer.json() == {
                "type": "about:blank",
                "title": "Service Unavailable",
                "status": 503,
                "detail": "The service cannot answer this request now. Try again in 13 s.",
            }
            assert "billing" not in answer.text
            assert SECRET not in answer.text
        breaker.reset()
        for path in ("/sync", "/async", "/with"):
            assert "charged" in client.get(path).text


def test_where_the_wait_is_unknown_there_is_no_retry_after() -> None:
    breaker = CircuitBreaker("internal-billing")
    breaker.force_open()
    with served(fastapi_app(breaker)) as client:
        answer = client.get("/sync")
        assert answer.status_code == 503
        assert "Retry-After" not in answer.headers
        assert answer.json()["detail"] == "The service cannot answer this request now. Try again later."


def test_a_store_that_does_not_answer_is_a_503_and_what_it_said_stays_inside() -> None:
    app = handled(FastAPI())

    @app.get("/")
    def endpoint() -> None:
        raise StoreUnavailableError("internal-billing", SECRET)

    with served(app) as client:
        answer = client.get("/")
        assert (answer.status_code, answer.headers["Content-Type"]) == (503, "application/problem+json")
        assert "Retry-After" not in answer.headers
        assert "billing" not in answer.text
        assert SECRET not in answer.text


def test_a_refusal_of_the_http_client_is_handled_too() -> None:
    transport = switchgear.httpx.AsyncBreakerTransport(
        httpx.MockTransport(lambda _: httpx.Response(503)), failure_threshold=1
    )
    app = handled(FastAPI())

    @app.get("/")
    async def endpoint() -> int:
        async with httpx.AsyncClient(transport=transport) as upstream:
            return (await upstream.get("https://internal.example.com")).status_code

    with served(app) as client:
        assert (client.get("/").status_code, client.get("/").status_code) == (200, 503)


def test_head_is_answered_without_a_body() -> None:
    app = starlette_app(opened())
    with served(app) as client:
        answer = client.head("/sync")
        assert (answer.status_code, answer.headers["Retry-After"], answer.content) == (503, "13", b"")


def test_an_error_that_is_no_refusal_is_raised_again() -> None:
    error = ValueError("other")
    with pytest.raises(ValueError, match="other") as raised:
        asyncio.run(circuit_open_handler(Request({"type": "http", "headers": []}), error))
    assert raised.value is error


async def speak(endpoint: Callable[[WebSocket], Any], extensions: dict[str, Any]) -> list[Any]:
    """What an application says to a server that speaks ASGI to it, when somebody comes with a WebSocket."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "websocket", "path": "/", "headers": [], "query_string": b"", "extensions": extensions}
    await handled(Starlette(routes=[WebSocketRoute("/", endpoint)]))(scope, receive, send)
    return sent


DENIAL: dict[str, Any] = {"websocket.http.response": {}}


def test_a_websocket_is_denied_before_it_is_accepted() -> None:
    async def endpoint(websocket: WebSocket) -> None:
        opened().execute(lambda: None)

    start, body = asyncio.run(speak(endpoint, DENIAL))
    assert (start["type"], body["type"]) == ("websocket.http.response.start", "websocket.http.response.body")
    assert start["status"] == 503
    assert (b"retry-after", b"13") in start["headers"]
    assert asyncio.run(speak(endpoint, {})) == [{"type": "websocket.close", "code": 1013, "reason": "Try Again Later"}]


def test_a_websocket_is_closed_after_it_was_accepted() -> None:
    async def endpoint(websocket: WebSocket) -> None:
        await websocket.accept()
        opened().execute(lambda: None)

    _, close = asyncio.run(speak(endpoint, DENIAL))
    assert close == {"type": "websocket.close", "code": 1013, "reason": "Try Again Later"}


def test_a_websocket_that_is_closed_stays_so() -> None:
    async def endpoint(websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.close()
        opened().execute(lambda: None)

    _, close = asyncio.run(speak(endpoint, DENIAL))
    assert close["code"] == 1000
