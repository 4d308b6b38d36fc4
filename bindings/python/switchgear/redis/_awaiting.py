"""Carries conversations for coroutines, within the deadline, however the client is configured."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Coroutine, Generator, Iterable
from contextlib import suppress
from typing import Any, TypeVar

from switchgear._error import StoreError
from switchgear._native import Ask
from switchgear.redis._awaiting_connection import idle_connection
from switchgear.redis._blocking import encoded, names_no_key
from switchgear.redis._carry import PATIENCE_SECONDS
from switchgear.redis._clients import Client, Kind
from switchgear.redis._replies import error_text, is_answer, is_broken_connection
from switchgear.redis._talk import Answer, Talk

T = TypeVar("T")


class AsyncLine:
    """The way to the store of `switchgear.redis.asyncio`. It belongs to no event loop: its client may.

    Where somebody waits for one answer it is asked for over an idle connection of the client's pool. Where there is
    none, or nobody waits, each command is a task of its own, which is waited for and then given up: what the client
    makes of a cancellation, or of one at the wrong moment, is its affair, for neither the deadline nor the caller's own
    cancellation depends on it.
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
        due: float | None = None,
        *,
        ahead: Iterable[asyncio.Task[Any]] | None = None,
        insists: bool = False,
        patient: bool = False,
    ) -> Answer:
        """Has a conversation, and waits for the answer, at most until the deadline.

        Args:
            talk: The conversation.
            due: When it is over, on the clock of the event loop; by default what the store may take from now on.
            ahead: What is to be done first, if there is something.
            insists: Whether to go on when it is cancelled, once.
            patient: Whether to try for some seconds, whatever its deadline: nobody waits for the answer.
        """
        self.post_rest(talk)
        if talk.is_open:
            if due is None:
                due = self.due()
            if ahead is not None and not await self._let_by(ahead, talk, due, insists=insists):
                insists = patient = False
            try:
                while talk.answer is None and (ask := talk.take()) is not None:
                    await self._exchange(talk, ask, due, insists=insists, patient=patient)
                    self.post_rest(talk)
            except BaseException:
                # Wherever that came from, a signal's handler, say: those who have joined ask again.
                talk.left()
                self.post_rest(talk)
                raise
        return talk.given()

    async def _let_by(self, ahead: Iterable[asyncio.Task[Any]], talk: Talk, due: float, *, insists: bool) -> bool:
        """Waits for what is to be done first. Whether it was not cancelled in that."""
        loop = asyncio.get_running_loop()
        try:
            for task in ahead:
                # Of another event loop nobody can wait for a task.
                if task.get_loop() is loop and not task.done():
                    await _wait((task,), due)
        except BaseException as error:
            if insists and isinstance(error, asyncio.CancelledError):
                # The event loop ends: what is to be told is told now.
                return False
            talk.gone()
            raise
        return True

    async def bounded(self, work: Awaitable[T]) -> T:
        """Does something with the client, for as long as one question may take.

        Raises:
            StoreError: There was no answer in time, or an error.
        """
        task = asyncio.ensure_future(work)
        try:
            in_time = await _wait((task,), self.due())
        except BaseException:
            self._give_up(task, None)
            raise
        if not in_time:
            self._give_up(task, None)
            raise StoreError(f"no answer within {round(self._seconds * 1000)} ms")
        try:
            return task.result()
        except StoreError:
            raise
        except (Exception, asyncio.CancelledError) as error:  # a client is foreign code
            raise StoreError(error_text(error)) from error

    def due(self) -> float:
        """When what begins now is over, on the clock of the event loop."""
        return asyncio.get_running_loop().time() + self._seconds

    def post_rest(self, talk: Talk) -> None:
        """Sends what came of a conversation and nobody waits for."""
        for aside in talk.asides():
            self._post_aside(aside)

    def _post_aside(self, aside: Talk) -> None:
        succeeds = aside.succeeds
        task = self.post(self._see_to(aside))
        if task is None:
            # There is no event loop any more.
            aside.gone()
        elif succeeds:
            aside.goes_ahead(task)

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

    async def _see_to(self, talk: Talk) -> None:
        """Has a conversation that nobody waits for."""
        due = self.due()
        while (ask := talk.take()) is not None:
            await self._exchange(talk, ask, due, insists=True, patient=ask.frees)
            for aside in talk.asides():
                if aside is not talk:
                    self._post_aside(aside)

    async def _exchange(self, talk: Talk, ask: Ask, due: float, *, insists: bool, patient: bool) -> None:
        """Sends one command, and hands in what comes of it."""
        loop = asyncio.get_running_loop()
        if ask.delay_ms:
            try:
                await asyncio.sleep(max(0.0, min(ask.delay_ms / 1000, due - loop.time())))
            except BaseException as error:
                if not (insists and isinstance(error, asyncio.CancelledError)):
                    talk.gone()
                    self.post_rest(talk)
                    raise
                insists = patient = False
        if not insists and not patient and self._kind is Kind.SINGLE and (idle := idle_connection(self._client, loop)):
            try:
                reply = await idle.ask(ask.packed, due, self.post)
            except Exception as error:  # noqa: BLE001 - a client is foreign code
                if not is_answer(error) and due <= loop.time():
                    talk.lost()
                    return
                if not is_broken_connection(error):
                    talk.failed(error)
                    return
                # It broke while it was idle, say: by the client then, which may make another one.
            except BaseException:
                talk.gone()
                self.post_rest(talk)
                raise
            else:
                talk.replied(reply)
                return
        await self._exchange_by_client(talk, ask, due, insists=insists, patient=patient)

    async def _exchange_by_client(self, talk: Talk, ask: Ask, due: float, *, insists: bool, patient: bool) -> None:
        """Does so in whatever way the client has."""
        loop = asyncio.get_running_loop()
        may_repeat = self._kind is Kind.SINGLE
        while True:
            try:
                sending = asyncio.ensure_future(self._send(talk.key, ask.command))
            except Exception as error:  # noqa: BLE001 - a client is foreign code
                talk.failed(error)
                return
            try:
                in_time = await _wait((sending,), due)
                if not in_time:
                    talk.expired()
                    self.post_rest(talk)
                    if patient:
                        in_time = await _wait((sending,), due + self._patience_seconds - self._seconds)
            except BaseException as error:
                if insists and isinstance(error, asyncio.CancelledError):
                    # The event loop ends: once more, and no longer than anybody would wait. The id in a command makes
                    # it count once.
                    insists = patient = False
                    due = min(due, loop.time() + self._seconds)
                    self._give_up(sending, None)
                    continue
                talk.left()
                self._give_up(sending, talk)
                raise
            if not in_time:
                self._give_up(sending, talk)
            elif may_repeat and loop.time() < due and _found_it_broken(sending):
                # While it was idle, say, or with the failover of a sentinel. The id in a command makes it count once.
                may_repeat = False
                continue
            else:
                _hear(talk, sending)
            return

    def _send(self, key: str, command: list[str]) -> Any:
        if self._kind is Kind.COMMANDS:
            return self._client.command(command, key)
        if self._kind is Kind.CLUSTER and names_no_key(command):
            return self._send_to_owner(key, command)
        return self._client.execute_command(*encoded(command))

    async def _send_to_owner(self, key: str, command: list[str]) -> Any:
        # Which node that is it knows once it is connected.
        await self._client.initialize()
        return await self._client.execute_command(*command, target_nodes=self._client.get_node_from_key(key.encode()))

    def _give_up(self, sending: asyncio.Future[Any], talk: Talk | None) -> None:
        """Nobody waits for a command any more. What comes of it all the same is told to its conversation."""

        def late(done: asyncio.Future[Any]) -> None:
            self._tasks.discard(done)
            if talk is not None:
                if done.cancelled():
                    talk.lost()
                else:
                    _hear(talk, done)
                self.post_rest(talk)
            elif not done.cancelled():
                # So that Python does not say that nobody asked for it.
                done.exception()

        self._tasks.add(sending)
        with suppress(RuntimeError):
            # Its event loop may be closed already, with this in the hands of the garbage collector.
            sending.cancel()
        sending.add_done_callback(late)


def _hear(talk: Talk, done: asyncio.Future[Any]) -> None:
    """Hands in what came of a command."""
    if done.cancelled():
        talk.failed(StoreError("the command was cancelled"))
        return
    error = done.exception()
    if error is None:
        talk.replied(done.result())
    elif isinstance(error, Exception):
        talk.failed(error)
    else:
        talk.gone()
        raise error


def _found_it_broken(done: asyncio.Future[Any]) -> bool:
    """Whether a command met a connection that was no more."""
    error = None if done.cancelled() else done.exception()
    return error is not None and is_broken_connection(error)


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
