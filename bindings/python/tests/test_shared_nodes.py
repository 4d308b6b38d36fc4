"""Each master of a cluster is a server of its own (DESIGN 5.4, 5.5): in sync code and in asyncio alike."""

from __future__ import annotations

from typing import Any

import pytest
import redis
import redis.asyncio
from support.calls import failed, ok, refused, told_by
from support.servers import Cluster, Server, start_cluster
from support.sides import Asyncio, Sync
from support.stores import PATIENT, name

pytestmark = pytest.mark.thread_unsafe(reason="the tests stop, pause and flush their servers, and count commands")


@pytest.mark.once(reason="a cluster takes its time, and the interpreter makes no difference to it")
def test_each_master_is_asked_for_its_own_time_and_guarded_on_its_own(kind: str) -> None:
    with start_cluster() as cluster:
        circuits = {owner(cluster, circuit).pid: circuit for circuit in (name() for _ in range(40))}
        hanging = cluster.nodes[0]
        if kind == "sync":
            with redis.RedisCluster(host="127.0.0.1", port=hanging.port) as client:
                _guarded_apart(Sync(hanging.port), client, cluster, circuits)
        else:
            side = Asyncio(hanging.port)
            client = redis.asyncio.RedisCluster(host="127.0.0.1", port=hanging.port)
            side.do(client.initialize)
            _guarded_apart(side, client, cluster, circuits)
            side.do(client.aclose)
            side.close()


def _guarded_apart(side: Any, client: Any, cluster: Cluster, circuits: dict[int, str]) -> None:
    patient = side.store(client, timeout_ms=PATIENT)
    # The host's time stands: else an answer that takes long is asked for again a second later.
    began, _ = patient.link.times()
    object.__setattr__(patient.link, "times", lambda: (began, None))
    for node in cluster.nodes:
        node.cli("config", "resetstat")
    for circuit in circuits.values():
        side.run(side.breaker(circuit, patient), ok)
        side.run(side.breaker(circuit, patient), ok)
    for node in cluster.nodes:
        assert "cmdstat_time:calls=1," in node.cli("info", "commandstats")
    store = side.store(client, timeout_ms=300, clock="system")
    told = told_by(store)
    hanging, *others = cluster.nodes
    hanging.pause()
    try:
        for _ in range(6):
            assert side.run(side.breaker(circuits[hanging.pid], store), ok) == "ok"
        assert told == [("degraded", None)]
        for node in others:
            breaker = side.breaker(circuits[node.pid], patient, failure_threshold=1)
            failed(side, breaker)
            refused(side, side.breaker(circuits[node.pid], patient))
    finally:
        hanging.resume()


def owner(cluster: Cluster, circuit: str) -> Server:
    """The node that has the slot of a circuit."""
    return next(node for node in cluster.nodes if "MOVED" not in node.cli("exists", f"{{cb:{circuit}}}"))
