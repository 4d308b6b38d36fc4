"""Async generators are guarded over their whole life, as generators are; there is no `yield from` that would help."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from switchgear._classify import NEUTRAL, raised, returned
from switchgear._deadline import Deadline
from switchgear._fallback import fallback_after, recover_async
from switchgear._generator import Life, iterated, name_like
from switchgear._settle import settle_as_async, settled
from switchgear._stopwatch import Stopwatch

AnyAsyncGenerator: TypeAlias = AsyncGenerator[Any, Any]
Step: TypeAlias = Callable[[], Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Instead:
    """What a fallback gave instead of an async generator: anything that can be iterated, async or not."""

    value: object


class AsyncRun:
    """An async generator under a permit, step by step.

    Args:
        life: The call.
        make: Gives the generator; may raise, as the call of an async generator function with wrong arguments does.
    """

    __slots__ = ("_inner", "_life", "_make", "_watch", "instead")

    def __init__(self, life: Life, make: Callable[[], AnyAsyncGenerator]) -> None:
        self._life = life
        self._make = make
        self._watch = Stopwatch(life.rules)
        self._inner: AnyAsyncGenerator | None = None
        self.instead: Instead | None = None
        """What the fallback gave when it had failed."""

    def first(self) -> Awaitable[Any]:
        """The first step."""
        self._inner = self._make()
        return self._inner.__anext__()

    def sending(self, value: Any) -> Step:
        """The step that follows what its consumer sends."""
        inner = self._begun()
        return inner.__anext__ if value is None else partial(inner.asend, value)

    def throwing(self, error: BaseException) -> Step:
        """The step that follows what its consumer throws in."""
        return partial(self._begun().athrow, error)

    async def take(self, step: Step) -> Any:
        """Takes one step. Raises StopAsyncIteration when there are no more."""
        life, watch = self._life, self._watch
        timeout_ms = life.call.timeout_ms
        deadline = None if timeout_ms is None else Deadline(life.rules.circuit, timeout_ms)
        watch.start()
        try:
            item = await (step() if deadline is None else deadline.run(step))
        except StopAsyncIteration:
            watch.stop()
            await settle_as_async(life.settle, lambda: returned(None, life.rules, watch.took_ms))
            raise
        except BaseException as error:
            del step
            watch.stop()
            timed_out = deadline is not None and deadline.missed
            ending_of = partial(raised, error, life.rules, watch.took_ms, timed_out=timed_out)
            fallback = fallback_after(await settle_as_async(life.settle, ending_of), life.call)
            del ending_of
            if fallback is None:
                raise
            self.instead = Instead(await recover_async(fallback, error, life.args, life.kwargs))
            raise StopAsyncIteration from None
        watch.stop()
        return item

    async def close(self) -> None:
        """Its consumer wants no more. What its own clean-up raises is what it would be elsewhere."""
        try:
            await self._begun().aclose()
        except BaseException as error:
            ending_of = partial(raised, error, self._life.rules, self._watch.took_ms)
            await settle_as_async(self._life.settle, ending_of)
            del ending_of
            raise
        await settled(self._life.settle, NEUTRAL)

    async def give_up(self) -> None:
        """Dropped, or ended by its consumer, before it began: not a line of it has run."""
        await settled(self._life.settle, NEUTRAL)
        await self._make().aclose()

    def _begun(self) -> AnyAsyncGenerator:
        if self._inner is None:
            self._inner = self._make()
        return self._inner


Begin: TypeAlias = Callable[[tuple[Any, ...], dict[str, Any]], Awaitable["AsyncRun | Instead"]]


def guard_async_generator(inner: AnyAsyncGenerator, life: Life) -> AnyAsyncGenerator:
    """An async generator like the one given, which was admitted already."""
    guarded = async_generator_function(AsyncRun(life, lambda: inner))()
    # Up to its first `yield`, where nothing is awaited: only what has begun is closed when it is dropped.
    with suppress(StopIteration):
        guarded.asend(None).send(None)
    name_like(guarded, inner)
    return guarded


def async_generator_function(begin: Begin | AsyncRun) -> Callable[..., AnyAsyncGenerator]:
    """An async generator function that guards.

    Args:
        begin: Asks for a permit, at the first step. Or the run of one that has its permit already: then there is one
            `yield` before everything else.
    """

    async def guarded(*args: Any, **kwargs: Any) -> AnyAsyncGenerator:
        if isinstance(begin, AsyncRun):
            run: AsyncRun | Instead = begin
            try:
                yield
            except BaseException:
                await begin.give_up()
                raise
        else:
            run = await begin(args, kwargs)
        if isinstance(run, AsyncRun):
            step: Step = run.first
            while True:
                try:
                    item = await run.take(step)
                except StopAsyncIteration:
                    break
                finally:
                    # What was thrown in may come out again, with this frame in its traceback; and below.
                    del step
                try:
                    sent = yield item
                except GeneratorExit:
                    await run.close()
                    raise
                except BaseException as error:  # noqa: BLE001 - what its consumer throws in, the generator gets
                    step = run.throwing(error)
                else:
                    step = run.sending(sent)
            if run.instead is None:
                return
            run = run.instead
        async with aclosing(_rest(run.value)) as rest:
            async for item in rest:
                yield item

    return guarded


async def _rest(instead: Any) -> AnyAsyncGenerator:
    if not hasattr(type(instead), "__aiter__"):
        for item in iterated(instead):
            yield item
        return
    iterator = aiter(instead)
    try:
        async for item in iterator:
            yield item
    finally:
        # A generator's; other iterators need not have one.
        close = getattr(iterator, "aclose", None)
        if close is not None:
            await close()
