"""How long a coroutine may take."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from typing import TypeVar

from switchgear._error import CallTimeoutError

if sys.version_info >= (3, 11):
    from asyncio import Timeout, timeout

    def _has_expired(scope: Timeout) -> bool:
        return scope.expired()

else:
    from async_timeout import Timeout, timeout

    def _has_expired(scope: Timeout) -> bool:
        return bool(scope.expired)


T = TypeVar("T")


def check_task(timeout_ms: int | None) -> None:
    """A timeout needs a task of asyncio. Checked before a circuit is asked: this says nothing of the dependency.

    Raises:
        RuntimeError: There is a timeout and no such task, as under trio.
    """
    if timeout_ms is None:
        return
    try:
        task = asyncio.current_task()
    except RuntimeError:
        task = None
    if task is None:
        raise RuntimeError(
            "`timeout_ms` needs a task of asyncio; elsewhere bound the call itself, by `trio.fail_after`, say"
        )


class Deadline:
    """The deadline of one call."""

    __slots__ = ("_circuit", "_timeout_ms", "missed")

    def __init__(self, circuit: str, timeout_ms: int) -> None:
        self._circuit = circuit
        self._timeout_ms = timeout_ms
        self.missed = False
        """Whether it was missed: what `run` raised is its own error, not one of the code below."""

    async def run(self, start: Callable[[], Awaitable[T]]) -> T:
        """Awaits what `start` gives, in the caller's own task.

        Raises:
            CallTimeoutError: It took too long, whatever it made of its cancellation: it may have returned after all, or
                raised something else.
        """
        expired = False
        try:
            async with timeout(self._timeout_ms / 1000) as scope:
                try:
                    value = await start()
                finally:
                    # Asked here: async_timeout knows it no more once it has seen how the block ended.
                    expired = _has_expired(scope)
                    # It may have the error in it that comes out, with this frame in its traceback.
                    del start
        except Exception as error:
            if not expired:
                raise
            raise self._missed() from error
        # A cancellation that is not ours comes through as it is, also when it meets ours: it is no `Exception`.
        if expired:
            raise self._missed()
        return value

    def _missed(self) -> CallTimeoutError:
        self.missed = True
        return CallTimeoutError(self._circuit, self._timeout_ms)
