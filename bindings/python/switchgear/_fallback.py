"""What a call gives instead of its own result: the fallback's, or the error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
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
