"""What a cluster does to a circuit: forgotten scripts on any node, and slots that move while calls are under way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.cluster
import valkey
from support.clock import ManualClock
from support.servers import Cluster, Server, has_all_slots, is_taken_for, start_cluster, wait_until
from support.stores import PATIENT, heard, name, reason
from switchgear.redis import DistributedCircuitBreaker, RedisStore
from switchgear.redis.asyncio import DistributedCircuitBreaker as AsyncBreaker
from switchgear.redis.asyncio import RedisStore as AsyncStore

pytestmark = [
    pytest.mark.thread_unsafe(reason="the tests move slots of one cluster, and end its nodes"),
    pytest.mark.once(reason="a cluster takes its time, and the interpreter makes no difference to it"),
]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with start_cluster() as cluster:
        yield cluster


@pytest.fixture
def client(cluster: Cluster) -> Iterator[redis.RedisCluster]:
    with redis.RedisCluster(host="127.0.0.1", port=cluster.nodes[0].port) as client:
        yield client


def breaker_through(client: Any, circuit: str, clock: ManualClock, **options: Any) -> DistributedCircuitBreaker:
    store = RedisStore(client, clock=clock, **{"timeout_ms": PATIENT, **options})
    return DistributedCircuitBreaker(
        circuit, store, failure_threshold=3, open_duration_ms=1000, on_store_failure="fail-closed"
    )


def key_of(circuit: str) -> str:
    return f"{{cb:{circuit}}}"


class Move:
    """The way of one slot from the node that has it to another."""

    def __init__(self, cluster: Cluster, circuit: str) -> None:
        """Begins to move the slot of a circuit."""
        self._nodes = cluster.nodes
        key = key_of(circuit)
        self._from = owner_of(cluster, key)
        self._to = next(node for node in self._nodes if node is not self._from)
        self._slot = self._from.cli("cluster", "keyslot", key)
        self._to.cli("cluster", "setslot", self._slot, "importing", self._from.cli("cluster", "myid"))
        self._from.cli("cluster", "setslot", self._slot, "migrating", self._to.cli("cluster", "myid"))

    def take(self, *keys: str) -> None:
        """Moves keys, there or not."""
        self._from.cli("migrate", "127.0.0.1", str(self._to.port), "", "0", "5000", "keys", *keys)

    def end(self) -> None:
        owner = self._to.cli("cluster", "myid")
        for node in (self._to, *self._nodes):
            node.cli("cluster", "setslot", self._slot, "node", owner)


def owner_of(cluster: Cluster, key: str) -> Server:
    """The node that has the slot of a key."""
    return next(node for node in cluster.nodes if "MOVED" not in node.cli("exists", key))


def test_scenario_52_scripts_that_every_node_has_forgotten_are_sent_again_and_count_once(
    cluster: Cluster, client: redis.RedisCluster
) -> None:
    clock = ManualClock()
    for _ in range(6):
        breaker = breaker_through(client, name(), clock)
        permit = breaker.acquire()
        for node in cluster.nodes:
            node.cli("script", "flush")
        assert permit.record_failure() == "applied"
        assert breaker.get_snapshot().failures_in_window == 1


def test_scenario_52_a_slot_that_moved_between_admission_and_settlement_is_followed_to_its_new_node(
    cluster: Cluster, client: redis.RedisCluster
) -> None:
    breaker = breaker_through(client, name(), ManualClock())
    breaker.record_failure()
    permit = breaker.acquire()
    move = Move(cluster, breaker.name)
    move.take(f"{key_of(breaker.name)}:f")
    move.end()
    assert permit.record_failure() == "applied"
    assert breaker.get_snapshot().failures_in_window == 2
    assert breaker.record_failure() == "applied"
    assert breaker.get_state() == "open"
    # Found without a detour by who comes from elsewhere, too.
    for node in cluster.nodes:
        with redis.RedisCluster(host="127.0.0.1", port=node.port) as other:
            assert breaker_through(other, breaker.name, ManualClock()).get_state() == "open"


def test_scenario_52_a_slot_on_the_move_is_asked_where_its_keys_are(
    cluster: Cluster, client: redis.RedisCluster
) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    events = heard(store)
    breaker = DistributedCircuitBreaker(name(), store, open_duration_ms=1000)
    # A probe under way: the circuit has a hash and a set of probes, which arrive one after the other.
    breaker.trip()
    clock.now += 1000
    probe = breaker.acquire()
    move = Move(cluster, breaker.name)
    key = key_of(breaker.name)
    move.take(key)
    settled: list[str] = []
    thread = threading.Thread(target=lambda: settled.append(probe.record_failure()))
    thread.start()
    # Neither node can do it now: each has one of the keys.
    move.take(f"{key}:p")
    move.end()
    thread.join()
    assert settled == ["applied"]
    snapshot = breaker.get_snapshot()
    assert (snapshot.state, snapshot.trips) == ("open", 2)
    assert events == []


def test_replicas_are_not_asked_where_a_client_may_ask_them(cluster: Cluster) -> None:
    """A plain read through such a client may go to a replica, a script does not."""
    at: dict[str, Any] = {"host": "127.0.0.1", "port": cluster.nodes[0].port}
    strategy = redis.cluster.LoadBalancingStrategy.ROUND_ROBIN
    for balancing in (
        redis.RedisCluster(**at, load_balancing_strategy=strategy),
        valkey.ValkeyCluster(**at, read_from_replicas=True),
    ):
        with balancing as client:
            store = RedisStore(client, timeout_ms=PATIENT)
            assert not store.link.client.reads_primary
            breaker = DistributedCircuitBreaker(name(), store)
            assert breaker.execute(lambda: "ok") == "ok"
            breaker.force_open()
            assert not breaker.can_execute()
    for plain in (redis.RedisCluster(**at), valkey.ValkeyCluster(**at)):
        with plain as client:
            assert RedisStore(client).link.client.reads_primary
    assert AsyncStore(redis.asyncio.RedisCluster(**at)).link.client.reads_primary
    assert not AsyncStore(redis.asyncio.RedisCluster(**at, load_balancing_strategy=strategy)).link.client.reads_primary


def test_a_node_that_hangs_keeps_nobody_waiting_and_the_others_answer(
    cluster: Cluster, client: redis.RedisCluster
) -> None:
    circuits = {owner_of(cluster, key_of(circuit)).pid: circuit for circuit in (name() for _ in range(40))}
    assert len(circuits) == 3
    for circuit in circuits.values():
        assert breaker_through(client, circuit, ManualClock()).can_execute()
    hanging, *others = cluster.nodes
    hanging.pause()
    try:
        hasty = breaker_through(client, circuits[hanging.pid], ManualClock(), timeout_ms=60)
        for _ in range(3):
            assert reason(hasty.acquire) == "no answer within 60 ms"
        for other in others:
            assert breaker_through(client, circuits[other.pid], ManualClock()).can_execute()
    finally:
        hanging.resume()
    assert breaker_through(client, circuits[hanging.pid], ManualClock()).can_execute()


def test_asyncio_follows_slots_and_hangs_as_little(cluster: Cluster) -> None:
    async def main() -> None:
        async with redis.asyncio.RedisCluster(host="127.0.0.1", port=cluster.nodes[0].port) as client:
            clock = ManualClock()
            store = AsyncStore(client, clock=clock, timeout_ms=PATIENT)
            breaker = AsyncBreaker(name(), store, failure_threshold=3, open_duration_ms=1000)
            await breaker.record_failure()
            permit = await breaker.acquire()
            move = Move(cluster, breaker.name)
            move.take(f"{key_of(breaker.name)}:f")
            move.end()
            assert await permit.record_failure() == "applied"
            assert (await breaker.get_snapshot()).failures_in_window == 2
            for node in cluster.nodes:
                node.cli("script", "flush")
            assert await breaker.record_failure() == "applied"
            assert await breaker.get_state() == "open"
            owner = owner_of(cluster, key_of(breaker.name))
            hasty = AsyncBreaker(breaker.name, AsyncStore(client, timeout_ms=60), on_store_failure="fail-closed")
            owner.pause()
            try:
                for _ in range(3):
                    assert not await hasty.can_execute()
            finally:
                owner.resume()
            assert await breaker.get_state() == "open"

    asyncio.run(main())


# The last test: it ends a node.
def test_scenario_52_the_replica_of_a_killed_primary_goes_on_with_the_circuit_and_the_outcome_counts_once(
    cluster: Cluster, client: redis.RedisCluster
) -> None:
    breaker = breaker_through(client, name(), ManualClock())
    breaker.record_failure()
    permit = breaker.acquire()
    owner = owner_of(cluster, key_of(breaker.name))
    others = [node for node in cluster.nodes if node is not owner]
    # All know it and it knows all: afterwards nobody is left who would tell it of the others.
    replica = cluster.join()
    identity, replica_id = owner.cli("cluster", "myid"), replica.cli("cluster", "myid")
    replica.cli("cluster", "replicate", identity)
    wait_until(lambda: "master_link_status:up" in replica.cli("info", "replication"))
    wait_until(lambda: all(is_taken_for(node, replica_id, "slave") for node in others))
    owner.kill()
    replica.cli("cluster", "failover", "takeover")
    wait_until(lambda: all(is_taken_for(node, replica_id, "master") for node in others))
    # It may become one before it has heard of the other masters' slots, and says then that the cluster is down.
    wait_until(lambda: all(has_all_slots(node) for node in (replica, *others)))
    assert permit.record_failure() == "applied"
    snapshot = breaker.get_snapshot()
    assert (snapshot.state, snapshot.failures_in_window) == ("closed", 2)
