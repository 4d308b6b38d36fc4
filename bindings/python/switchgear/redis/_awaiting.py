"""Carries conversations for coroutines, within the deadline, however the client is configured."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Coroutine, Generator
from typing import Any

from switchgear._error import StoreError
from switchgear._native import Ask
from switchgear.redis._blocking import encoded
from switchgear.redis._carry import PATIENCE_SECONDS
from switchgear.redis._clients import Client, Kind
from switchgear.redis._talk import Answer, Talk


class AsyncLine:
    """The way to the store of `switchgear.redis.asyncio`. It belongs to no event loop: its client may.

    Each command is a task of its own, which is waited for and then given up. What the client makes of a cancellation,
    or of one at the wrong moment, is its affair: neither the deadline nor the caller's own cancellation depends on it.
    """

    def __init__(self, client: Client, timeout_ms: int) -> None:
        self._kind = client.kind
        self._client = client.given
        self._seconds = timeout_ms / 1000
        # A store that hangs for a moment should still hear that a slot is free.
        self._patience_seconds = max(self._seconds, PATIENCE_SECONDS)
        # The event loop alone would let the garbage collector have them.
        self._tasks: set[asyncio.Future[Any]] = set()

    async def converse(
        self,
        talk: Talk,
        ask: Ask,
        *,
        ahead: Collection[asyncio.Task[Any]] = (),
        insists: bool = False,
        hurries: bool = True,
    ) -> Answer:
        """Has a conversation, and waits for the answer, at most until the deadline.

        Args:
            talk: The conversation.
            ask: What it begins with.
            ahead: What is to be done first.
            insists: Whether to go on when it is cancelled, once.
            hurries: Whether somebody waits for it. Else it may take some seconds.
        """
        due = asyncio.get_running_loop().time() + (self._seconds if hurries else self._patience_seconds)
        if ahead:
            try:
                await _wait(ahead, due)
            except BaseException:
                talk.hush()
                talk.lost()
                raise
        following: Ask | None = ask
        while talk.answer is None and following is not None:
            following = await self._exchange(talk, following, due, insists=insists)
        self.post_rest(talk, following)
        return StoreError("no answer") if talk.answer is None else talk.answer

    def post_rest(self, talk: Talk, ask: Ask | None) -> None:
        """Sends what nobody waits for."""
        if ask is not None:
            self.post(self._see_to(talk.aftermath(ask), ask))

    def post(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any] | None:
        """Does something in a task of its own; none where there is no event loop any more.

        An event loop that ends cancels all its tasks and waits for them: this one begins all the same.
        """
        try:
            task = asyncio.get_running_loop().create_task(_Begun(work))
        except RuntimeError:
            work.close()
            return None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def for_a_moment(self, task: asyncio.Task[Any]) -> None:
        """Waits for a task at most as long as anybody would, and whatever comes of it."""
        await asyncio.wait({task}, timeout=self._seconds)

    async def rest(self) -> None:
        """Waits for what is being done in the event loop at hand for nobody."""
        loop = asyncio.get_running_loop()
        while tasks := [task for task in self._tasks if task.get_loop() is loop]:
            await asyncio.wait(tasks)

    async def _see_to(self, talk: Talk, ask: Ask) -> None:
        due = asyncio.get_running_loop().time() + self._patience_seconds
        following: Ask | None = ask
        while following is not None:
            following = await self._exchange(talk, following, due, insists=True)

    async def _exchange(self, talk: Talk, ask: Ask, due: float, *, insists: bool) -> Ask | None:
        """Sends one command, and hands in what comes of it. What to send next."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                if ask.delay_ms:
                    await asyncio.sleep(max(0.0, min(ask.delay_ms / 1000, due - loop.time())))
                sending = asyncio.ensure_future(self._send(talk.key, ask.command))
            except Exception as error:  # noqa: BLE001 - a client is foreign code
                return talk.failed(error)
            try:
                in_time = await _wait((sending,), due)
            except BaseException as error:
                if insists and isinstance(error, asyncio.CancelledError):
                    # The event loop ends: once more, and no longer than anybody would wait. The id in a command makes
                    # it count once.
                    insists = False
                    due = min(due, loop.time() + self._seconds)
                    self._give_up(sending, None)
                    continue
                talk.hush()
                talk.expired()
                self._give_up(sending, talk)
                raise
            if in_time:
                return _heard(talk, sending)
            talk.expired()
            self._give_up(sending, talk)
            return None

    def _send(self, key: str, command: list[str]) -> Any:
        if self._kind is Kind.COMMANDS:
            return self._client.command(command, key)
        return self._client.execute_command(*encoded(command))

    def _give_up(self, sending: asyncio.Future[Any], talk: Talk | None) -> None:
        """Nobody waits for a command any more. What comes of it all the same is told to its conversation."""

        def late(done: asyncio.Future[Any]) -> None:
            self._tasks.discard(done)
            if talk is not None:
                self.post_rest(talk, talk.lost() if done.cancelled() else _heard(talk, done))
            elif not done.cancelled():
                # So that Python does not say that nobody asked for it.
                done.exception()

        self._tasks.add(sending)
        sending.cancel()
        sending.add_done_callback(late)


def _heard(talk: Talk, done: asyncio.Future[Any]) -> Ask | None:
    """Hands in what came of a command."""
    if done.cancelled():
        return talk.failed(StoreError("the command was cancelled"))
    error = done.exception()
    if error is None:
        return talk.replied(done.result())
    if not isinstance(error, Exception):
        raise error
    return talk.failed(error)


async def _wait(tasks: Collection[asyncio.Future[Any]], due: float) -> bool:
    """Waits for tasks until it is due. Whether they are done."""
    loop = asyncio.get_running_loop()
    _, pending = await asyncio.wait(tasks, timeout=max(0.0, due - loop.time()))
    return not pending


class _Begun(Coroutine[Any, Any, Any]):
    """A coroutine that is begun even if its task is cancelled before."""

    def __init__(self, inner: Coroutine[Any, Any, Any]) -> None:
        self._inner = inner
        self._has_begun = False

    def send(self, value: Any) -> Any:
        self._has_begun = True
        return self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        return self._inner.throw(*error) if self._has_begun else self.send(None)

    def close(self) -> None:
        self._inner.close()

    def __await__(self) -> Generator[Any, Any, Any]:
        return self._inner.__await__()
