"""Clients that a test looks into, and stores that it makes fail."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from redis import Redis
from switchgear import StoreUnavailableError
from switchgear.redis import StoreEvent

PATIENT = 20_000
"""Milliseconds that are never over: tests with them do not depend on how fast anything is."""

Through = Callable[[list[str]], Any]


class Tapped:
    """A client that hands each command to a test, which may send it on."""

    def __init__(self, client: Any, tap: Callable[[list[str], Through], Any] | None = None) -> None:
        self._client = client
        self._tap = tap
        self.sent: list[list[str]] = []

    def command(self, args: list[str], key: str) -> Any:
        self.sent.append(args)
        return self._through(args) if self._tap is None else self._tap(args, self._through)

    def took(self, call: Callable[[], object]) -> list[str]:
        """The names of the commands that a call takes."""
        self.sent.clear()
        call()
        return [args[0] for args in self.sent]

    def _through(self, args: list[str]) -> Any:
        return self._client.execute_command(*args)


class AsyncTapped:
    """The same for asyncio."""

    def __init__(
        self,
        client: Any,
        tap: Callable[[list[str], Callable[[list[str]], Awaitable[Any]]], Awaitable[Any]] | None = None,
    ) -> None:
        self._client = client
        self._tap = tap
        self.sent: list[list[str]] = []

    async def command(self, args: list[str], key: str) -> Any:
        self.sent.append(args)
        return await (self._through(args) if self._tap is None else self._tap(args, self._through))

    async def _through(self, args: list[str]) -> Any:
        return await self._client.execute_command(*args)


class Answering:
    """A client of no server: it answers what a test says, or raises it."""

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def command(self, args: list[str], key: str) -> object:
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer


class Away:
    """A client whose server is away for so many commands."""

    def __init__(self, times: int, port: int) -> None:
        self.times = times
        self.client: Any = Redis(port=port)

    def command(self, args: list[str], key: str) -> object:
        self.times -= 1
        if self.times >= 0:
            raise ConnectionError("no route")
        return self.client.execute_command(*args)


class AsyncAnswering(Answering):
    """The same for asyncio."""

    async def command(self, args: list[str], key: str) -> object:
        return super().command(args, key)


def heard(store: Any) -> list[StoreEvent]:
    """What a store says of itself from now on."""
    events: list[StoreEvent] = []
    store.on("store_error", events.append)
    store.on("config_mismatch", events.append)
    return events


def texts(events: list[StoreEvent]) -> list[str]:
    """The errors among them, in words."""
    return [str(event.error) for event in events]


def set_deadline(store: Any, timeout_ms: int) -> None:
    """Has a store wait so long from now on.

    A machine that is busy takes its time: what leads to the one thing that is to be late must not be late itself.
    """
    link = store.link
    link.line._seconds = timeout_ms / 1000
    # What errors say; a link is frozen.
    object.__setattr__(link, "timeout_ms", timeout_ms)


def reason(call: Callable[[], object]) -> str | None:
    """Why a call is told that the store is unavailable."""
    try:
        given = call()
    except StoreUnavailableError as error:
        return error.reason
    raise AssertionError(f"it gave {given!r}")


async def reason_async(call: Awaitable[object]) -> str | None:
    """The same of an awaited call."""
    try:
        given = await call
    except StoreUnavailableError as error:
        return error.reason
    raise AssertionError(f"it gave {given!r}")


def name() -> str:
    """The name of a circuit that nobody else has."""
    return str(uuid4())
