"""What a call gives instead of its own result: the fallback's, or the error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import Parameter, Signature, signature
from typing import Any

from switchgear._awaitable import discard, must_be_awaited
from switchgear._classify import Ending
from switchgear._config import HostPolicy, checked_callable, checked_number, checked_word


@dataclass(frozen=True, slots=True)
class CheckedCall:
    """The options of one call, checked and with the policy's defaults."""

    fallback: Callable[..., Any] | None = None
    on_failure: bool = False
    """Whether counted failures fall back, too."""
    timeout_ms: int | None = None


NO_OPTIONS = CheckedCall()
"""A call that says nothing."""


def checked_async_call(fallback: object, fallback_on: object, timeout_ms: object, host: HostPolicy) -> CheckedCall:
    """The options of a call.

    Raises:
        ConfigError: Names the option, the value and what is valid.
    """
    call = _checked_fallback(fallback, fallback_on)
    timeout = host.timeout_ms if timeout_ms is None else checked_number("timeout_ms", timeout_ms)
    if timeout is None:
        return call
    return CheckedCall(call.fallback, call.on_failure, timeout)


def check_takes(fallback: Callable[..., Any], fn: Callable[..., Any]) -> None:
    """A guarded function's fallback must be able to take the error, then the function's arguments.

    Found out with the first refusal otherwise, when it is needed. In doubt it is taken: only what the signatures rule
    out for every call of the function is refused.

    Raises:
        TypeError: It never can.
    """
    takes, gets = _signature(fallback), _signature(fn)
    if takes is None or gets is None or _may_take(takes, gets):
        return
    names = ", ".join(["error", *gets.parameters])
    name = getattr(fn, "__name__", "the function")
    raise TypeError(f"the fallback of `{name}` must take the error, then the function's own arguments: ({names})")


def fallback_after(ending: Ending, call: CheckedCall) -> Callable[..., Any] | None:
    """The fallback that steps in for a call that was let through and ended so, if one does."""
    return call.fallback if call.on_failure and ending.outcome == "failure" else None


def recover(
    fallback: Callable[..., Any], error: BaseException, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """Hands the error to the fallback; an error of the fallback names the first one as its cause.

    Raises:
        TypeError: What it gives has to be awaited, which a sync caller cannot.
    """
    value = recover_any(fallback, error, args, kwargs)
    if must_be_awaited(value):
        discard(value)
        raise TypeError("the fallback of a sync call gave something that has to be awaited") from error
    return value


async def recover_async(
    fallback: Callable[..., Any], error: BaseException, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """The same of an async call, whose fallback may be of either kind."""
    value = recover_any(fallback, error, args, kwargs)
    if not must_be_awaited(value):
        return value
    try:
        return await value
    except Exception as later:
        _add_cause(later, error)
        raise
    finally:
        del value


def recover_any(
    fallback: Callable[..., Any], error: BaseException, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Any:
    """What the fallback gives, of whatever kind."""
    try:
        return fallback(error, *args, **kwargs)
    except Exception as later:
        _add_cause(later, error)
        raise


def _checked_fallback(fallback: object, fallback_on: object) -> CheckedCall:
    if fallback is None and fallback_on is None:
        return NO_OPTIONS
    return CheckedCall(
        None if fallback is None else checked_callable("fallback", fallback),
        fallback_on is not None and checked_word("fallback_on", fallback_on, _FALLBACK_ON) == "failure",
    )


_FALLBACK_ON = ("refusal", "failure")


def _add_cause(later: BaseException, error: BaseException) -> None:
    # A cause of its own, also a `from None`, stays; and no chain becomes a ring.
    if later.__cause__ is not None or later.__suppress_context__:
        return
    link: BaseException | None = error
    while link is not None:
        if link is later:
            return
        link = link.__cause__
    later.__cause__ = error


def _signature(fn: Callable[..., Any]) -> Signature | None:
    try:
        # Not of what a wrapper is around: the wrapper may take more, or less.
        return signature(fn, follow_wrapped=False)
    except Exception:  # noqa: BLE001 - an object may refuse the question in any way
        return None


_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_VARIABLE = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def _may_take(takes: Signature, gets: Signature) -> bool:
    """Whether there may be a call of `gets` whose arguments `takes` accepts after an error."""
    given = gets.parameters.values()
    if not any(one.kind in _VARIABLE for one in given):
        # What it needs beside the error is more than the function ever has.
        needed = [one for one in takes.parameters.values() if one.default is one.empty and one.kind not in _VARIABLE]
        if len(needed) > len(given) + 1:
            return False
    required = [one for one in given if one.default is one.empty]
    positional = [one for one in required if one.kind in _POSITIONAL]
    by_name = [one.name for one in required if one.kind is Parameter.KEYWORD_ONLY]
    only = sum(one.kind is Parameter.POSITIONAL_ONLY for one in positional)
    # What a call may not leave out, so many of it by position and the rest by name.
    for count in range(only, len(positional) + 1):
        names = [*(one.name for one in positional[count:]), *by_name]
        try:
            takes.bind_partial(None, *positional[:count], **dict.fromkeys(names))
        except TypeError:
            continue
        return True
    return False
