"""Every client library, on one server, behind a sentinel, and on a cluster: the same answers through each."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis.asyncio.cluster
import redis.asyncio.sentinel
import redis.cluster
import redis.sentinel
import valkey.asyncio.cluster
import valkey.asyncio.sentinel
import valkey.cluster
import valkey.sentinel
from support import life
from support.calls import BoomError, fail, ok
from support.child import TIMEOUT_S, child_environment
from support.servers import start_cluster, start_sentinel, start_server
from support.stores import PATIENT, name
from switchgear import CircuitOpenError
from switchgear.redis import DistributedCircuitBreaker, RedisStore, SharedPolicy

LIBRARIES = {"redis": redis, "valkey": valkey}
CLIENTS = Path(__file__).parents[3] / ".cache" / "clients"
"""Where `scripts/python.sh` puts other versions."""

Place = tuple[str, int]


@pytest.fixture(scope="module")
def places() -> Iterator[Callable[[str], Place]]:
    """The port of each place, started when it is asked for."""
    started: list[Callable[[], None]] = []

    @functools.cache
    def place(name: str) -> Place:
        if name == "cluster":
            cluster = start_cluster()
            started.append(cluster.stop)
            return name, cluster.nodes[0].port
        server = start_server()
        started.append(server.stop)
        if name == "single":
            return name, server.port
        sentinel = start_sentinel(server, "mymaster")
        started.append(sentinel.stop)
        return name, sentinel.port

    yield place
    for stop in reversed(started):
        stop()


@pytest.mark.thread_unsafe(reason="one pass through all clients is as much as a suite has time for")
@pytest.mark.parametrize("where", ["single", "sentinel", "cluster"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_scenario_54_each_way_to_read_replies_gives_the_same_answers(
    places: Callable[[str], Place], library: str, where: str
) -> None:
    assert life.everything(LIBRARIES[library], *places(where)) >= 2 * len(life.NAMES) * len(life.OPTIONS)


@pytest.mark.once(reason="other interpreters have the same clients, and there are many")
@pytest.mark.thread_unsafe(reason="one pass through all clients is as much as a suite has time for")
@pytest.mark.parametrize("where", ["single", "sentinel", "cluster"])
@pytest.mark.parametrize("version", ["redis-5", "redis-6", "redis-7", "hiredis-3"])
def test_scenario_54_so_do_other_versions(places: Callable[[str], Place], version: str, where: str) -> None:
    place, port = places(where)
    environment = child_environment()
    environment["PYTHONPATH"] = os.pathsep.join([str(CLIENTS / version), environment["PYTHONPATH"]])
    ran = subprocess.run(
        [sys.executable, "-m", "support.life", "redis", place, str(port)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    said, lived = ran.stdout.split()
    expected = redis.__version__ if version == "hiredis-3" else version.removeprefix("redis-")
    assert said.startswith(expected)
    assert int(lived) >= 2 * len(life.NAMES) * len(life.OPTIONS)


@pytest.mark.thread_unsafe(reason="one pass through all clients is as much as a suite has time for")
@pytest.mark.parametrize("encoding", ["utf-16", "utf-32-le"])
@pytest.mark.parametrize("library", LIBRARIES)
def test_a_client_may_read_and_write_whatever_encoding(
    places: Callable[[str], Place], library: str, encoding: str
) -> None:
    _, port = places("single")
    # In the protocol that says nothing in words before it is asked something.
    kind = LIBRARIES[library]
    with (kind.Redis if library == "redis" else kind.Valkey)(
        port=port, protocol=2, encoding=encoding, decode_responses=True
    ) as client:
        store = RedisStore(client, prefix="\u00fc:", timeout_ms=PATIENT)
        policy: SharedPolicy = {"failure_threshold": 1, "on_store_failure": "fail-closed"}
        breaker = DistributedCircuitBreaker(f"\u540d-\U0001f600-{name()}", store, **policy)
        assert breaker.execute(ok) == "ok"
        with pytest.raises(BoomError):
            breaker.execute(fail)
        assert breaker.get_state() == "open"
        with pytest.raises(CircuitOpenError):
            breaker.execute(ok)
