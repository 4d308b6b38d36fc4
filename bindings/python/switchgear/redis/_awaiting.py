"""Carries conversations for coroutines, within the deadline, however the client is configured."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Collection, Coroutine, Sequence
from typing import Any

from switchgear._error import StoreError
from switchgear._native import Ask
from switchgear.redis._blocking import encoded
from switchgear.redis._clients import Client, Kind
from switchgear.redis._talk import Answer, Talk

if sys.version_info >= (3, 11):
    from asyncio import timeout
else:
    from async_timeout import timeout


class AsyncLine:
    """The way to the store of `switchgear.redis.asyncio`. It belongs to no event loop: its client may."""

    def __init__(self, client: Client, timeout_ms: int) -> None:
        self._kind = client.kind
        self._client = client.given
        self._seconds = timeout_ms / 1000
        # The event loop alone would let the garbage collector have them.
        self._tasks: set[asyncio.Task[Any]] = set()

    async def converse(self, talk: Talk, ask: Ask, ahead: Collection[asyncio.Task[Any]] = ()) -> Answer:
        """Has a conversation, and waits for the answer, at most until the deadline.

        Args:
            talk: The conversation.
            ask: What it begins with.
            ahead: What is to be done first.
        """
        following: Ask | None = ask
        try:
            async with timeout(self._seconds):
                if ahead:
                    await asyncio.wait(ahead)
                while talk.answer is None and following is not None:
                    following = await self._exchange(talk, following)
        except asyncio.TimeoutError:
            following = talk.lost()
        except BaseException:
            # The caller was cancelled. A slot that was granted meanwhile is nobody's.
            talk.hush()
            self.post_rest(talk, talk.lost())
            raise
        self.post_rest(talk, following)
        return StoreError("no answer") if talk.answer is None else talk.answer

    def post_rest(self, talk: Talk, ask: Ask | None) -> None:
        """Sends what nobody waits for."""
        if ask is not None:
            self.post(self._see_to(talk.aftermath(ask), ask))

    def post(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any] | None:
        """Does something in a task of its own; none where there is no event loop any more."""
        try:
            task = asyncio.get_running_loop().create_task(work)
        except RuntimeError:
            work.close()
            return None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def rest(self) -> None:
        """Waits for what is being done in the event loop at hand for nobody."""
        loop = asyncio.get_running_loop()
        if tasks := [task for task in self._tasks if task.get_loop() is loop]:
            await asyncio.wait(tasks)

    async def _see_to(self, talk: Talk, ask: Ask) -> None:
        following: Ask | None = ask
        try:
            async with timeout(max(self._seconds, _PATIENCE_SECONDS)):
                while following is not None:
                    following = await self._exchange(talk, following)
        except asyncio.TimeoutError:
            talk.lost()

    async def _exchange(self, talk: Talk, ask: Ask) -> Ask | None:
        """Sends one command, and hands in what comes of it."""
        if ask.delay_ms:
            await asyncio.sleep(ask.delay_ms / 1000)
        try:
            reply = await self._send(talk.key, ask.command)
        except Exception as error:  # noqa: BLE001 - a client is foreign code
            return talk.failed(error)
        return talk.replied(reply)

    async def _send(self, key: str, command: Sequence[str]) -> object:
        if self._kind is Kind.COMMANDS:
            return await self._client.command(list(command), key)
        return await self._client.execute_command(*encoded(command))


# How long to try what nobody waits for: a store that hangs for a moment should still hear that a slot is free.
_PATIENCE_SECONDS = 5.0
