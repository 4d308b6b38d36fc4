"""A master that a sentinel watches, and its replica that takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
import redis.asyncio.sentinel
import redis.sentinel
from support.servers import Server, start_sentinel, start_server, wait_until
from support.stores import PATIENT, name
from switchgear.redis import DistributedCircuitBreaker, RedisStore
from switchgear.redis.asyncio import DistributedCircuitBreaker as AsyncBreaker
from switchgear.redis.asyncio import RedisStore as AsyncStore

pytestmark = [
    pytest.mark.thread_unsafe(reason="the tests move the master of one sentinel"),
    pytest.mark.once(reason="a failover takes its time, and the interpreter makes no difference to it"),
]


#: A failover takes as long as it takes: its failure from before still counts.
POLICY: dict[str, Any] = {"failure_threshold": 3, "window_ms": 600_000}


@dataclass(frozen=True)
class Place:
    """A sentinel of a master that has a replica."""

    sentinel: Server
    master: Server
    replica: Server

    def fail_over(self, *, cuts: bool) -> None:
        """Has the replica be the master, and the master its replica: that cuts connections off, or says READONLY."""

        def is_promoted() -> bool:
            # What clients ask for; the address by the name comes a moment before it.
            said = self.sentinel.cli("sentinel", "master", "mymaster").splitlines()
            return said[said.index("port") + 1] == str(self.replica.port)

        def has_begun() -> bool:
            return self.sentinel.cli("sentinel", "failover", "mymaster") == "OK" or is_promoted()

        # A sentinel looks at its replicas every ten seconds, and chooses none that it has not looked at.
        wait_until(has_begun, 120)
        wait_until(is_promoted, 120)
        # What the sentinel does, too, but only ten seconds from now: until then the old master goes on taking outcomes.
        self.master.cli("replicaof", "127.0.0.1", str(self.replica.port))
        if cuts:
            self.master.cli("client", "kill", "type", "normal")
        assert "role:slave" in self.master.cli("info", "replication")

    def failures(self, circuit: str) -> str:
        """How many failures of a circuit the new master knows of."""
        return self.replica.cli("zcard", f"{{cb:{circuit}}}:f")


@pytest.fixture
def place() -> Iterator[Place]:
    with ExitStack() as stack:
        master = stack.enter_context(start_server())
        replica = stack.enter_context(start_server(args=["--replicaof", f"127.0.0.1 {master.port}"]))
        wait_until(lambda: "master_link_status:up" in replica.cli("info", "replication"))
        sentinel = stack.enter_context(start_sentinel(master, "mymaster"))
        wait_until(lambda: "num-other-sentinels" in sentinel.cli("sentinel", "master", "mymaster"))
        wait_until(lambda: str(replica.port) in sentinel.cli("sentinel", "replicas", "mymaster"))
        yield Place(sentinel, master, replica)


CUTS = pytest.mark.parametrize("cuts", [True, False], ids=["cut off", "READONLY"])


@CUTS
def test_the_circuit_goes_on_at_the_new_master(place: Place, cuts: bool) -> None:
    kind: Any = redis.sentinel.Sentinel
    watching = kind([("127.0.0.1", place.sentinel.port)])
    with watching.master_for("mymaster") as client:
        breaker = DistributedCircuitBreaker(name(), RedisStore(client, timeout_ms=PATIENT), **POLICY)
        breaker.record_failure()
        permit = breaker.acquire()
        assert client.wait(1, 60_000) == 1
        place.fail_over(cuts=cuts)
        assert permit.record_failure() == "applied"
        assert breaker.get_snapshot().failures_in_window == 2
        assert place.failures(breaker.name) == "2"
    for server in watching.sentinels:
        server.close()


@CUTS
def test_so_it_does_for_asyncio(place: Place, cuts: bool) -> None:
    async def main() -> None:
        kind: Any = redis.asyncio.sentinel.Sentinel
        watching = kind([("127.0.0.1", place.sentinel.port)])
        async with watching.master_for("mymaster") as client:
            breaker = AsyncBreaker(name(), AsyncStore(client, timeout_ms=PATIENT), **POLICY)
            await breaker.record_failure()
            permit = await breaker.acquire()
            assert await client.wait(1, 60_000) == 1
            place.fail_over(cuts=cuts)
            assert await permit.record_failure() == "applied"
            assert (await breaker.get_snapshot()).failures_in_window == 2
            assert place.failures(breaker.name) == "2"
        for server in watching.sentinels:
            await server.aclose()

    asyncio.run(main())
