"""The store of shared circuits for `asyncio`."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from switchgear.redis._awaiting import AsyncLine
from switchgear.redis._awaiting_hearing import begin_hearing
from switchgear.redis._awaiting_steering import CircuitControl, list_circuits
from switchgear.redis._clients import AsyncCommands, recognise
from switchgear.redis._link import read_options
from switchgear.redis._listing import ListedCircuit
from switchgear.redis._shared import PreparedSharedPolicy
from switchgear.redis._store import ClockOption, RedisClient, Store

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from switchgear.redis._shared import SharedPolicy


class RedisStore(Store[AsyncLine]):
    """Keeps circuits in Redis or Valkey, through a client for `asyncio` that stays yours.

    The client is never closed, and nothing is sent through it before a circuit is asked something. A store belongs to
    no event loop: it can be made anywhere, and used wherever its client can be.

    Args:
        client: A `redis.asyncio.Redis`, a `redis.asyncio.RedisCluster`, what `master_for` of a `redis.asyncio.Sentinel`
            gives, the same of valkey-py, or an object with a coroutine method `command(args, key)`.
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
            It takes one more connection, made as the client's are, in a task of the event loop. It begins with the
            first call in each process, or with `async with store`, and ends with `close`. A message that is lost makes
            nothing wrong: it is heard of with the next answer, as without this. A client with `command(args, key)`
            cannot.

    Raises:
        TypeError: The client is of the wrong kind; the message names the right one.
        ConfigError: Names the option, the value and what is valid.
        InvalidNameError: The prefix cannot be one.
        InvalidTimeError: The clock gives no time.

    Example:
        ```python
        import asyncio

        import redis.asyncio

        from switchgear.redis.asyncio import DistributedCircuitBreaker, RedisStore


        async def main() -> None:
            client = redis.asyncio.Redis.from_url(REDIS_URL)
            breaker = DistributedCircuitBreaker("billing", RedisStore(client), failure_threshold=5)

            @breaker
            async def charge() -> str:
                return "charged"

            assert await charge() == "charged"
            await client.aclose()


        asyncio.run(main())
        ```
    """

    __slots__ = ()

    def __init__(
        self,
        client: RedisClient | AsyncCommands,
        *,
        prefix: str | None = None,
        timeout_ms: int | None = None,
        clock: ClockOption | None = None,
        instance: str | None = None,
        events: bool | None = None,
    ) -> None:
        known = recognise(client, is_async=True)
        options = read_options(prefix, timeout_ms, clock, instance, events)
        super().__init__(options.link(AsyncLine(known, options.timeout_ms), known, begin_hearing))

    async def circuits(self, **policy: Unpack[SharedPolicy]) -> list[ListedCircuit]:
        """The circuits that the store knows under its prefix, with their snapshots, sorted by name: all, or an error.

        Those are the open ones, and closed ones that have counted something, been steered, or been open before. Changes
        nothing. It goes through every key of the store by SCAN, on every master, and then asks for the snapshot of each
        circuit, some at a time: so it is for people and dashboards, not for each request. Each question waits at most
        the store's `timeout_ms`. The user needs the right to SCAN, in a cluster also to CLUSTER NODES.

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
        return await list_circuits(self._link, PreparedSharedPolicy.to_steer(policy, awaited=True))

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
        return CircuitControl(name, self._link, PreparedSharedPolicy.to_steer(policy, awaited=True))

    async def close(self) -> None:
        """Ends what the store opened itself: the connection of `events`, and its task. The client stays open.

        Waits, for some seconds at most, for that, and for what is still to be told that nobody waits for. Its breakers
        go on; they hear of what other instances bring about with the next answer.
        """
        hearer = None if self._link.hearing is None else self._link.hearing.close()
        if hearer is not None:
            await hearer.rest()
        await self._link.line.rest()

    async def __aenter__(self) -> RedisStore:  # noqa: PYI034 - `typing.Self` came with Python 3.11
        self._link.listen()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
