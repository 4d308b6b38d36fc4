"""Generators are guarded over their whole life.

Exhausted is a success, what one raises is what it would be elsewhere, closing one early is neutral. What is timed is
the time within the generator, not the time its consumer takes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

from switchgear import _native
from switchgear._classify import NEUTRAL, CallRules, raised, returned
from switchgear._fallback import CheckedCall, fallback_after, recover_any
from switchgear._settle import AsyncSettle, Settle, settle_as
from switchgear._stopwatch import Stopwatch

AnyGenerator: TypeAlias = Generator[Any, Any, Any]


@dataclass(slots=True)
class Life:
    """What a guarded generator needs to know of its call."""

    call: CheckedCall
    rules: CallRules
    settle: Settle | AsyncSettle
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


def guard_generator(inner: AnyGenerator, life: Life) -> AnyGenerator:
    """A generator like the one given, which was admitted already."""
    guarded = _admitted(inner, life)
    # Up to its first `yield`: only what has begun is closed when it is dropped, and so gives back its slot.
    next(guarded)
    name_like(guarded, inner)
    return guarded


def name_like(guarded: Any, inner: Any) -> None:
    """Gives a generator the name of another one, for whoever prints it."""
    guarded.__name__, guarded.__qualname__ = inner.__name__, inner.__qualname__


def guarded_steps(make: Callable[[], AnyGenerator], life: Life) -> AnyGenerator:
    """All that a generator gives, settled at its end: what a guarded generator delegates to.

    Args:
        make: Gives the generator; may raise, as the call of a generator function with wrong arguments does.
        life: The call.
    """
    watch = Stopwatch(life.rules)
    try:
        inner = make()
        # By hand only where somebody wants to know how long it takes, or whether it was its consumer who ended it.
        value = yield from (_by_hand(inner, watch) if watch.runs or life.call.on_failure else inner)
    except GeneratorExit:
        life.settle(NEUTRAL)
        raise
    except BaseException as error:
        ending_of = partial(raised, error, life.rules, watch.took_ms)
        fallback = fallback_after(settle_as(life.settle, ending_of), life.call)
        del ending_of
        if fallback is None or watch.closing:
            raise
        instead = recover_any(fallback, error, life.args, life.kwargs)
    else:
        settle_as(life.settle, lambda: returned(value, life.rules, watch.took_ms))
        return value
    # Outside of the handler: whoever consumes the rest handles no error any more.
    return (yield from iterated(instead))


def iterated(instead: object) -> Iterable[Any]:
    """What a fallback gave instead of a generator: anything that can be iterated.

    Raises:
        TypeError: It cannot.
    """
    if not isinstance(instead, Iterable):
        raise TypeError(f"the fallback of a guarded generator must give an iterable, got {_native.describe(instead)}")
    return instead


def _admitted(inner: AnyGenerator, life: Life) -> AnyGenerator:
    try:
        sent = yield
        if sent is not None:
            # As the generator itself would say it.
            raise TypeError("can't send non-None value to a just-started generator")
    except BaseException:
        # Dropped, or ended by its consumer, before it began: not a line of it has run.
        inner.close()
        life.settle(NEUTRAL)
        raise
    return (yield from guarded_steps(lambda: inner, life))


def _by_hand(inner: AnyGenerator, watch: Stopwatch) -> AnyGenerator:
    """The same as `yield from inner`, as PEP 380 spells it out, with a look at the watch."""
    advance: Callable[[], Any] = inner.__next__
    while True:
        watch.start()
        try:
            item = advance()
        except StopIteration as end:
            return end.value
        finally:
            watch.stop()
            # What was thrown in may come out again, with this frame in its traceback.
            del advance
        try:
            sent = yield item
        except GeneratorExit:
            watch.closing = True
            inner.close()
            raise
        except BaseException as error:  # noqa: BLE001 - what its consumer throws in, the generator gets
            advance = partial(inner.throw, error)
        else:
            advance = inner.__next__ if sent is None else partial(inner.send, sent)
