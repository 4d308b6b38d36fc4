"""The right to one call, which settles once."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from switchgear._classify import FAILED, NEUTRAL, SUCCEEDED, CallRules, Ending, counts_as_failure, finished, raised
from switchgear._types import Settled

if TYPE_CHECKING:
    from typing_extensions import Self


class Home(Protocol):
    """The breaker of a permit."""

    @property
    def rules(self) -> CallRules:
        """What all its calls have in common."""

    def is_free(self, grant: Any) -> bool:
        """Whether a success changes nothing, and nobody wants to hear of it."""

    def settle_by_hand(self, grant: Any, ending: Ending) -> Settled:
        """Counts an ending. Raises what keeps it from being counted."""

    def settle_block(self, grant: Any, ending: Ending) -> None:
        """The same at the end of a `with` block, whose own result nothing must hide: raises nothing."""


class AsyncHome(Protocol):
    """The same of a breaker that has to ask its store."""

    @property
    def rules(self) -> CallRules:
        """What all its calls have in common."""

    async def settle_by_hand(self, grant: Any, ending: Ending) -> Settled:
        """Counts an ending. Raises what keeps it from being counted."""

    async def settle_block(self, grant: Any, ending: Ending) -> None:
        """The same at the end of an `async with` block, whose own result nothing must hide: raises nothing."""


class _Once:
    """What may be done once, whichever thread comes first."""

    __slots__ = ("_begun", "_grant", "_home", "probe")

    def __init__(self, home: Any, grant: Any, begun: int | None = None, *, probe: bool = False) -> None:
        self.probe = probe
        """Whether it holds one of the slots of a half-open circuit."""
        self._home = home
        self._grant = grant
        self._begun = begun

    def take(self) -> Any:
        """Takes the grant out. Only one succeeds, for deleting an attribute is one operation.

        Raises:
            AttributeError: It was settled before.
        """
        grant = self._grant
        del self._grant
        return grant

    @property
    def is_settled(self) -> bool:
        """Whether a second settlement would be a duplicate."""
        return not hasattr(self, "_grant")

    def ending_of(self, error: BaseException | None) -> Ending:
        """How a block ended that was under it."""
        rules: CallRules = self._home.rules
        took = rules.since(self._begun)
        return finished(rules, took) if error is None else raised(error, rules, took)

    def failure(self, error: BaseException | None) -> Ending:
        """A failure that was reported by hand. With an error, the classification decides whether it counts."""
        return by_hand(self._home.rules, error)

    def __repr__(self) -> str:
        kind = "probe" if self.probe else "call"
        return f"<Permit of {self._home.rules.circuit!r}: {kind}{', settled' if self.is_settled else ''}>"


class Permit(_Once):
    """The right to one call. It settles once; a second settlement does nothing and answers `"duplicate"`.

    It is a context manager, too: what is not settled by the end of the block is a success, or what the exception says.

    Example:
        ```python
        from switchgear import CircuitBreaker

        breaker = CircuitBreaker("billing")
        with breaker.acquire() as permit:
            assert not permit.probe
        assert permit.record_success() == "duplicate"
        ```
    """

    __slots__ = ()

    def record_success(self) -> Settled:
        """The dependency did its work."""
        return self._settle(SUCCEEDED)

    def record_failure(self, error: BaseException | None = None) -> Settled:
        """The dependency failed. With an error, `is_failure` and `ignore` decide whether it counts.

        Raises:
            TypeError: `error` is no exception.
        """
        return "duplicate" if self.is_settled else self._settle(self.failure(error))

    def release(self) -> Settled:
        """Neither: the call was cancelled, say. Frees the slot and counts nowhere."""
        return self._settle(NEUTRAL)

    def __enter__(self) -> Self:
        if self._begun is None:
            self._begun = self._home.rules.begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.leave(error)

    def leave(self, error: BaseException | None) -> None:
        """Ends the block that is under it."""
        try:
            grant = self.take()
        except AttributeError:
            return
        if error is None and self._home.is_free(grant):
            return
        try:
            ending = self.ending_of(error)
        except BaseException:
            # An interrupt hit the classifier: nobody knows, and the slot must be free all the same.
            self._home.settle_block(grant, NEUTRAL)
            raise
        self._home.settle_block(grant, ending)

    def _settle(self, ending: Ending) -> Settled:
        # Before settling: a listener that settles again must find it settled. But a clock that fails settles nothing.
        try:
            grant = self.take()
        except AttributeError:
            return "duplicate"
        try:
            answer: Settled = self._home.settle_by_hand(grant, ending)
        except Exception:
            self._grant = grant
            raise
        return answer


class AsyncPermit(_Once):
    """The right to one call of a breaker that has to ask its store: a `Permit` whose answers are awaited."""

    __slots__ = ()

    async def record_success(self) -> Settled:
        """The dependency did its work."""
        return await self._settle(SUCCEEDED)

    async def record_failure(self, error: BaseException | None = None) -> Settled:
        """The dependency failed. With an error, `is_failure` and `ignore` decide whether it counts.

        Raises:
            TypeError: `error` is no exception.
        """
        return "duplicate" if self.is_settled else await self._settle(self.failure(error))

    async def release(self) -> Settled:
        """Neither: the call was cancelled, say. Frees the slot and counts nowhere."""
        return await self._settle(NEUTRAL)

    async def __aenter__(self) -> Self:
        if self._begun is None:
            self._begun = self._home.rules.begin()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.leave(error)

    async def leave(self, error: BaseException | None) -> None:
        """Ends the block that is under it."""
        try:
            grant = self.take()
        except AttributeError:
            return
        try:
            ending = self.ending_of(error)
        except BaseException:
            await self._home.settle_block(grant, NEUTRAL)
            raise
        await self._home.settle_block(grant, ending)

    async def _settle(self, ending: Ending) -> Settled:
        try:
            grant = self.take()
        except AttributeError:
            return "duplicate"
        try:
            answer: Settled = await self._home.settle_by_hand(grant, ending)
        except Exception:
            self._grant = grant
            raise
        return answer


def by_hand(rules: CallRules, error: BaseException | None) -> Ending:
    """A failure that was reported by hand: neutral if the error does not count.

    Raises:
        TypeError: `error` is no exception.
    """
    if error is None:
        return FAILED
    if not isinstance(error, BaseException):
        raise TypeError(f"`error` must be an exception, got {type(error).__name__}")
    return Ending("failure" if counts_as_failure(error, rules) else "ignored", error)
