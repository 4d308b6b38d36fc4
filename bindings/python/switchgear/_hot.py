"""The healthy path: while the hints say so, a call crosses no boundary but one, and asks nobody.

What is here runs once per call of every guarded function; whatever else there is to do is done elsewhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from switchgear._awaitable import PLAIN
from switchgear._circuit import Hints, SyncCircuit
from switchgear._fallback import CheckedCall


def hot_function(
    fn: Callable[..., Any], slow: Callable[..., Any], circuit: SyncCircuit[Any], call: CheckedCall
) -> Callable[..., Any]:
    """A guarded function.

    Args:
        fn: The user's.
        slow: The guarded function that always asks.
        circuit: What it asks.
        call: Its options.
    """
    hints, raised, returned = circuit.hints, circuit.hot_raised, circuit.hot_returned
    ignored = hints.success_ignored

    def guarded(*args: Any, **kwargs: Any) -> Any:
        grant = hints.hot
        if grant is None:
            return slow(*args, **kwargs)
        try:
            result = fn(*args, **kwargs)
        except BaseException as error:
            raised(grant, error)
            raise
        try:
            # As `is_plain` does, for less.
            if type(result) in PLAIN and (ignored or hints.hot is not None):
                return result
        except TypeError:
            pass
        return returned(grant, result, call, args, kwargs)

    return guarded


def hot_coroutine_function(
    fn: Callable[..., Any], slow: Callable[..., Any], circuit: SyncCircuit[Any]
) -> Callable[..., Any]:
    """A guarded coroutine function, of the same arguments."""
    hints, raised, succeeded = circuit.hints, circuit.hot_raised, circuit.hot_succeeded
    ignored = hints.success_ignored

    async def guarded(*args: Any, **kwargs: Any) -> Any:
        grant = hints.hot
        if grant is None:
            return await slow(*args, **kwargs)
        try:
            result = await fn(*args, **kwargs)
        except BaseException as error:
            raised(grant, error)
            raise
        if not ignored and hints.hot is None:
            succeeded(grant)
        return result

    return guarded


def hot_awaiting_function(
    fn: Callable[..., Any],
    slow: Callable[..., Any],
    hints: Hints,
    raised: Callable[[Any, BaseException], Awaitable[None]],
) -> Callable[..., Any]:
    """A guarded coroutine function of a circuit whose answers are awaited; its hot successes change nothing.

    Args:
        fn: The user's.
        slow: The guarded function that always asks.
        hints: What lets it through.
        raised: Settles a call that was let through, and that raised.
    """

    async def guarded(*args: Any, **kwargs: Any) -> Any:
        grant = hints.hot
        if grant is None:
            return await slow(*args, **kwargs)
        try:
            return await fn(*args, **kwargs)
        except BaseException as error:
            await raised(grant, error)
            raise

    return guarded
