"""The native module: the rules and the engine, as the facade asks them. Private: what is public is in `switchgear`.

Every class is safe under threads and runs no Python code while it holds a lock. Times are integer milliseconds. What is
wrong with input is raised as the facade's own class for it (`ConfigError`, `InvalidNameError`, `InvalidTimeError`).
"""

from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any, Final, Literal, NoReturn, TypeAlias, TypeVar, final

from typing_extensions import Self, disjoint_base

from switchgear._local import LocalCircuit
from switchgear._types import Settled

_T = TypeVar("_T")
_L = TypeVar("_L")

__all__ = [
    "FAILURE",
    "RELEASE",
    "SUCCESS",
    "Announcement",
    "Ask",
    "Circuit",
    "Config",
    "Denial",
    "Done",
    "Flight",
    "Grant",
    "Listing",
    "Loudness",
    "Machine",
    "Members",
    "Node",
    "Permit",
    "Queue",
    "Scope",
    "SharedConfig",
    "SharedGrant",
    "Standing",
    "Step",
    "Survey",
    "Transition",
    "Turn",
    "__version__",
    "check_name",
    "check_option",
    "check_prefix",
    "defaults",
    "describe",
    "error_codes",
    "event_channel",
    "fields",
    "forked",
    "http_status_counts",
    "is_moment",
    "monotonic_now",
    "without_credentials",
]

SUCCESS: Final = 0
FAILURE: Final = 1
RELEASE: Final = 2

_State: TypeAlias = Literal["closed", "open", "half-open"]
_Mode: TypeAlias = Literal["auto", "forced-open", "disabled"]
_Reason: TypeAlias = Literal["threshold", "cooldown", "probe-failed", "probes-succeeded", "manual"]
# In the order of `switchgear.Snapshot`.
_Snapshot: TypeAlias = tuple[_State, _Mode, int, int, int, int, int, int | None, int, int, int]

@final
class Config:
    """A checked configuration: made once per policy, taken by every breaker that runs by it."""

    def __new__(cls, layers: Sequence[Mapping[str, object]]) -> Config:
        """From layers of options in snake_case, the outermost first. Raises `ConfigError`."""

@final
class Loudness:
    """How many listen to what every single call emits."""

    def __new__(cls, outer: Loudness | None = None) -> Loudness:
        """`outer`: the group's, whose listeners hear every breaker of it."""
    def add(self, listeners: int) -> None: ...
    @property
    def count(self) -> int:
        """Its own and the group's."""

@final
class Grant:
    """The right to one call of a local circuit. Dropped without having been settled it gives its slot back."""

    def keep(self) -> None:
        """From here on it does not, for whoever has it may settle without it."""
    @property
    def is_probe(self) -> bool: ...
    @property
    def epoch(self) -> int: ...

@final
class Denial:
    """The answer to a call that may not go ahead."""

    @property
    def state(self) -> Literal["open", "half-open"]: ...
    @property
    def retry_after_ms(self) -> int | None: ...

@final
class Transition:
    """A change of the state as callers see it."""

    @property
    def from_state(self) -> _State: ...
    @property
    def to_state(self) -> _State: ...
    @property
    def at(self) -> int: ...
    @property
    def reason(self) -> _Reason: ...
    @property
    def failures(self) -> int: ...
    @property
    def open_ms(self) -> int | None: ...

@final
class Machine:
    """The state machine of one local circuit. Every `now` is checked and may raise `InvalidTimeError`."""

    def __new__(cls, config: Config, loudness: Loudness, plain: bool) -> Machine:
        """A closed circuit. `plain`: nothing in the policy wants to know more of a success than that it was one."""
    @property
    def hot(self) -> int | None:
        """The epoch of the closed permit that every call now gets unasked, and whose success need not be settled;
        none if
        calls have to be admitted, if somebody listens to calls, or if the policy is not plain."""
    @property
    def success_ignored(self) -> bool:
        """A success with a closed permit never changes anything, whatever happens in between. If not, look at `hot`
        again when
        the call is over: another one may have failed meanwhile, and then the success counts."""
    def admit(self, now: int) -> Grant | Denial:
        """Asks for one call."""
    def settle(self, now: int, grant: Grant | None, outcome: int) -> bool:
        """Settles a call with its permit, or without by the plain rules. Whether it applied."""
    def settle_closed(self, now: int, epoch: int, outcome: int) -> bool:
        """Settles a call that `hot` let through. Whether it applied."""
    @property
    def has_transitions(self) -> bool: ...
    def take_transitions(self) -> list[Transition]:
        """The transitions that nobody has taken yet, in the order in which they happened."""
    def retry_after_ms(self, now: int) -> int | None: ...
    def state(self) -> _State: ...
    def snapshot(self, now: int) -> _Snapshot: ...
    def reset(self, now: int) -> None: ...
    def trip(self, now: int, for_ms: object = None) -> None: ...
    def force_open(self, now: int) -> None: ...
    def disable(self, now: int) -> None: ...

@final
class Members:
    """What a group holds, bounded: the least recently used goes first, closed ones before others."""

    def __new__(cls, capacity: int) -> Members: ...
    def get(self, key: str) -> object | None:
        """The member of a key, now the most recently used."""
    def add(self, key: str, member: object) -> tuple[object, object | None]:
        """Adds a closed member, unless there is one of this key already. The one that is in, and the one that had to
        go."""
    def remove(self, key: str) -> object | None: ...
    def note(self, key: str, member: object, closed: bool) -> None:
        """Notes that a member, if it is still in, closed or is closed no more."""
    def values(self) -> list[object]:
        """The members, in the order in which they came."""
    def __len__(self) -> int: ...

@final
class Queue:
    """Things to tell, one after another and in order, whoever adds them and whatever telling adds.

    It calls nothing itself: a daemon thread that Python ends at its exit must have no native frame below its own.
    """

    def __new__(cls) -> Queue: ...
    def push(self, item: Callable[[], object], droppable: bool) -> bool:
        """Adds a thing to tell. Whether it was added: one that may be dropped is, where 10 000 wait already."""
    def begin(self) -> Turn | None:
        """The turn to tell; `None` if nothing waits, or if a thread of this process is at it already."""
    def __len__(self) -> int: ...

@final
class Turn:
    """The turn to tell: what waits, and what is added meanwhile; by other threads, for at most a second."""

    def __iter__(self) -> Self: ...
    def __next__(self) -> Callable[[], object]: ...
    def end(self) -> bool:
        """Ends it; so it does by itself when it is dropped. Whether it got to its end before the second was over."""

@final
class Permit:
    """The right to one call. It settles once; a second settlement does nothing and answers `"duplicate"`.

    It is a context manager, too: what is not settled by the end of the block is a success, or what the exception says.
    """

    def __new__(cls, home: LocalCircuit, grant: object, *, probe: bool = False) -> Permit:
        """`home`: the circuit that gave it, and takes back the grant."""
    @property
    def probe(self) -> bool:
        """Whether it holds one of the slots of a half-open circuit."""
    def record_success(self) -> Settled:
        """The dependency did its work."""
    def record_failure(self, error: BaseException | None = None) -> Settled:
        """The dependency failed. With an error, `is_failure` and `ignore` decide whether it counts.

        Raises:
            TypeError: `error` is no exception.
        """
    def release(self) -> Settled:
        """Neither: the call was cancelled, say. Frees the slot and counts nowhere."""
    def _keep(self) -> None:
        """Hands it out: what is dropped from now on keeps its slot, for it may be settled without."""
    def __enter__(self) -> Permit: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...

@disjoint_base
class Scope:
    """The `with` blocks that are under one breaker: its base class, for what `with` costs.

    A subclass has `_begin_block()`, which gives the permit of a call or raises; and `_enter_indirect(frame, permit)`
    and
    `_leave_indirect(frame)`, for what comes in through a function that is over by the end of the block.
    """

    def __new__(cls, *args: object, **kwargs: object) -> Self: ...
    def _scope_bind(self, machine: Machine, circuit: LocalCircuit) -> None:
        """Says whose hint may let a call through."""
    def _scope_frames(self) -> list[FrameType]:
        """The frames that have a block under it, the oldest first."""
    def _scope_take(self, frame: FrameType) -> Permit | None:
        """Takes out the permit of the innermost block in a frame."""
    def __enter__(self) -> Permit:
        """The breaker as a context manager: the block is one call.

        What is not settled by its end is a success, or what the exception says that leaves it.

        Raises:
            CircuitOpenError: The circuit refused it.
        """
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> None: ...
    def _scope_aenter(self) -> Done[Permit]:
        """The breaker as an async context manager: as `with`, which does as well.

        Raises:
            CircuitOpenError: The circuit refused it.
        """
    def _scope_aexit(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> Done[None]: ...

@final
class Done(Coroutine[Any, Any, _T]):
    """A coroutine that is done: its value comes without a turn of the loop."""

    def __await__(self) -> Generator[Any, None, _T]: ...
    def __iter__(self) -> Self: ...
    def __next__(self) -> object: ...
    def send(self, _value: object) -> NoReturn: ...
    def throw(self, error: Any, _value: object = None, _trace: object = None, /) -> NoReturn: ...
    def close(self) -> None: ...

@final
class SharedConfig:
    """A checked configuration of a shared circuit."""

    def __new__(cls, layers: Sequence[Mapping[str, object]]) -> SharedConfig:
        """From layers of options in snake_case, those of a shared circuit among them. Raises `ConfigError`."""

@final
class SharedGrant:
    """The right to one call of a shared circuit."""

    @property
    def is_probe(self) -> bool: ...
    @property
    def is_free(self) -> bool:
        """Its success need not be settled."""

@final
class Node:
    """One server of the store as this process knows it: its time, and whether it is worth asking. All circuits that
    live there share it; one of a process that was forked is made anew."""

    def __new__(cls) -> Node: ...
    def replaced(self) -> bool:
        """Another server has taken over what this one had. Whether listeners are to hear that it is well again."""

@final
class Ask:
    """A command to send, and what its reply is handed in with."""

    @property
    def ticket(self) -> int: ...
    @property
    def delay_ms(self) -> int:
        """Milliseconds to wait before sending it."""
    @property
    def reads(self) -> bool:
        """Its reply goes to `on_reading`, not to `on_reply`."""
    @property
    def frees(self) -> bool:
        """It gives a slot back: worth trying for longer than anybody waits."""
    @property
    def succeeds(self) -> bool:
        """It tells of successes. Where nobody waits for it, a failure that is told later has to wait."""
    @property
    def command(self) -> list[str]: ...
    @property
    def packed(self) -> bytes:
        """The same as it is sent: in RESP, in UTF-8 whatever encoding the client is told to use."""

@final
class Flight:
    """An admission that is under way, which others join. It lands once."""

    @property
    def ticket(self) -> int: ...
    @property
    def age_seconds(self) -> float:
        """How long ago it began."""
    def join(self, waiter: Callable[[_L], object]) -> _L | None:
        """What came of it, or `None`: then `land` will give the waiter out."""
    def land(self, landed: _L) -> list[Callable[[_L], object]]:
        """It has landed: who is to be told. Nobody if it had landed before."""

@final
class Step:
    """What came of a question, a reply, an error or a deadline: each part may be there or not."""

    @property
    def answer(
        self,
    ) -> SharedGrant | Denial | Literal["unavailable", "applied", "stale", "controlled"] | _Snapshot | None:
        """The answer to what was asked; comes at most once per ticket."""
    @property
    def ticket(self) -> int | None:
        """What the answer will come with, where it is not there yet and is asked for by this very call."""
    @property
    def flight(self) -> Flight | None:
        """Of an admission: the flight that it leads, with a ticket, or that it has to join, without."""
    @property
    def others(self) -> Literal["share", "ask-again", "go-on"]:
        """What the answer of an admission is to those who joined it: theirs as well; none, and they ask again; none,
        and each gets its own of `admit_unasked`."""
    @property
    def asks(self) -> tuple[Ask, ...]:
        """What to send next, be it of another ticket. Where the answer is there already nobody waits for it."""
    @property
    def transition(self) -> Transition | None: ...
    @property
    def counted(self) -> bool:
        """The outcome that was told has counted; said also when it comes too late for an answer."""
    @property
    def config_mismatch(self) -> bool: ...
    @property
    def malformed(self) -> bool:
        """The reply was none that a script of ours gives: the same as an error."""
    @property
    def health(self) -> tuple[Literal["degraded", "restored"], Literal["node", "circuit"]] | None:
        """Whether the store is asked any more, if that has changed, and whom it is about."""

@final
class Standing:
    """The grant that stands: what every call of a circuit that is known to be closed is admitted with, unasked."""

    def __new__(cls, config: SharedConfig, loudness: Loudness, plain: bool) -> Standing:
        """`plain`: nothing has to be known of a call but what it raises, and the host's clock is its own."""
    def follow(self, engine: Circuit) -> None:
        """Takes what stands from the steps of this engine, and of no other from here on."""
    @property
    def stands(self) -> bool:
        """There is one, be it for now or not."""
    @property
    def grant(self) -> SharedGrant | None:
        """The grant, if it stands by the host's clock."""
    def grant_at(self, now: int) -> SharedGrant | None:
        """The grant, if it stands at that time."""
    @property
    def hot(self) -> SharedGrant | None:
        """The grant of a call whose success changes nothing and is heard by nobody; `None` where more is to be done."""
    @property
    def success_ignored(self) -> bool:
        """The success of a call that `hot` let through changes nothing, whatever has happened since."""

@final
class Circuit:
    """The engine of one shared circuit as this process sees it.

    `host` is the host's monotonic time, `store` that of the store where the user says what it is: both in milliseconds,
    both checked, and what is no time raises `InvalidTimeError`.
    """

    def __new__(
        cls,
        name: str,
        prefix: str,
        nonce: int,
        instance: str,
        reads_primary: bool,
        config: SharedConfig,
    ) -> Circuit:
        """Asks nothing of the store. `nonce`: 64 random bits, drawn anew for each circuit object and after fork.
        `reads_primary`: whether a plain read goes to the server that takes writes. Raises `InvalidNameError`."""
    @property
    def routing_key(self) -> str: ...
    def admit(self, node: Node, host: int, store: int | None) -> Step | Flight:
        """A flight is to be joined, and there is nothing else to be done for the call."""
    def admit_unasked(self, host: int, store: int | None) -> Step:
        """Decides without the store, as while it is away."""
    def settle(self, node: Node, host: int, store: int | None, grant: SharedGrant | None, outcome: int) -> Step: ...
    def get_state(self, node: Node, host: int, store: int | None) -> Step: ...
    def reset(self, node: Node, host: int, store: int | None) -> Step: ...
    def trip(self, node: Node, host: int, store: int | None, for_ms: object = None) -> Step: ...
    def force_open(self, node: Node, host: int, store: int | None) -> Step: ...
    def disable(self, node: Node, host: int, store: int | None) -> Step: ...
    def on_reading(self, node: Node, host: int, store: int | None, ticket: int, fields: object) -> Step:
        """Takes the values that were read: a sequence of five, each bytes, text or none."""
    def on_reply(self, node: Node, host: int, store: int | None, ticket: int, reply: object) -> Step:
        """Takes a reply: a sequence of integers; anything else is malformed."""
    def on_error(self, node: Node, host: int, store: int | None, ticket: int, error: str) -> Step: ...
    def on_deadline(self, node: Node, host: int, store: int | None, ticket: int) -> Step: ...
    def on_gone(self, host: int, store: int | None, ticket: int) -> Step:
        """Takes that whoever waited for it was interrupted or cancelled, which says nothing of the store."""
    def on_event(self, node: Node, host: int, store: int | None, announcement: Announcement) -> Step:
        """Takes what another instance has announced of this circuit. Its transition where that is news: what is late,
        comes twice, or is one's own is none."""

@final
class Announcement:
    """What an instance has announced of a circuit."""

    @staticmethod
    def parse(message: bytes) -> Announcement | None:
        """Reads a message of the channel; none for what no script of ours has sent."""
    @property
    def circuit(self) -> str: ...
    @property
    def instance(self) -> str: ...

@final
class Listing:
    """Finds the circuits of one prefix among the keys of a store."""

    def __new__(cls, prefix: str) -> Listing:
        """Raises `InvalidNameError` unless it can be a prefix."""
    @property
    def pattern(self) -> str:
        """What to SCAN every master for."""
    def name_of(self, key: bytes) -> str | None:
        """The name of the circuit that a key belongs to; none if it is no circuit's under this prefix."""

@final
class Survey:
    """What the masters of a cluster say of their slots."""

    @staticmethod
    def read(replies: Sequence[str]) -> Survey | None:
        """From what each answers to `CLUSTER NODES`; none where one of them answers something else."""
    @property
    def missing(self) -> str | None:
        """Where a master is that has slots, or takes some, and is none of those that answered; none if all did."""
    def stood_still_since(self, before: Survey) -> bool:
        """Whether every slot stayed where it was between these two."""

def check_name(name: object) -> None:
    """Raises `InvalidNameError` unless it can name a circuit."""

def check_prefix(prefix: object) -> None:
    """Raises `InvalidNameError` unless it can be the prefix of a store's keys."""

def check_option(name: str, value: object) -> int:
    """Checks a number by the core's rules: `timeout_ms`, `slow_call_ms`, `max_keys`, `for_ms`, `idle_ttl_ms`."""

def event_channel(prefix: str) -> str:
    """What instances announce the circuits of a prefix on. Raises `InvalidNameError` unless it can be a prefix."""

def fields() -> list[tuple[str, str | None, str]]:
    """The core's table: the name of each option, another name that is accepted for it, its default in words."""

def defaults() -> tuple[int, str, int]:
    """`max_keys` of a group, `prefix` and `timeout_ms` of a store."""

def describe(value: object) -> str:
    """A value as an error shows it: shortened, nothing of what is inside an object, no user and password of a URL."""

def without_credentials(text: str) -> str:
    """The text with the user and password of each URL in it replaced."""

def monotonic_now() -> int:
    """The host's monotonic clock in milliseconds, anchored once to the wall clock."""

def is_moment(now: object) -> bool: ...
def forked() -> None:
    """Takes that this process was forked: what its parent need not ask for has to be asked for here."""

def error_codes() -> list[str]: ...
def http_status_counts(status: int) -> bool:
    """Whether an HTTP status says that the server failed: 429, and 500 to 599 but 501."""

__version__: Final[str]
