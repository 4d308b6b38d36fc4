"""What circuits have in common, local and shared: how calls are told, admitted and settled."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

from switchgear._async_generator import guard_async_generator
from switchgear._awaitable import discard, is_async_generator, is_generator, is_plain, must_be_awaited
from switchgear._call import refuse_awaitable
from switchgear._classify import SUCCEEDED, CallRules, Ending, raised
from switchgear._clock import monotonic_now, read
from switchgear._error import Refusal
from switchgear._events import Emitter
from switchgear._failure_text import failure_text, raised_text
from switchgear._fallback import CheckedCall
from switchgear._generator import Life, guard_generator
from switchgear._log import warn_once
from switchgear._settle import Settle, settle_as
from switchgear._types import CallEvent, Settled

P = TypeVar("P")


class Told:
    """A circuit as its listeners know it."""

    __slots__ = ("events", "last_failure", "rules")

    def __init__(self, rules: CallRules, events: Emitter) -> None:
        self.rules = rules
        self.events = events
        self.last_failure: str | None = None
        """The text of the last failure that this process counted."""

    def tell(self, ending: Ending) -> None:
        """Tells how a call ended that was let through."""
        if self.events.hears(ending.outcome):
            self._emit(ending.outcome, ending.duration_ms, ending.error)

    def refused(self, refusal: Refusal) -> Refusal:
        """Tells that a call was refused."""
        if self.events.hears("refused"):
            self._emit("refused", None, refusal)
        return refusal

    def remember(self, ending: Ending) -> str | None:
        """Makes a failure the last one, and gives the one before."""
        before = self.last_failure
        self.last_failure = ending.reason if ending.reason is not None else failure_text(ending.error)
        return before

    def _emit(self, event: str, duration_ms: int | None, error: BaseException | None) -> None:
        now = read(self.rules.now)
        at = monotonic_now() if now is None else now
        self.events.emit(event, CallEvent(self.rules.circuit, at, duration_ms, error))


UNCOUNTED: Final = object()
"""What takes the place of a grant where nothing counts: in calls that were refused, and that `observe` lets through."""


class Hints(Protocol):
    """What lets a call of a healthy circuit through without a question."""

    @property
    def hot(self) -> Any:
        """The grant of a call whose success changes nothing, that nobody watches and nobody hears of; else `None`."""

    @property
    def success_ignored(self) -> bool:
        """The success of such a call changes nothing, whatever has happened meanwhile."""


class SyncCircuit(Told, Generic[P]):
    """A circuit whose answers are not awaited. A subclass says how it is asked, and what its permits are."""

    __slots__ = ("hints",)

    hints: Hints
    other_entry: ClassVar[str]
    """What to use where a result has to be awaited."""

    def ask(self) -> Any:
        """Asks for one call: the grant, or the refusal, which was told already.

        Raises what keeps the circuit from being asked. A grant says `is_probe`; one that is an integer is none.
        """
        raise NotImplementedError

    def count(self, grant: Any, ending: Ending) -> bool:
        """Counts an ending with the grant of its call, `None` for one that was reported without. Whether it applied.

        Raises what keeps it from being counted.
        """
        raise NotImplementedError

    def admit(self) -> Settle | Refusal:
        """How a call that goes ahead is settled, or why it does not.

        Under `observe` every call goes ahead; one that would have been refused has been told as refused, and that is
        all that is said and counted of it.
        """
        grant = self.ask()
        if isinstance(grant, Exception):
            return _ignore if self.rules.host.observe else grant  # type: ignore[return-value]  # no other exceptions there
        return partial(self.settle_block, grant)

    def permit(self) -> P:
        """The permit of one call. Raises the refusal."""
        grant = self.ask()
        if not isinstance(grant, Exception):
            return self.permit_of(grant, probe=type(grant) is not int and grant.is_probe)
        if not self.rules.host.observe:
            try:
                raise grant
            finally:
                del grant
        return self.permit_of(UNCOUNTED, probe=False)

    def permit_of(self, grant: Any, *, probe: bool) -> P:
        """The permit that a grant is in."""
        raise NotImplementedError

    def hot_raised(self, grant: Any, error: BaseException) -> None:
        """Settles a call that `hot` let through, and that raised."""
        settle_as(partial(self.settle_block, grant), partial(raised, error, self.rules, None))

    def hot_returned(self, grant: Any, value: Any, call: CheckedCall, args: Any, kwargs: Any) -> Any:
        """What becomes of the value of a call that `hot` let through, where a second look is needed."""
        if not is_plain(value):
            settle = partial(self.settle_block, grant)
            if must_be_awaited(value):
                discard(value)
                refuse_awaitable(self.rules, settle, self.other_entry)
            if is_generator(value):
                return guard_generator(value, Life(call, self.rules, settle, args, kwargs))
            if is_async_generator(value):
                return guard_async_generator(value, Life(call, self.rules, settle, args, kwargs))
        self.hot_succeeded(grant)
        return value

    def hot_succeeded(self, grant: Any) -> None:
        """Settles a call that `hot` let through and does no more: if its success counts, it does by now."""
        if not self.hints.success_ignored and self.hints.hot is None:
            self.settle_block(grant, SUCCEEDED)

    def settle_by_hand(self, grant: Any, ending: Ending) -> Settled:
        """Counts an ending and tells it. Raises what keeps it from being counted."""
        if grant is UNCOUNTED:
            return "stale"
        applied = self.count(grant, ending)
        self.tell(ending)
        return "applied" if applied else "stale"

    def settle_block(self, grant: Any, ending: Ending) -> None:
        """The same at the end of a call, whose own result nothing must hide: what goes wrong is reported once."""
        if grant is UNCOUNTED:
            return
        try:
            self.count(grant, ending)
        except Exception as error:  # noqa: BLE001 - a user's clock may raise anything
            text = f"the clock of circuit `{self.rules.circuit}` failed: {raised_text(error)}"
            warn_once(self.rules.told, "clock", text)
        self.tell(ending)


def _ignore(_ending: Ending) -> None:
    """Told as refused, see `observe`."""
