"""Which circuits there are: whatever they are called, all of them or an error. Each client: test_redis_clients.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any
from uuid import uuid4

import pytest
import redis
import redis.asyncio
import valkey
import valkey.asyncio
from support.clock import ManualClock
from support.servers import Server, start_cluster, start_server
from support.sides import Asyncio, side_of
from support.stores import PATIENT
from switchgear import ConfigError, InvalidTimeError, Snapshot, StoreError, StoreUnavailableError
from switchgear.redis import _awaiting_steering as awaiting_steering
from switchgear.redis import _blocking_steering as blocking_steering

pytestmark = [
    pytest.mark.thread_unsafe(reason="the tests share one event loop, and each one prefix"),
    pytest.mark.once(reason="what is asked of a store is the same in all interpreters"),
]

NAMES = ["GET /users/{id}", "[a-z]*?", "a b", "a\\b", "billing", "n" * 512, "x}:f", "{}", "}x", "\U0001f4b3"]

GLOBS = "[^a]*?\\-"
"""What in a prefix means something to SCAN."""


def store_of(side: Any, prefix: str, client: Any = None, **options: Any) -> Any:
    return side.store(client, **{"prefix": prefix, "timeout_ms": PATIENT, "clock": ManualClock(), **options})


def names_of(listed: list[Any]) -> list[str]:
    return [circuit.name for circuit in listed]


def foreign(prefix: str) -> list[str]:
    """Keys that are nobody's circuit under the prefix, or somebody else's."""
    return [
        f"{{{prefix}x}}:other",
        f"{{{prefix}}}",
        f"{prefix}x",
        f"{{{prefix[:-1]}x}}",
        f"{{x{prefix}x}}",
        f"app:{{{prefix}x}}",
    ]


def unavailable(side: Any, call: Callable[..., Any]) -> tuple[str, str | None]:
    """The circuit that is given, and why."""
    with pytest.raises(StoreUnavailableError) as caught:
        side.do(call)
    assert isinstance(caught.value.__cause__, StoreError)
    return caught.value.circuit, caught.value.reason


class Single:
    """A client of one server, whose commands a test looks into."""

    def __init__(self, tapped: Any, masters: Callable[[], Any] | None = None) -> None:
        self.command = tapped.command
        self.masters: Callable[[], Any] = (lambda: [self]) if masters is None else masters


@pytest.fixture
def admin(redis_server: Server) -> Iterator[Any]:
    with redis.Redis(port=redis_server.port) as admin:
        yield admin


# ---- what is found


def test_scenario_47_all_circuits_are_listed_as_they_are_and_by_their_names(side: Any, admin: Any) -> None:
    prefix = f"{uuid4()}{GLOBS}:"
    store = store_of(side, prefix)
    assert side.do(store.circuits) == []
    for circuit in NAMES:
        side.do(side.breaker(circuit, store, failure_threshold=2).record_failure)
    admin.mset(dict.fromkeys([*foreign(prefix), f"{{{prefix}".encode() + b"\xff}"], "foreign"))
    side.do(side.breaker("a rate", store, trip_on="rate").record_failure)
    side.do(side.breaker("again closed", store).reset)
    opened = side.breaker("open", store)
    side.do(opened.trip, for_ms=5000)
    side.do(side.breaker("forced", store).force_open)

    listed = side.do(store.circuits)
    assert names_of(listed) == sorted(["a rate", "again closed", "forced", "open", *NAMES])
    of: dict[str, Snapshot] = {circuit.name: circuit.snapshot for circuit in listed}
    assert of["open"] == side.do(opened.get_snapshot)
    assert (of["open"].state, of["open"].mode, of["open"].remaining_open_ms) == ("open", "auto", 5000)
    assert (of["forced"].state, of["forced"].mode) == ("open", "forced-open")
    assert (of["billing"].state, of["billing"].failures_in_window) == ("closed", 1)
    assert (of["again closed"].state, of["again closed"].failures_in_window) == ("closed", 0)
    by_rate = {circuit.name: circuit.snapshot for circuit in side.do(store.circuits, trip_on="rate")}
    assert (by_rate["a rate"].failures_in_window, by_rate["a rate"].calls_in_window) == (1, 1)


def test_each_is_listed_once_however_many_there_are_and_however_often_scan_finds_its_keys(
    side: Any, admin: Any
) -> None:
    prefix, clock = f"{uuid4()}:", ManualClock()
    names = [f"c{n}" for n in range(2500)]
    with admin.pipeline(transaction=False) as writing:
        for circuit in names:
            writing.hset(f"{{{prefix}{circuit}}}", mapping={"state": "half-open", "epoch": "7"})
            writing.zadd(f"{{{prefix}{circuit}}}:p", {"b": clock.now})
        writing.execute()
    listed = side.do(store_of(side, prefix).circuits)
    assert names_of(listed) == sorted(names)
    assert {(circuit.snapshot.state, circuit.snapshot.half_open_in_flight) for circuit in listed} == {("half-open", 1)}


def test_reading_is_all_it_costs_the_store_and_what_is_listed_cannot_be_changed(side: Any, admin: Any) -> None:
    prefix = f"{uuid4()}:"
    store = store_of(side, prefix)
    side.do(store.control("c").trip)
    before = admin.dump(f"{{{prefix}c}}")
    (circuit,) = side.do(store.circuits)
    with pytest.raises(AttributeError):
        circuit.name = "d"
    assert admin.dump(f"{{{prefix}c}}") == before


def test_the_policy_of_a_breaker_will_do_whatever_it_says_of_a_store_that_fails(side: Any) -> None:
    store = store_of(side, f"{uuid4()}:")
    policy: dict[str, Any] = {
        "trip_on": "consecutive",
        "failure_threshold": 3,
        "on_store_failure": "fail-open",
        "is_failure": lambda error: True,
    }
    side.do(side.breaker("c", store, **policy).record_failure)
    (circuit,) = side.do(store.circuits, **policy)
    assert (circuit.snapshot.consecutive_failures, circuit.snapshot.failures_in_window) == (1, 0)
    with pytest.raises(InvalidTimeError):
        side.do(store.circuits, clock=lambda: -1)


# ---- a client of one's own


def test_a_client_of_ones_own_names_its_masters(side: Any) -> None:
    prefix = f"{uuid4()}:"
    side.do(store_of(side, prefix).control("c").trip)
    assert names_of(side.do(store_of(side, prefix, Single(side.tapped())).circuits)) == ["c"]

    async def masters() -> list[Any]:
        return [client]

    if isinstance(side, Asyncio):
        client = Single(side.tapped(), masters)
        assert names_of(side.do(store_of(side, prefix, client).circuits)) == ["c"]


def test_one_that_does_not_is_told_how(side: Any) -> None:
    with pytest.raises(ConfigError, match="`client` must have `masters\\(\\)`") as caught:
        side.do(store_of(side, "c:", side.tapped()).circuits)
    assert caught.value.field == "client"


@pytest.mark.parametrize(
    ("masters", "why"),
    [
        (list, "the client knows no server that takes writes"),
        (lambda: 7, "`masters()` gives no list"),
        (lambda: 1 // 0, "integer division or modulo by zero"),
    ],
)
def test_one_that_names_none_cannot_list(side: Any, masters: Callable[[], Any], why: str) -> None:
    store = store_of(side, "c:", Single(side.tapped(), masters))
    assert unavailable(side, store.circuits) == ("*", why)


# ---- a store that does not answer


def test_a_store_that_does_not_answer_is_an_error_that_its_listeners_hear_of(side: Any) -> None:
    away = RuntimeError("redis://user:secret@host is away")
    store = store_of(side, "c:", Single(side.tapped(lambda args: away)))
    events: list[Any] = []
    store.on("store_error", events.append)
    circuit, why = unavailable(side, store.circuits)
    assert circuit == "*"
    assert why is not None
    assert why.endswith("is away")
    assert "secret" not in why
    assert [(event.circuit, str(event.error)) for event in events] == [(None, why)]


@pytest.mark.parametrize("reply", [[], ["0"], ["x", []], ["0", "keys"], "OK", 7, ["-1", []], [b"\xff", []]])
def test_what_is_no_reply_of_scan_is_an_error(side: Any, reply: Any) -> None:
    store = store_of(side, "c:", Single(side.tapped(lambda args: reply)))
    assert unavailable(side, store.circuits) == ("*", "the reply is none that SCAN gives")


def test_a_server_that_breaks_off_between_two_pages_gives_nothing(side: Any) -> None:
    pages = iter([[b"5", []], RuntimeError("gone")])
    store = store_of(side, "c:", Single(side.tapped(lambda args: next(pages))))
    assert unavailable(side, store.circuits) == ("*", "gone")


@pytest.mark.parametrize("times", [1, 100])
def test_a_connection_that_is_lost_between_two_pages_means_to_begin_again(
    kind: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with start_server() as server, side_of(kind, server.port) as side, redis.Redis(port=server.port) as admin:
        store = store_of(side, "cb:")
        side.do(store.control("c").trip)
        admin.mset({f"other {n}": "" for n in range(3000)})
        steering: Any = awaiting_steering if isinstance(side, Asyncio) else blocking_steering
        ask = steering._Servers._ask
        cursors: list[str] = []

        def breaking(servers: Any, master: Any, command: Any) -> Any:
            if command[0] == "SCAN":
                cursors.append(command[1])
                if command[1] != "0" and cursors.count("0") <= times:
                    # A cursor is one server's own, and who is there next may be another one.
                    admin.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            return ask(servers, master, command)

        monkeypatch.setattr(steering._Servers, "_ask", breaking)
        if times == 1:
            assert names_of(side.do(store.circuits)) == ["c"]
            assert (cursors.count("0"), cursors[0], cursors[2]) == (2, "0", "0")
        else:
            circuit, why = unavailable(side, store.circuits)
            assert circuit == "*"
            assert why


def test_a_circuit_that_cannot_be_read_is_named(side: Any, admin: Any) -> None:
    prefix = f"{uuid4()}:"
    store = store_of(side, prefix)
    side.do(store.control("fine").trip)
    admin.set(f"{{{prefix}text}}", "no circuit")
    circuit, why = unavailable(side, store.circuits)
    assert (circuit, "WRONGTYPE" in str(why)) == ("text", True)


def test_a_server_that_hangs_is_waited_for_as_long_as_one_question_may_take(kind: str) -> None:
    with start_server() as server, side_of(kind, server.port) as side:
        patient = store_of(side, "c:")
        side.do(patient.control("c").trip)
        store = store_of(side, "c:", timeout_ms=300)
        server.pause()
        assert unavailable(side, store.circuits) == ("*", "no answer within 300 ms")
        server.resume()
        assert names_of(side.do(patient.circuits)) == ["c"]


def test_whoever_may_not_scan_is_told(kind: str) -> None:
    with start_server() as server, side_of(kind, server.port) as side:
        store = store_of(side, "cb:")
        side.do(store.control("c").trip)
        server.cli("acl", "setuser", "default", "-scan")
        circuit, why = unavailable(side, store.circuits)
        assert (circuit, str(why)[:6]) == ("*", "NOPERM")
        server.cli("acl", "setuser", "default", "+scan")
        assert names_of(side.do(store.circuits)) == ["c"]


# ---- on a cluster

MANY = sorted(f"c{{{n}}}" for n in range(30))
"""Names of which every node has some."""


class Place:
    """A cluster, its nodes, and whose slots are where."""

    def __init__(self, stack: ExitStack) -> None:
        self.cluster = stack.enter_context(start_cluster())
        self.nodes = self.cluster.nodes

    def client(self, side: Any, library: Any = redis) -> Any:
        module = library.asyncio if isinstance(side, Asyncio) else library
        cluster = getattr(module, "RedisCluster", None) or module.ValkeyCluster
        return cluster(host="127.0.0.1", port=self.nodes[0].port)

    def fill(self, side: Any, client: Any, prefix: str) -> None:
        for circuit in MANY:
            side.do(store_of(side, prefix, client).control(circuit).trip)

    def move(self, key: str, to: Server) -> None:
        """Moves a key's slot, with the key."""
        owner = next(node for node in self.nodes if "MOVED" not in node.cli("exists", key))
        slot, theirs = owner.cli("cluster", "keyslot", key), to.cli("cluster", "myid")
        to.cli("cluster", "setslot", slot, "importing", owner.cli("cluster", "myid"))
        owner.cli("cluster", "setslot", slot, "migrating", theirs)
        owner.cli("migrate", "127.0.0.1", str(to.port), "", "0", "5000", "keys", key)
        for node in (to, *self.nodes):
            node.cli("cluster", "setslot", slot, "node", theirs)


@pytest.fixture(scope="module")
def place() -> Iterator[Place]:
    with ExitStack() as stack:
        yield Place(stack)


def test_of_three_masters_one_that_hangs_is_named_and_nothing_of_the_others_is_given(
    kind: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"{uuid4()}:"
    with side_of(kind, place.nodes[0].port) as side:
        client = place.client(side)
        place.fill(side, client, prefix)
        patient = store_of(side, prefix, client)
        assert names_of(side.do(patient.circuits)) == MANY
        hanging = place.nodes[1]
        store = store_of(side, prefix, client, timeout_ms=500)
        steering: Any = awaiting_steering if isinstance(side, Asyncio) else blocking_steering
        reply = steering._Servers._reply

        def replying(servers: Any, master: Any, command: Any) -> Any:
            # The others have time, for the machine may be busy.
            store.link.line._seconds = 0.5 if master.name.endswith(f":{hanging.port}") else PATIENT / 1000
            return reply(servers, master, command)

        monkeypatch.setattr(steering._Servers, "_reply", replying)
        hanging.pause()
        try:
            circuit, why = unavailable(side, store.circuits)
            assert (circuit, why) == ("*", f"127.0.0.1:{hanging.port}: no answer within 500 ms")
        finally:
            hanging.resume()
        assert names_of(side.do(patient.circuits)) == MANY
        side.do(client.aclose if isinstance(side, Asyncio) else client.close)


def test_a_circuit_that_moves_behind_a_master_that_was_looked_through_is_found_by_looking_again(
    kind: str, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix = f"{uuid4()}:"
    with side_of(kind, place.nodes[0].port) as side:
        client = place.client(side)
        store = store_of(side, prefix, client)
        last = place.nodes[-1]
        circuit = next(c for c in MANY if "MOVED" not in last.cli("exists", f"{{{prefix}{c}}}"))
        side.do(store.control(circuit).trip)
        primaries, ports = client.get_primaries, [node.port for node in place.nodes]
        client.get_primaries = lambda: sorted(primaries(), key=lambda node: ports.index(node.port))
        scans: list[Any] = []
        steering: Any = awaiting_steering if isinstance(side, Asyncio) else blocking_steering
        ask = steering._Servers._ask

        def slipping(servers: Any, master: Any, command: Any) -> Any:
            if command[0] == "SCAN":
                scans.append(master)
                if len(scans) == len(ports):
                    # All others are looked through, and this one is about to be.
                    place.move(f"{{{prefix}{circuit}}}", place.nodes[0])
            return ask(servers, master, command)

        monkeypatch.setattr(steering._Servers, "_ask", slipping)
        assert names_of(side.do(store.circuits)) == [circuit]
        assert len(scans) == 2 * len(ports)
        side.do(client.aclose if isinstance(side, Asyncio) else client.close)


def test_a_master_that_the_client_does_not_know_and_cannot_find_is_an_error_that_says_where_it_is(
    kind: str, place: Place
) -> None:
    with side_of(kind, place.nodes[0].port) as side:
        client = place.client(side)
        hidden, real = place.nodes[2], client.get_primaries
        client.get_primaries = lambda: [node for node in real() if node.port != hidden.port]
        store = store_of(side, f"{uuid4()}:", client, timeout_ms=1000)
        # It looks for so long, and each question on the way has time.
        store.link.line._seconds = PATIENT / 1000
        circuit, why = unavailable(side, store.circuits)
        assert circuit == "*"
        assert why == f"the cluster has a master at 127.0.0.1:{hidden.port} that the client does not know"
        side.do(client.aclose if isinstance(side, Asyncio) else client.close)


def test_a_master_that_is_new_is_found_and_its_circuits_are_listed(place: Place) -> None:
    """The last of them: one more node joins for good."""
    prefix = f"{uuid4()}:"
    with side_of("sync", place.nodes[0].port) as blocking, side_of("asyncio", place.nodes[0].port) as awaiting:
        clients = [(side, place.client(side, library)) for side in (blocking, awaiting) for library in (redis, valkey)]
        place.fill(blocking, clients[0][1], prefix)
        for side, client in clients:
            assert names_of(side.do(store_of(side, prefix, client).circuits)) == MANY
        joined = place.cluster.join()
        for circuit in MANY[:10]:
            place.move(f"{{{prefix}{circuit}}}", joined)
        assert joined.cli("dbsize") == "10"
        for side, client in clients:
            assert names_of(side.do(store_of(side, prefix, client).circuits)) == MANY
            side.do(client.aclose if isinstance(side, Asyncio) else client.close)
