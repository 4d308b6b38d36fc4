"""The store of shared circuits for `asyncio`."""

from __future__ import annotations

from types import TracebackType

from switchgear.redis._awaiting import AsyncLine
from switchgear.redis._clients import AsyncCommands, recognise
from switchgear.redis._link import read_options
from switchgear.redis._store import ClockOption, RedisClient, Store


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
    ) -> None:
        known = recognise(client, is_async=True)
        options = read_options(prefix, timeout_ms, clock, instance)
        super().__init__(options.link(AsyncLine(known, options.timeout_ms), known))

    async def close(self) -> None:
        """Waits, for some seconds at most, for what is still to be told that nobody waits for.

        The client stays open.
        """
        await self._link.line.rest()

    async def __aenter__(self) -> RedisStore:  # noqa: PYI034 - `typing.Self` came with Python 3.11
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
