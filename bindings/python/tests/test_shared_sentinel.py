"""A master that a sentinel watches, and its replica that takes its place."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import ExitStack
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


@pytest.fixture
def sentinel() -> Iterator[Server]:
    """A sentinel of a master that has a replica."""
    with ExitStack() as stack:
        master = stack.enter_context(start_server())
        replica = stack.enter_context(start_server(args=["--replicaof", f"127.0.0.1 {master.port}"]))
        wait_until(lambda: "master_link_status:up" in replica.cli("info", "replication"))
        sentinel = stack.enter_context(start_sentinel(master, "mymaster"))
        wait_until(lambda: "num-other-sentinels" in sentinel.cli("sentinel", "master", "mymaster"))
        wait_until(lambda: str(replica.port) in sentinel.cli("sentinel", "replicas", "mymaster"))
        yield sentinel


def fail_over(sentinel: Server) -> None:
    """Has another server be the master, and waits until the sentinel says so."""

    def master() -> str:
        return sentinel.cli("sentinel", "get-master-addr-by-name", "mymaster")

    before = master()

    def has_begun() -> bool:
        return sentinel.cli("sentinel", "failover", "mymaster") == "OK" or master() != before

    # A sentinel looks at its replicas every ten seconds, and chooses none that it has not looked at.
    wait_until(has_begun, 120)
    wait_until(lambda: master() != before, 120)


def test_the_circuit_goes_on_at_the_new_master(sentinel: Server) -> None:
    kind: Any = redis.sentinel.Sentinel
    watching = kind([("127.0.0.1", sentinel.port)])
    with watching.master_for("mymaster") as client:
        breaker = DistributedCircuitBreaker(name(), RedisStore(client, timeout_ms=PATIENT), **POLICY)
        breaker.record_failure()
        permit = breaker.acquire()
        client.wait(1, 5000)
        fail_over(sentinel)
        # The old master, which is a replica now, takes no outcome.
        wait_until(lambda: breaker.record_success() == "applied")
        assert permit.record_failure() == "applied"
        assert breaker.get_snapshot().failures_in_window == 2
    for server in watching.sentinels:
        server.close()


def test_so_it_does_for_asyncio(sentinel: Server) -> None:
    async def main() -> None:
        kind: Any = redis.asyncio.sentinel.Sentinel
        watching = kind([("127.0.0.1", sentinel.port)])
        async with watching.master_for("mymaster") as client:
            breaker = AsyncBreaker(name(), AsyncStore(client, timeout_ms=PATIENT), **POLICY)
            await breaker.record_failure()
            permit = await breaker.acquire()
            await client.wait(1, 5000)
            fail_over(sentinel)
            while await breaker.record_success() != "applied":  # noqa: ASYNC110 - what is asked is another process
                await asyncio.sleep(0.01)
            assert await permit.record_failure() == "applied"
            assert (await breaker.get_snapshot()).failures_in_window == 2
        for server in watching.sentinels:
            await server.aclose()

    asyncio.run(main())
