"""Calls that a test begins and ends at moments of its choosing, whatever surface they go through."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Literal, TypeAlias

Outcome: TypeAlias = Literal["success", "failure", "neutral"]

End: TypeAlias = Callable[[Outcome], None]
"""Ends a call that was let through."""

Begin: TypeAlias = Callable[[], "End | None"]
"""Begins a call; `None` if it was refused."""

Body: TypeAlias = Callable[[], None]
AsyncBody: TypeAlias = Callable[[], Awaitable[None]]


class CountsError(Exception):
    """Counts."""


class IgnoredError(Exception):
    """Does not count: the policies of these tests ignore it."""


def raise_for(outcome: Outcome) -> None:
    """Ends the body of a call."""
    if outcome == "failure":
        raise CountsError
    if outcome == "neutral":
        raise IgnoredError


def in_thread(call: Callable[[Body], object], refusal: type[Exception]) -> Begin:
    """Runs `call(body)` in a thread of its own for each call, until it is told how the body ends."""

    def begin() -> End | None:
        begun: SimpleQueue[bool | BaseException] = SimpleQueue()
        outcomes: SimpleQueue[Outcome] = SimpleQueue()

        def body() -> None:
            begun.put(True)
            raise_for(outcomes.get())

        def run() -> None:
            try:
                call(body)
            except refusal:
                begun.put(False)
            except (CountsError, IgnoredError):
                pass
            except BaseException as error:
                begun.put(error)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        first = begun.get()
        if isinstance(first, BaseException):
            raise first

        def end(outcome: Outcome) -> None:
            outcomes.put(outcome)
            thread.join()
            if not begun.empty():
                raise AssertionError(f"a call that was let through ended with {begun.get()!r}")

        if first:
            return end
        thread.join()
        return None

    return begin


def in_task(
    loop: asyncio.AbstractEventLoop, call: Callable[[AsyncBody], Awaitable[object]], refusal: type[Exception]
) -> Begin:
    """Runs `call(body)` in a task of its own for each call, until it is told how the body ends."""

    def begin() -> End | None:
        async def started() -> tuple[asyncio.Task[None], asyncio.Future[Outcome]] | None:
            begun = asyncio.Event()
            outcome: asyncio.Future[Outcome] = loop.create_future()

            async def body() -> None:
                begun.set()
                raise_for(await outcome)

            async def run() -> None:
                await call(body)

            task = asyncio.ensure_future(run())
            waiting = asyncio.ensure_future(begun.wait())
            await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
            if begun.is_set():
                return task, outcome
            waiting.cancel()
            try:
                await task
            except refusal:
                return None
            raise AssertionError("it neither ran nor was refused")

        call_under_way = loop.run_until_complete(started())
        if call_under_way is None:
            return None
        task, future = call_under_way

        def end(outcome: Outcome) -> None:
            async def ended() -> None:
                future.set_result(outcome)
                with suppress(CountsError, IgnoredError):
                    await task

            loop.run_until_complete(ended())

        return end

    return begin
