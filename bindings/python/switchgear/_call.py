"""One guarded call: admitted, run once, settled once, its result or its own error passed on.

Local and shared breakers differ only in what they hand in as `Ways`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeAlias

from switchgear import _native
from switchgear._async_generator import guard_async_generator
from switchgear._awaitable import discard, is_async_generator, is_generator, is_plain, must_be_awaited
from switchgear._classify import SUCCEEDED, CallRules, Ending, raised, returned
from switchgear._deadline import Deadline, check_task
from switchgear._error import Refusal
from switchgear._fallback import CheckedCall, fallback_after, recover, recover_async
from switchgear._generator import Life, guard_generator
from switchgear._kind import is_coroutine_function
from switchgear._settle import AsyncSettle, Settle, settle_as, settle_as_async

Args: TypeAlias = tuple[Any, ...]
Kwargs: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways into a breaker whose admissions and settlements are sync."""

    rules: CallRules
    admit: Callable[[], Settle | Refusal]
    """How a call that goes ahead is settled, or why it does not. Raises what keeps the circuit from being asked."""
    other: str
    """What to use for functions whose result has to be awaited."""


@dataclass(frozen=True, slots=True)
class AsyncWays:
    """The ways into a breaker where one may have to wait, for its store. `Ways` are such ways, too."""

    rules: CallRules
    admit: Callable[[], Awaitable[AsyncSettle | Refusal]]
    settle_later: Callable[[AsyncSettle, Ending], object] | None = None
    """Settles without waiting: for a sync generator that ends, or is closed, where nobody awaits anything."""


def enter(fn: Callable[..., Any], args: Args, kwargs: Kwargs, call: CheckedCall, ways: Ways) -> Any:
    """A sync call.

    Raises:
        TypeError: Its result has to be awaited.
    """
    admission = ways.admit()
    if isinstance(admission, Exception):
        if call.fallback is None:
            try:
                raise admission
            finally:
                # Here and elsewhere: a frame that holds an error which it raises keeps both until the collector comes.
                del admission
        return recover(call.fallback, admission, args, kwargs)
    settle = admission
    rules = ways.rules
    begun = rules.begin()
    try:
        value = fn(*args, **kwargs)
    except BaseException as error:
        fallback = fallback_after(settle_as(settle, partial(raised, error, rules, rules.since(begun))), call)
        if fallback is None:
            raise
        return recover(fallback, error, args, kwargs)
    if not is_plain(value):
        if must_be_awaited(value):
            discard(value)
            refuse_awaitable(rules, settle, ways.other)
        if is_generator(value):
            return guard_generator(value, Life(call, rules, settle, args, kwargs))
        if is_async_generator(value):
            return guard_async_generator(value, Life(call, rules, settle, args, kwargs))
    if begun is None and rules.host.is_failure_result is None:
        # Nothing that more could be made of.
        settle(SUCCEEDED)
    else:
        settle_as(settle, lambda: returned(value, rules, rules.since(begun)))
    return value


async def enter_async(
    fn: Callable[..., Any], args: Args, kwargs: Kwargs, call: CheckedCall, ways: Ways | AsyncWays
) -> Any:
    """An async call. The function may be of any kind; what it gives is awaited if it is awaitable."""
    check_task(call.timeout_ms)
    # As `admitted` does, for less.
    admission: Any = ways.admit()
    if must_be_awaited(admission):
        admission = await admission
    if isinstance(admission, Exception):
        if call.fallback is None:
            try:
                raise admission
            finally:
                del admission
        return await recover_async(call.fallback, admission, args, kwargs)
    settle = admission
    rules = ways.rules
    begun = rules.begin()
    deadline = None if call.timeout_ms is None else Deadline(rules.circuit, call.timeout_ms)
    try:
        if deadline is None:
            # As `_result` does, for less.
            value = fn(*args, **kwargs)
            if was_awaited := must_be_awaited(value):
                value = await value
        else:
            value, was_awaited = await deadline.run(lambda: _result(fn, args, kwargs))
    except BaseException as error:
        # Here and elsewhere: a future has hold of its error, and that of the frames which it came through.
        value = None
        timed_out = deadline is not None and deadline.missed
        ending_of = partial(raised, error, rules, rules.since(begun), timed_out=timed_out)
        fallback = fallback_after(await settle_as_async(settle, ending_of), call)
        del ending_of
        if fallback is None:
            raise
        return await recover_async(fallback, error, args, kwargs)
    if not was_awaited and not is_plain(value):
        if is_generator(value):
            now = settle if isinstance(ways, Ways) else _without_waiting(settle, ways)
            return guard_generator(value, Life(call, rules, now, args, kwargs))
        if is_async_generator(value):
            return guard_async_generator(value, Life(call, rules, settle, args, kwargs))
    if begun is None and rules.host.is_failure_result is None:
        # Nothing that more could be made of.
        settling: Any = settle(SUCCEEDED)
        if settling is not None:
            await settling
    else:
        await settle_as_async(settle, lambda: returned(value, rules, rules.since(begun)))
    return value


async def admitted(ways: Ways | AsyncWays) -> AsyncSettle | Refusal:
    """What the breaker answers, awaited if it has to be."""
    admission: Any = ways.admit()
    answer: AsyncSettle | Refusal = await admission if must_be_awaited(admission) else admission
    return answer


def check_fn(fn: object) -> None:
    """What to guard must be callable.

    Raises:
        TypeError: It is not; a coroutine that was made already is closed, so that Python does not complain about it.
    """
    if callable(fn):
        return
    if must_be_awaited(fn):
        discard(fn)
        hint = ": hand over the function, not what it gives"
    else:
        hint = ""
    # From none: that calling it failed says the same.
    raise TypeError(f"what to guard must be callable, got {_native.describe(fn)}{hint}") from None


def check_sync(fn: object, rules: CallRules, other: str) -> None:
    """What to guard must be a callable, and no coroutine function.

    Raises:
        TypeError: It is not.
    """
    check_fn(fn)
    if is_coroutine_function(fn):
        raise awaitable_given(rules, other)


def refuse_awaitable(rules: CallRules, settle: Settle, other: str) -> NoReturn:
    """A sync call gave what has to be awaited: says nothing about the dependency.

    Raises:
        TypeError: Always.
    """
    error = awaitable_given(rules, other)
    try:
        settle(Ending("ignored", error))
        raise error
    finally:
        del error


def awaitable_given(rules: CallRules, other: str) -> TypeError:
    """The error of a sync entry that was handed something whose result has to be awaited."""
    return TypeError(
        f"a sync call of circuit `{rules.circuit}` was given a function whose result has to be awaited: use {other}"
    )


async def _result(fn: Callable[..., Any], args: Args, kwargs: Kwargs) -> tuple[Any, bool]:
    """What a function gives in the end, and whether it had to be awaited."""
    given = fn(*args, **kwargs)
    if not must_be_awaited(given):
        return given, False
    try:
        return await given, True
    finally:
        del given


def _without_waiting(settle: AsyncSettle, ways: AsyncWays) -> Settle:
    later = ways.settle_later
    return settle if later is None else lambda ending: later(settle, ending)
