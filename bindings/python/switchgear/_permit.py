"""The right to one call of a breaker that has to ask its store; it settles once. That of local breakers is native."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from switchgear._classify import FAILED, NEUTRAL, SUCCEEDED, CallRules, Ending, counts_as_failure, finished, raised
from switchgear._types import Settled

if TYPE_CHECKING:
    from typing_extensions import Self


class BlockingHome(Protocol):
    """The circuit of a permit, whose answers may take a while."""

    @property
    def rules(self) -> CallRules:
        """What all its calls have in common."""

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


class SharedPermit:
    """The right to one call of a breaker that has to ask its store, and blocks until it has.

    As `Permit` elsewhere, and in Python: a daemon thread that waits for the store when Python exits must have no native
    frame below, through which it would be unwound.
    """

    __slots__ = ("_begun", "_grant", "_home", "probe")

    def __init__(self, home: BlockingHome, grant: Any, *, probe: bool = False) -> None:
        self.probe = probe
        """Whether it holds one of the slots of a half-open circuit."""
        self._home = home
        self._grant = grant
        self._begun: int | None = None

    def record_success(self) -> Settled:
        """The dependency did its work."""
        return self._settle(SUCCEEDED)

    def record_failure(self, error: BaseException | None = None) -> Settled:
        """The dependency failed. With an error, `is_failure` and `ignore` decide whether it counts.

        Raises:
            TypeError: `error` is no exception.
        """
        if self._is_settled():
            return "duplicate"
        return self._settle(by_hand(self._home.rules, error))

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
            grant = self._take()
        except AttributeError:
            return
        try:
            ending = block_ending(self._home.rules, self._begun, error)
        except BaseException:
            # An interrupt hit the classifier: nobody knows, and the slot must be free all the same.
            self._home.settle_block(grant, NEUTRAL)
            raise
        self._home.settle_block(grant, ending)

    def _settle(self, ending: Ending) -> Settled:
        # Before settling: a listener that settles again must find it settled. But a clock that fails settles nothing.
        try:
            grant = self._take()
        except AttributeError:
            return "duplicate"
        try:
            answer: Settled = self._home.settle_by_hand(grant, ending)
        except Exception:
            self._grant = grant
            raise
        return answer

    def _take(self) -> Any:
        """Takes the grant out. Only one succeeds, for deleting an attribute is one operation."""
        grant = self._grant
        del self._grant
        return grant

    def _is_settled(self) -> bool:
        return not hasattr(self, "_grant")

    def __repr__(self) -> str:
        kind = "probe" if self.probe else "call"
        return f"<SharedPermit of {self._home.rules.circuit!r}: {kind}{', settled' if self._is_settled() else ''}>"


class AsyncPermit:
    """The right to one call of a breaker that has to ask its store: a `Permit` whose answers are awaited."""

    __slots__ = ("_begun", "_grant", "_home", "probe")

    def __init__(self, home: AsyncHome, grant: Any, *, probe: bool = False) -> None:
        self.probe = probe
        """Whether it holds one of the slots of a half-open circuit."""
        self._home = home
        self._grant = grant
        self._begun: int | None = None

    async def record_success(self) -> Settled:
        """The dependency did its work."""
        return await self._settle(SUCCEEDED)

    async def record_failure(self, error: BaseException | None = None) -> Settled:
        """The dependency failed. With an error, `is_failure` and `ignore` decide whether it counts.

        Raises:
            TypeError: `error` is no exception.
        """
        if self._is_settled():
            return "duplicate"
        return await self._settle(by_hand(self._home.rules, error))

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
            grant = self._take()
        except AttributeError:
            return
        try:
            ending = block_ending(self._home.rules, self._begun, error)
        except BaseException:
            # An interrupt hit the classifier: nobody knows, and the slot must be free all the same.
            await self._home.settle_block(grant, NEUTRAL)
            raise
        await self._home.settle_block(grant, ending)

    async def _settle(self, ending: Ending) -> Settled:
        # Before settling: a listener that settles again must find it settled. But a clock that fails settles nothing.
        try:
            grant = self._take()
        except AttributeError:
            return "duplicate"
        try:
            answer: Settled = await self._home.settle_by_hand(grant, ending)
        except Exception:
            self._grant = grant
            raise
        return answer

    def _take(self) -> Any:
        """Takes the grant out. Only one succeeds, for deleting an attribute is one operation."""
        grant = self._grant
        del self._grant
        return grant

    def _is_settled(self) -> bool:
        return not hasattr(self, "_grant")

    def __repr__(self) -> str:
        kind = "probe" if self.probe else "call"
        return f"<AsyncPermit of {self._home.rules.circuit!r}: {kind}{', settled' if self._is_settled() else ''}>"


def block_ending(rules: CallRules, begun: int | None, error: BaseException | None) -> Ending:
    """How a block ended that began then."""
    took = rules.since(begun)
    return finished(rules, took) if error is None else raised(error, rules, took)


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
