"""The healthy path: while the machine says so, a call crosses no boundary but one, and reads no clock.

What is here runs once per call of every guarded function; whatever else there is to do is done elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from switchgear._awaitable import PLAIN
from switchgear._fallback import CheckedCall
from switchgear._local import LocalCircuit


def hot_function(
    fn: Callable[..., Any], slow: Callable[..., Any], circuit: LocalCircuit, call: CheckedCall
) -> Callable[..., Any]:
    """A guarded function.

    Args:
        fn: The user's.
        slow: The guarded function that always asks.
        circuit: What it asks.
        call: Its options.
    """
    machine, raised, returned = circuit.machine, circuit.hot_raised, circuit.hot_returned
    ignored = machine.success_ignored

    def guarded(*args: Any, **kwargs: Any) -> Any:
        epoch = machine.hot
        if epoch is None:
            return slow(*args, **kwargs)
        try:
            result = fn(*args, **kwargs)
        except BaseException as error:
            raised(epoch, error)
            raise
        if type(result) in PLAIN and (ignored or machine.hot is not None):
            return result
        return returned(epoch, result, call, args, kwargs)

    return guarded


def hot_coroutine_function(
    fn: Callable[..., Any], slow: Callable[..., Any], circuit: LocalCircuit
) -> Callable[..., Any]:
    """A guarded coroutine function, of the same arguments."""
    machine, raised, succeeded = circuit.machine, circuit.hot_raised, circuit.hot_succeeded
    ignored = machine.success_ignored

    async def guarded(*args: Any, **kwargs: Any) -> Any:
        epoch = machine.hot
        if epoch is None:
            return await slow(*args, **kwargs)
        try:
            result = await fn(*args, **kwargs)
        except BaseException as error:
            raised(epoch, error)
            raise
        if not ignored and machine.hot is None:
            succeeded(epoch)
        return result

    return guarded
