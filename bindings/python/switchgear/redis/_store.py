"""The store of shared circuits."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, Literal, Protocol, TypeAlias, TypeVar

from switchgear._native import describe
from switchgear._uncopied import Uncopied
from switchgear.redis._blocking import Line
from switchgear.redis._blocking_hearing import begin_hearing
from switchgear.redis._blocking_steering import CircuitControl, list_circuits
from switchgear.redis._clients import Commands, recognise
from switchgear.redis._link import Link, StoreEvent, StoreEventName, read_options
from switchgear.redis._listing import ListedCircuit
from switchgear.redis._shared import PreparedSharedPolicy

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from switchgear.redis._shared import SharedPolicy

L = TypeVar("L")


class RedisClient(Protocol):
    """A client of redis-py or valkey-py."""

    def execute_command(self, *args: Any, **options: Any) -> Any:
        """Sends a command."""


class Store(Uncopied, Generic[L]):
    """What the stores of sync code and of `asyncio` have in common."""

    __slots__ = ("__weakref__", "_link")

    def __init__(self, link: Link[L]) -> None:
        self._link = link

    @property
    def link(self) -> Link[L]:
        """What its circuits share. Private to this package."""
        return self._link

    def on(self, event: StoreEventName, fn: Callable[[StoreEvent], object]) -> Callable[[], None]:
        """Listens to what the store says about itself: `store_error`, `config_mismatch`, `degraded`, `restored`.

        A listener that raises harms nothing and is reported once, as a warning of the logger `switchgear`.

        Returns:
            A function that stops listening.

        Raises:
            TypeError: An unknown event, or a listener that cannot be called.
        """
        return self._link.events.on(event, fn)

    def __repr__(self) -> str:
        # Nothing of the client, which holds a password.
        return f"<{type(self).__qualname__} with prefix {self._link.prefix!r}>"


def checked_store(store: object, kind: type[Store[L]], user: str) -> Link[L]:
    """What the circuits of a store share.

    Args:
        store: What was given.
        kind: What it should be.
        user: What it was given to.

    Raises:
        TypeError: It is no store, or one of the other kind; the message names what takes it.
    """
    if isinstance(store, kind):
        return store.link
    if isinstance(store, Store):
        module = _module_of(type(store))
        raise TypeError(f"`store` is a `{module}.RedisStore`: `{module}.{user}` takes it")
    raise TypeError(f"`store` must be a RedisStore (`{_module_of(kind)}.RedisStore(client)`), got `{describe(store)}`")


class RedisStore(Store[Line]):
    """Keeps circuits in Redis or Valkey, through a client that stays yours.

    The client is never closed, and nothing is sent through it before a circuit is asked something.

    Args:
        client: A `redis.Redis`, a `redis.RedisCluster`, what `master_for` of a `Sentinel` gives, the same of valkey-py,
            or an object with `command(args, key)`.
        prefix: What the keys begin with, inside the braces that keep a circuit in one cluster slot: `{cb:billing}`. The
            same in every process of the fleet; by default `"cb:"`.
        timeout_ms: Milliseconds that one admission, outcome or question may wait for the store, all retries included,
            however the client is configured; by default 100. It says nothing about how long the guarded function may
            take.
        clock: What time the circuits run by, in whole milliseconds since 1970. `"server"`, the default: that of each
            server, which is asked by `TIME` ahead of the first command and again by a later call after 30 s, so that
            hosts whose clocks differ agree. `"system"`: this host's wall clock as it is, which must then agree with
            that of every other instance. Or a function, which is read once by the constructor.
        instance: Who we are in the state changes we make, and in a `quorum`; by default the name of the host. Instances
            that share a host, or its name, are to be given names of their own.
        events: Whether to hear at once what other instances bring about: `state_change` then tells that as well, with
            `source="remote"` and their `instance`, and what is known of a circuit is corrected. By default `False`.
            It takes one more connection, made as the client's are, in a thread of the store. It begins with the first
            call in each process, or with `with store`, and ends with `close`. A message that is lost makes nothing
            wrong: it is heard of with the next answer, as without this. A client with `command(args, key)` cannot.

    Raises:
        TypeError: The client is of the wrong kind; the message names the right one.
        ConfigError: Names the option, the value and what is valid.
        InvalidNameError: The prefix cannot be one.
        InvalidTimeError: The clock gives no time.

    Example:
        ```python
        import redis

        from switchgear.redis import DistributedCircuitBreaker, RedisStore

        store = RedisStore(redis.Redis.from_url(REDIS_URL))
        breaker = DistributedCircuitBreaker("billing", store, failure_threshold=5)
        assert breaker.execute(lambda: "charged") == "charged"
        ```
    """

    __slots__ = ()

    def __init__(
        self,
        client: RedisClient | Commands,
        *,
        prefix: str | None = None,
        timeout_ms: int | None = None,
        clock: ClockOption | None = None,
        instance: str | None = None,
        events: bool | None = None,
    ) -> None:
        known = recognise(client, is_async=False)
        options = read_options(prefix, timeout_ms, clock, instance, events)
        super().__init__(options.link(Line(known, options.timeout_ms), known, begin_hearing))

    def circuits(self, **policy: Unpack[SharedPolicy]) -> list[ListedCircuit]:
        """The circuits that the store knows under its prefix, with their snapshots, sorted by name: all, or an error.

        Those are the open ones, and closed ones that have counted something, been steered, or been open before. Changes
        nothing. It goes through every key of the store by SCAN, on every master, and then asks for the snapshot of each
        circuit, one after another: so it is for people and dashboards, not for each request. Each question waits at
        most the store's `timeout_ms`. The user needs the right to SCAN, in a cluster also to CLUSTER NODES.

        Args:
            **policy: By what the failures of closed circuits are counted, as the store keeps no policies: `trip_on` and
                `window_ms`, mostly. Circuits of another policy are listed, too, with counts that mean little. By
                default as a breaker without a policy.

        Returns:
            What was found; an empty list where there is none. Each snapshot is of the moment it was read at.

        Raises:
            StoreUnavailableError: A server did not answer, or could not be reached (its `circuit` is then `*`), or a
                circuit cannot be read.
            ConfigError: The policy is wrong, or the client cannot name its masters: an object with
                `command(args, key)` needs `masters()` for this.
            InvalidTimeError: The clock fails.
        """
        return list_circuits(self._link, PreparedSharedPolicy.to_steer(policy, awaited=False))

    def control(self, name: str, **policy: Unpack[SharedPolicy]) -> CircuitControl:
        """Steers a circuit from anywhere, without a breaker. Asks nothing of the store before it is used.

        What it does holds for the whole fleet and is announced like any other control.

        Args:
            name: The circuit's name; one that the store does not know yet may be steered, too.
            **policy: What the store does not know: how long `trip` opens for without `for_ms` (`open_duration_ms`,
                `open_backoff`), how long the circuit is remembered (`idle_ttl_ms`), and how a snapshot counts. By
                default as a breaker without a policy: 30 000 ms, and a day.

        Raises:
            InvalidNameError: The name cannot name a circuit.
            ConfigError: Names the option, the value and what is valid.
            InvalidTimeError: The policy's clock gives no time.
        """
        return CircuitControl(name, self._link, PreparedSharedPolicy.to_steer(policy, awaited=False))

    def close(self) -> None:
        """Ends what the store opened itself: the connection of `events`, and its thread. The client stays open.

        Its breakers go on; they hear of what other instances bring about with the next answer.
        """
        hearer = None if self._link.hearing is None else self._link.hearing.close()
        if hearer is not None:
            hearer.rest()

    def __enter__(self) -> RedisStore:  # noqa: PYI034 - `typing.Self` came with Python 3.11
        self._link.listen()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _module_of(kind: type[Store[Any]]) -> str:
    """Where users find a store."""
    return "switchgear.redis" if issubclass(kind, RedisStore) else "switchgear.redis.asyncio"


ClockOption: TypeAlias = "Literal['server', 'system'] | Callable[[], int]"
"""Where a store's time comes from."""
