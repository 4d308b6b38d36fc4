"""A shared circuit whose answers are awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from switchgear._async_generator import guard_async_generator
from switchgear._awaitable import is_async_generator, is_generator, is_plain
from switchgear._circuit import UNCOUNTED, Told
from switchgear._classify import Ending, raised
from switchgear._error import Refusal
from switchgear._fallback import NO_OPTIONS
from switchgear._generator import Life, guard_generator
from switchgear._native import Flight, SharedGrant
from switchgear._permit import AsyncPermit
from switchgear._settle import AsyncSettle, settle_as_async
from switchgear._types import Settled, Snapshot
from switchgear.redis._awaiting import AsyncLine
from switchgear.redis._crowd import Crowd
from switchgear.redis._engine import Control
from switchgear.redis._link import Link
from switchgear.redis._shared import Asking, PreparedSharedPolicy, rules_of
from switchgear.redis._talk import Answer, Talk

T = TypeVar("T")


class AwaitingCircuit(Told):
    """One circuit: the engine with the store's clock and a client for `asyncio`, and what it tells.

    It belongs to no event loop.

    Args:
        name: The circuit's.
        link: The store's.
        policy: How it behaves.
        noted: Told of each change whether the circuit is closed now.
    """

    __slots__ = ("_asking", "_crowd", "_line", "_settling", "hints")

    def __init__(
        self,
        name: object,
        link: Link[AsyncLine],
        policy: PreparedSharedPolicy,
        noted: Callable[[bool], object] | None = None,
    ) -> None:
        super().__init__(*rules_of(name, link, policy))
        self._line = link.line
        self._asking = Asking(self, link, policy, noted)
        #: What lets a call through without a question.
        self.hints = self._asking.engine.standing
        # Who waits with others, since somebody has last asked.
        self._crowd: Crowd | None = None
        # Outcomes of cancelled calls that are on their way to the store.
        self._settling: set[asyncio.Task[Settled]] = set()

    def admit(self) -> Awaitable[AsyncSettle | Refusal]:
        """How a call that goes ahead is settled, or why it does not.

        Under `observe` every call goes ahead; one that would have been refused has been told as refused, and that is
        all that is said and counted of it.
        """
        return self._ask(self._settle_of)

    def acquire(self) -> Awaitable[AsyncPermit]:
        """The permit of one call. Raises the refusal."""
        return self._ask(self._permit_of)

    def can_execute(self) -> Awaitable[bool]:
        """Asks for one call by hand."""
        return self._ask(lambda answer: not isinstance(answer, Exception) or self.rules.host.observe)

    async def settle_by_hand(self, grant: Any, ending: Ending) -> Settled:
        """Counts an ending and tells it, also where the caller is cancelled meanwhile."""
        if grant is UNCOUNTED:
            return "stale"
        talk = self._asking.settle(grant, ending)
        if talk.answer is not None:
            self._line.post_rest(talk)
            self.tell(ending)
            return "applied" if talk.answer == "applied" else "stale"
        task = self._told_to_store(talk, ending, hurries=True)
        return "stale" if task is None else await asyncio.shield(task)

    async def settle_block(self, grant: Any, ending: Ending) -> None:
        """The same at the end of a block."""
        settling = self.settle(grant, ending)
        if settling is not None:
            await settling

    def settle(self, grant: Any, ending: Ending) -> Awaitable[object] | None:
        """The same of a call: what to wait for, if there is something."""
        if grant is UNCOUNTED:
            return None
        if ending.outcome == "success" and grant.is_free:
            self.tell(ending)
            return None
        talk = self._asking.settle(grant, ending)
        if talk.answer is not None:
            self._line.post_rest(talk)
            self.tell(ending)
            return None
        hurries = not _is_cancelled(ending)
        task = self._told_to_store(talk, ending, hurries=hurries)
        if task is None:
            return None
        if hurries:
            return asyncio.shield(task)
        # Of a task that is cancelled the event loop may end right after it: what it had to tell is told by then, unless
        # it is cancelled once more. Whatever else is neutral may not wait: a coroutine that is closed, for one.
        return self._line.for_a_moment(task) if isinstance(ending.error, asyncio.CancelledError) else None

    async def hot_raised(self, grant: Any, error: BaseException) -> None:
        """Settles a call that `hints` let through, and that raised."""
        await settle_as_async(partial(self.settle, grant), partial(raised, error, self.rules, None))

    def hot_returned(self, grant: Any, value: Any) -> Any:
        """What becomes of a value that such a call gave at once. Its success changes nothing."""
        if is_plain(value):
            return value
        settle = partial(self.settle, grant)
        if is_generator(value):
            return guard_generator(value, Life(NO_OPTIONS, self.rules, settle, (), {}))
        if is_async_generator(value):
            return guard_async_generator(value, Life(NO_OPTIONS, self.rules, settle, (), {}))
        return value

    async def snapshot(self) -> Snapshot:
        """Everything the store knows of the circuit."""
        return self._asking.snapshot(await self._line.converse(self._asking.engine.snapshot()))

    async def control(self, operation: Control, for_ms: object = None) -> None:
        """Does a manual operation."""
        self._asking.check_done(await self._line.converse(self._asking.engine.control(operation, for_ms)))

    async def _ask(self, given: Callable[[SharedGrant | Refusal], T]) -> T:
        """Asks for one call, and gives what is made of the grant, or of the refusal, which was told already.

        It asks, or waits with others for what somebody has asked; all in all until one deadline.
        """
        asking = self._asking
        engine = asking.engine
        answer: Answer | None = engine.free()
        if answer is None:
            loop, due = asyncio.get_running_loop(), self._line.due()
            asked = engine.admit()
            while isinstance(asked, Flight):
                crowd = self._crowd
                if crowd is None or crowd.flight is not asked or crowd.loop is not loop:
                    crowd = self._crowd = Crowd(asked, loop)
                if crowd.landed is None:
                    await crowd.wait(due)
                after = engine.after(crowd.landed, asked)
                if not isinstance(after, (Talk, Flight)):
                    answer = after
                    break
                asked = after
            else:
                answer = await self._lead(asked, due)
        return given(answer if isinstance(answer, SharedGrant) else asking.refusal(answer))

    async def _lead(self, talk: Talk, due: float) -> Answer:
        """Asks for this call, and for all that join it."""
        # A slot that a cancelled call of this process is giving back is free for this one.
        ahead = list(self._settling) if self._settling else None
        try:
            answer = await self._line.converse(talk, due, ahead=ahead)
        finally:
            # It has landed, and nobody joins it any more. A circuit has no hold of an event loop.
            self._crowd = None
        if talk.answer is None:
            # Somebody who had waited for it has given it up before us.
            engine = self._asking.engine
            return await self._line.converse(engine.admit_unasked(engine.too_late()))
        return answer

    def _settle_of(self, answer: SharedGrant | Refusal) -> AsyncSettle | Refusal:
        if isinstance(answer, Exception):
            return _ignore if self.rules.host.observe else answer
        return partial(self.settle, answer)

    def _permit_of(self, answer: SharedGrant | Refusal) -> AsyncPermit:
        if not isinstance(answer, Exception):
            return AsyncPermit(self, answer, probe=answer.is_probe)
        if not self.rules.host.observe:
            try:
                raise answer
            finally:
                del answer
        return AsyncPermit(self, UNCOUNTED)

    def _told_to_store(self, talk: Talk, ending: Ending, *, hurries: bool) -> asyncio.Task[Settled] | None:
        """Tells the store of an ending, in a task of its own: a caller who is cancelled takes nothing back."""
        ahead = self._asking.engine.told_before() if ending.outcome == "failure" else None

        async def tell() -> Settled:
            answer = await self._line.converse(talk, ahead=ahead, insists=True, patient=not hurries)
            self.tell(ending)
            return "applied" if answer == "applied" else "stale"

        task = self._line.post(tell())
        if task is None:
            # There is no event loop any more. A slot that was held expires.
            talk.gone()
            self.tell(ending)
        elif ending.outcome == "ignored":
            self._settling.add(task)
            task.add_done_callback(self._settling.discard)
        return task


def _ignore(_ending: Ending) -> None:
    """Told as refused, see `observe`."""


def _is_cancelled(ending: Ending) -> bool:
    """Whether nobody waits for what comes of it: a cancelled task may be cancelled again at each `await`."""
    return ending.outcome == "ignored" and not isinstance(ending.error, Exception)
