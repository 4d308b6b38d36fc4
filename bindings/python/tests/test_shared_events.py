"""`events=True`: what other instances bring about is heard at once, and nothing depends on it."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import redis
import redis.asyncio
import switchgear.redis
import switchgear.redis.asyncio
from support.child import run_script
from support.clock import ManualClock
from support.servers import Server, start_cluster, start_server, wait_until
from support.sides import side_of
from support.stores import PATIENT, AsyncTapped, Tapped, name
from switchgear import ConfigError, StateChange
from switchgear.redis._audience import Audience

pytestmark = pytest.mark.thread_unsafe(reason="the tests share one event loop, and each one prefix")

Told = tuple[str, str, "str | None"]


class Place:
    """A server, a prefix of the test's own, and who looks on."""

    def __init__(self, port: int) -> None:
        self.admin: Any = redis.Redis(port=port)
        self.prefix = f"{name()}:"
        self.circuit = "GET /a b"

    def ears(self, side: Any, **options: Any) -> Any:
        """A store that hears."""
        return side.store(prefix=self.prefix, **{"instance": "ears", "events": True, "timeout_ms": PATIENT, **options})

    def mouth(self, **options: Any) -> Any:
        """The same circuit in another instance."""
        client = options.pop("client", self.admin)
        store = switchgear.redis.RedisStore(client, prefix=self.prefix, instance="mouth", timeout_ms=PATIENT, **options)
        return switchgear.redis.DistributedCircuitBreaker(self.circuit, store, failure_threshold=1)

    def listeners(self) -> int:
        """How many listen."""
        (_, count), *_ = self.admin.pubsub_numsub(f"{self.prefix}events")
        return int(count)

    def publish(self, message: bytes | str) -> None:
        self.admin.publish(f"{self.prefix}events", message)


@pytest.fixture
def place(redis_server: Server) -> Iterator[Place]:
    """On the server that tests leave alone."""
    place = Place(redis_server.port)
    yield place
    place.admin.close()


@contextmanager
def alone(kind: str, **options: Any) -> Iterator[tuple[Server, Any, Place]]:
    """On a server of its own."""
    with start_server(**options) as server, side_of(kind, server.port) as side:
        place = Place(server.port)
        yield server, side, place
        place.admin.close()


def changes_of(breaker: Any) -> list[StateChange]:
    changes: list[StateChange] = []
    breaker.on("state_change", changes.append)
    return changes


async def until(is_so: Callable[[], object]) -> None:
    """Waits until it is so, in a coroutine."""
    for _ in range(10_000):
        if is_so():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never is so")


def told(changes: list[StateChange]) -> list[Told]:
    return [(change.to_state, change.source, change.instance) for change in changes]


def hears(side: Any, place: Place, changes: list[StateChange]) -> None:
    """Waits until it hears what another instance does from now on. What is said while nobody listens is lost."""
    other, before = place.mouth(), len(changes)

    def is_heard() -> bool:
        other.trip()
        other.reset()
        return len(changes) > before

    side.until(is_heard)


# ---- on one server


def test_what_another_instance_does_is_told_and_corrects_what_is_known(side: Any, place: Place) -> None:
    store = place.ears(side)
    breaker = side.breaker(place.circuit, store, closed_cache_ms=60_000)
    changes = changes_of(breaker)
    assert side.do(breaker.can_execute)
    side.until(lambda: place.listeners() == 1)
    other = place.mouth()
    other.record_failure()
    side.until(lambda: changes)
    assert changes == [
        StateChange(
            circuit=place.circuit,
            from_state="closed",
            to_state="open",
            at=changes[0].at,
            failures=1,
            open_ms=30_000,
            reason="threshold",
            source="remote",
            instance="mouth",
        )
    ]
    # Without having been asked: a closed one would have been admitted for a minute.
    assert not side.do(breaker.can_execute)
    other.reset()
    side.until(lambda: len(changes) == 2)
    assert side.do(breaker.can_execute)
    side.do(store.close)


def test_all_breakers_of_a_circuit_are_told_and_none_of_another(side: Any, place: Place) -> None:
    store = place.ears(side)
    breakers = [side.breaker(place.circuit, store) for _ in range(2)]
    stranger = changes_of(side.breaker("another", store))
    changes = [changes_of(breaker) for breaker in breakers]
    assert side.do(breakers[0].get_state) == "closed"
    side.until(lambda: place.listeners() == 1)
    side.do(breakers[0].trip)
    side.until(lambda: all(changes))
    assert [told(heard) for heard in changes] == [[("open", "local", "ears")], [("open", "remote", "ears")]]
    assert stranger == []
    side.do(store.close)


def test_a_group_hears_of_its_members(side: Any, place: Place) -> None:
    store = place.ears(side)
    module: Any = switchgear.redis if type(side).__name__ == "Sync" else switchgear.redis.asyncio
    group = module.DistributedCircuitBreakerGroup("hooks", store)
    changes = changes_of(group)
    place.circuit = "hooks:a"
    assert side.do(group.for_key("a").get_state) == "closed"
    side.until(lambda: place.listeners() == 1)
    place.mouth().trip()
    side.until(lambda: changes)
    assert told(changes) == [("open", "remote", "mouth")]
    side.do(store.close)


def test_ones_own_changes_are_told_once_and_nothing_is_told_after_close(side: Any, place: Place) -> None:
    store = place.ears(side)
    breaker = side.breaker(place.circuit, store, failure_threshold=1)
    changes = changes_of(breaker)
    assert side.do(breaker.get_state) == "closed"
    side.until(lambda: place.listeners() == 1)
    side.do(breaker.record_failure)
    other = place.mouth()
    other.reset()
    side.until(lambda: len(changes) == 2)
    assert told(changes) == [("open", "local", "ears"), ("closed", "remote", "mouth")]
    side.do(store.close)
    side.until(lambda: place.listeners() == 0)
    other.trip()
    # The breaker and the client go on, and nobody listens again.
    assert side.do(breaker.get_state) == "open"
    assert side.do(side.client.ping)
    assert place.listeners() == 0
    assert len(changes) == 2
    side.do(store.close)


@pytest.mark.parametrize(
    "noise",
    [b"", b"hello", b"\xff\xfe\x00", "2 0 1 0 {now} {now} 5 1 00000000000000aa {circuit}\nx", "1 0 1 0 9 9 5 1 aa\nx"],
)
def test_a_message_that_nobody_of_us_has_sent_changes_nothing(side: Any, place: Place, noise: bytes | str) -> None:
    clock = ManualClock()
    store = place.ears(side, clock=clock)
    breaker = side.breaker(place.circuit, store, closed_cache_ms=60_000)
    changes = changes_of(breaker)
    assert side.do(breaker.can_execute)
    side.until(lambda: place.listeners() == 1)
    if isinstance(noise, str):
        noise = noise.format(now=clock.now, circuit=place.circuit)
    place.publish(noise)
    # What comes behind it is heard, so it was heard, too.
    place.publish(f"1 0 1 0 {clock.now} {clock.now} 5 30000 00000000000000aa {place.circuit}\nthem")
    side.until(lambda: changes)
    assert told(changes) == [("open", "remote", "them")]
    side.do(store.close)


def test_a_message_that_is_late_or_comes_twice_changes_nothing(side: Any, place: Place) -> None:
    clock = ManualClock()
    store = place.ears(side, clock=clock)
    breaker = side.breaker(place.circuit, store, closed_cache_ms=60_000)
    changes = changes_of(breaker)
    assert side.do(breaker.can_execute)
    side.until(lambda: place.listeners() == 1)
    tripped = f"1 0 1 0 {clock.now} {clock.now} 5 30000 00000000000000aa {place.circuit}\nthem"
    late = f"1 2 0 3 {clock.now - 1} {clock.now - 1} 0 -1 00000000000000aa {place.circuit}\nthem"
    half_open = f"1 1 2 1 {clock.now + 9} {clock.now + 9} 0 -1 00000000000000aa {place.circuit}\nthem"
    for message in (tripped, tripped, late, half_open, tripped, late, half_open):
        place.publish(message)
    side.until(lambda: len(changes) >= 2)
    closed = f"1 2 0 3 {clock.now + 10} {clock.now + 10} 0 -1 00000000000000aa {place.circuit}\nthem"
    place.publish(closed)
    side.until(lambda: len(changes) >= 3)
    assert [change.to_state for change in changes] == ["open", "half-open", "closed"]
    side.do(store.close)


def test_what_is_never_announced_is_noticed_as_late_as_without_events(kind: str) -> None:
    with alone(kind) as (server, side, place):
        server.cli("acl", "setuser", "mute", "on", "nopass", "~*", "&*", "+@all", "-publish")
        clock = ManualClock()
        store = place.ears(side, clock=clock)
        breaker = side.breaker(place.circuit, store, closed_cache_ms=500)
        assert side.do(breaker.can_execute)
        side.until(lambda: place.listeners() == 1)
        mute = redis.Redis(port=server.port, username="mute", password="any")
        place.mouth(client=mute, clock=clock).trip()
        clock.now += 499
        assert side.do(breaker.can_execute)
        clock.now += 1
        assert not side.do(breaker.can_execute)
        side.do(store.close)
        mute.close()


def test_it_begins_with_the_store_as_a_context_manager(kind: str, place: Place, redis_server: Server) -> None:
    if kind == "sync":
        with side_of(kind, redis_server.port) as side, place.ears(side):
            side.until(lambda: place.listeners() == 1)
        wait_until(lambda: place.listeners() == 0)
        return

    async def main() -> None:
        async with redis.asyncio.Redis(port=redis_server.port) as client:
            store = switchgear.redis.asyncio.RedisStore(client, prefix=place.prefix, events=True)
            async with store:
                await until(lambda: place.listeners() == 1)
            # The client goes on.
            await until(lambda: place.listeners() == 0)

    asyncio.run(main())


def test_nothing_is_listened_to_before_a_circuit_is_asked_nor_without_events(side: Any, place: Place) -> None:
    store = place.ears(side)
    silent = side.breaker(place.circuit, place.ears(side, events=False))
    breaker = side.breaker(place.circuit, store)
    breaker.on("state_change", lambda change: None)
    assert side.do(silent.get_state) == "closed"
    assert place.listeners() == 0
    assert side.do(breaker.get_state) == "closed"
    side.until(lambda: place.listeners() == 1)
    side.do(store.close)


@pytest.mark.parametrize("client", [Tapped(None), AsyncTapped(None)])
def test_a_client_that_cannot_listen_says_so(client: Any) -> None:
    module: Any = switchgear.redis.asyncio if isinstance(client, AsyncTapped) else switchgear.redis
    with pytest.raises(ConfigError) as caught:
        module.RedisStore(client, events=True)
    assert (caught.value.field, "Tapped" in str(caught.value)) == ("client", True)
    module.RedisStore(client, events=False)
    module.RedisStore(client, events=None)


@pytest.mark.parametrize("value", [1, "yes", [True]])
def test_events_is_yes_or_no(side: Any, value: object) -> None:
    with pytest.raises(ConfigError, match="`events` must be True or False, got"):
        side.store(events=value)


# ---- what may go wrong


def test_it_listens_again_after_its_connection_was_cut(kind: str) -> None:
    with alone(kind) as (_, side, place):
        store = place.ears(side)
        breaker = side.breaker(place.circuit, store, closed_cache_ms=60_000)
        changes = changes_of(breaker)
        assert side.do(breaker.can_execute)
        side.until(lambda: place.listeners() == 1)
        for _ in range(3):
            place.admin.client_kill_filter(_type="pubsub")
            hears(side, place, changes)
        assert {change.source for change in changes} == {"remote"}
        side.do(store.close)
        side.until(lambda: place.listeners() == 0)


def test_it_listens_again_after_the_server_was_gone(kind: str) -> None:
    with alone(kind) as (server, side, place):
        store = place.ears(side)
        errors: list[Any] = []
        store.on("store_error", errors.append)
        breaker = side.breaker(place.circuit, store)
        changes = changes_of(breaker)
        assert side.do(breaker.get_state) == "closed"
        side.until(lambda: place.listeners() == 1)
        server.kill()
        side.until(lambda: len([error for error in errors if "events are not heard" in str(error.error)]) >= 2)
        assert {error.circuit for error in errors if "events" in str(error.error)} == {None}
        with start_server(port=server.port):
            place.admin.close()
            place.admin = redis.Redis(port=server.port)
            hears(side, place, changes)
            side.do(store.close)


def test_the_store_is_well_where_only_the_events_are_not(kind: str) -> None:
    with alone(kind) as (server, side, place):
        server.cli("acl", "setuser", "default", "-subscribe")
        store = place.ears(side)
        errors: list[Any] = []
        health: list[Any] = []
        store.on("store_error", errors.append)
        store.on("degraded", health.append)
        breaker = side.breaker(place.circuit, store)
        changes = changes_of(breaker)
        assert side.run(breaker, lambda: "ok") == "ok"
        side.until(lambda: len(errors) >= 4)
        # Nobody's call has failed, and the store is asked as ever.
        assert all("events are not heard: NOPERM" in str(error.error) for error in errors)
        place.mouth().trip()
        assert side.do(breaker.get_state) == "open"
        assert (changes, health) == ([], [])
        server.cli("acl", "setuser", "default", "+subscribe")
        hears(side, place, changes)
        side.do(store.close)


def test_a_connection_that_is_silent_is_asked_whether_it_is_there(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchgear.redis._blocking_hearing.SILENCE_SECONDS", 0.1)
    monkeypatch.setattr("switchgear.redis._awaiting_hearing.SILENCE_SECONDS", 0.1)
    with alone(kind) as (server, side, place):
        store = place.ears(side)
        errors: list[Any] = []
        breaker = side.breaker(place.circuit, store)
        changes = changes_of(breaker)
        assert side.do(breaker.get_state) == "closed"
        # It answers, so one connection goes on for longer than it is silent.
        hears(side, place, changes)
        store.on("store_error", errors.append)
        said = ""
        # More than once: on a machine that is held up it may be about to connect anew, and meet the silence there.
        for _ in range(9):
            errors.clear()
            server.pause()
            side.until(lambda: errors)
            said = str(errors[0].error)
            server.resume()
            hears(side, place, changes)
            if "events are not heard: no answer within" in said:
                break
        assert "events are not heard: no answer within" in said
        side.do(store.close)


def test_a_listener_may_close_the_store(side: Any, place: Place) -> None:
    store = place.ears(side)
    breaker = side.breaker(place.circuit, store)
    closed: list[Any] = []

    def close(change: StateChange) -> None:
        # Of asyncio it is to be awaited, by a task that the listener makes.
        closed.append(store.close() if type(side).__name__ == "Sync" else side.loop.create_task(store.close()))

    breaker.on("state_change", close)
    assert side.do(breaker.get_state) == "closed"
    side.until(lambda: place.listeners() == 1)
    place.mouth().trip()
    side.until(lambda: closed and place.listeners() == 0)


def test_a_store_that_is_forgotten_listens_no_more(side: Any, place: Place) -> None:
    store = place.ears(side)
    breaker = side.breaker(place.circuit, store)
    assert side.do(breaker.get_state) == "closed"
    side.until(lambda: place.listeners() == 1)
    del store, breaker

    def is_gone() -> bool:
        gc.collect()
        return place.listeners() == 0

    side.until(is_gone)


def test_a_thread_that_a_listener_has_ended_begins_again_with_the_next_call(
    place: Place, redis_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: ended.append(args.exc_type))
    with side_of("sync", redis_server.port) as side:
        store = place.ears(side)
        breaker = side.breaker(place.circuit, store)
        changes = changes_of(breaker)
        assert breaker.get_state() == "closed"
        side.until(lambda: place.listeners() == 1)

        def end(change: StateChange) -> None:
            raise SystemExit

        off = breaker.on("state_change", end)
        place.mouth().trip()
        side.until(lambda: ended and place.listeners() == 0)
        assert ended == [SystemExit]
        off()
        assert breaker.get_state() == "open"
        hears(side, place, changes)
        store.close()


# ---- event loops, processes


def test_a_store_of_asyncio_listens_in_the_event_loop_that_asks(place: Place, redis_server: Server) -> None:
    # They outlive the loop, as those that a module makes do.
    client = redis.asyncio.Redis(port=redis_server.port)
    store = switchgear.redis.asyncio.RedisStore(client, prefix=place.prefix, events=True, timeout_ms=PATIENT)

    async def main() -> list[Told]:
        breaker = switchgear.redis.asyncio.DistributedCircuitBreaker(place.circuit, store)
        changes = changes_of(breaker)
        assert await breaker.get_state() == "closed"
        await until(lambda: place.listeners() == 1)
        other = place.mouth()
        other.trip()
        await until(lambda: changes)
        other.reset()
        await until(lambda: len(changes) == 2)
        await client.aclose()
        return told(changes)

    for _ in range(2):
        assert asyncio.run(main()) == [("open", "remote", "mouth"), ("closed", "remote", "mouth")]
        wait_until(lambda: place.listeners() == 0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_child_that_was_forked_listens_for_itself(place: Place, redis_server: Server) -> None:
    with side_of("sync", redis_server.port) as side:
        store = place.ears(side)
        breaker = side.breaker(place.circuit, store)
        changes = changes_of(breaker)
        assert breaker.get_state() == "closed"
        side.until(lambda: place.listeners() == 1)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                breaker.get_state()
                wait_until(lambda: bool(changes))
                store.close()
                code = 0 if told(changes)[0] == ("open", "remote", "mouth") else 2
            finally:
                os._exit(code)
        side.until(lambda: place.listeners() == 2)
        place.mouth().trip()
        side.until(lambda: changes)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        # What the child has closed was its own.
        side.until(lambda: place.listeners() == 1)
        hears(side, place, changes)
        store.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_a_child_forgets_or_closes_is_not_its_parents(place: Place, redis_server: Server) -> None:
    with side_of("sync", redis_server.port) as side:
        stores = [place.ears(side), place.ears(side)]
        errors: list[Any] = []
        breakers = [side.breaker(place.circuit, store) for store in stores]
        for store, breaker in zip(stores, breakers, strict=True):
            store.on("store_error", errors.append)
            assert breaker.get_state() == "closed"
        side.until(lambda: place.listeners() == 2)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                stores.pop().close()
                del store, breaker, breakers, stores
                gc.collect()
                code = 0
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        changes = [changes_of(breaker) for breaker in breakers]
        place.mouth().trip()
        side.until(lambda: all(changes))
        assert errors == []
        for store in stores:
            store.close()


@pytest.mark.parametrize("flags", [(), ("-X", "dev")], ids=["as ever", "dev"])
def test_scenario_41_a_process_ends_well_while_it_listens(
    kind: str, redis_server: Server, flags: tuple[str, ...]
) -> None:
    script = f"""
        import asyncio, redis, redis.asyncio, threading, time
        from switchgear.redis import {"DistributedCircuitBreaker, RedisStore"}
        from switchgear.redis import asyncio as shared

        heard = threading.Event()

        def sync():
            store = RedisStore(client, events=True, prefix={name()!r}, timeout_ms=20_000)
            store.on("store_error", lambda event: print(event.error))
            breaker = DistributedCircuitBreaker("c", store)
            breaker.on("state_change", lambda change: heard.set())
            other = DistributedCircuitBreaker("c", store)
            while not heard.wait(0.01):
                other.reset()
                other.trip()
            return breaker

        async def awaiting():
            # Under `-X dev` it says which step has taken long: on a busy machine any.
            asyncio.get_running_loop().slow_callback_duration = 60
            async with redis.asyncio.Redis(port={redis_server.port}) as client:
                store = shared.RedisStore(client, events=True, prefix={name()!r}, timeout_ms=20_000)
                breaker = shared.DistributedCircuitBreaker("c", store)
                breaker.on("state_change", lambda change: heard.set())
                other = shared.DistributedCircuitBreaker("c", store)
                while not heard.is_set():
                    await other.reset()
                    await other.trip()
                    await asyncio.sleep(0.01)

        if {kind == "sync"}:
            with redis.Redis(port={redis_server.port}) as client:
                breaker = sync()
        else:
            asyncio.run(awaiting())
        print("done")
    """
    ran = run_script(script, flags=flags)
    assert (ran.code, ran.stdout, ran.stderr) == (0, "done\n", "")


# ---- on a cluster; each kind of client is in test_redis_clients.py


@pytest.mark.once(reason="a cluster takes its time, and the interpreter makes no difference to it")
def test_another_node_is_listened_to_when_one_is_gone(kind: str) -> None:
    with start_cluster() as cluster:
        places = [Place(node.port) for node in cluster.nodes]
        for place in places:
            place.prefix = "cb:"
        # Nobody asks for a slot of the one that will be gone.
        for node in cluster.nodes:
            node.cli("config", "set", "cluster-require-full-coverage", "no")
        with side_of(kind, cluster.nodes[0].port) as side:
            module: Any = redis if kind == "sync" else redis.asyncio
            client = module.RedisCluster(host="127.0.0.1", port=cluster.nodes[0].port, require_full_coverage=False)
            store = side.store(client, events=True, timeout_ms=PATIENT)

            def listening() -> list[int]:
                return [n for n, at in enumerate(places) if cluster.nodes[n] not in gone and at.listeners()]

            gone: list[Server] = []
            circuits = {owner_of(cluster.nodes, f"{{cb:{n}}}"): str(n) for n in range(20)}
            breakers = [side.breaker(circuit, store) for circuit in circuits.values()]
            changes = [changes_of(breaker) for breaker in breakers]
            assert [side.do(breaker.get_state) for breaker in breakers] == ["closed"] * 3
            side.until(listening)
            (at,) = listening()
            gone.append(cluster.nodes[at])
            cluster.nodes[at].kill()
            side.until(listening)
            left = next(node for node in cluster.nodes if node not in gone)
            other = redis.RedisCluster(host="127.0.0.1", port=left.port, require_full_coverage=False)
            speaking = switchgear.redis.DistributedCircuitBreaker(
                circuits[left], switchgear.redis.RedisStore(other, instance="mouth", timeout_ms=PATIENT)
            )

            def is_heard() -> bool:
                speaking.reset()
                speaking.trip()
                return any(changes)

            side.until(is_heard)
            assert {change.circuit for heard in changes for change in heard} == {circuits[left]}
            side.do(store.close)
            side.do(client.close if kind == "sync" else client.aclose)
            other.close()
        for place in places:
            place.admin.close()


def owner_of(nodes: Any, key: str) -> Server:
    owner: Server = next(node for node in nodes if "MOVED" not in node.cli("exists", key))
    return owner


# ---- who is told


class Circuit:
    def __init__(self, name: str) -> None:
        self.name = name
        self.count = 0

    def heard(self, announcement: Any) -> None:
        self.count += 1


class Announced:
    """As the native class, of which there is none but what is parsed."""

    def __init__(self, circuit: str) -> None:
        self.circuit = circuit


def test_whoever_comes_while_others_go_is_told() -> None:
    audience = Audience()
    kept: list[Circuit] = []
    go = threading.Barrier(4)

    def come_and_go() -> None:
        go.wait()
        for _ in range(500):
            audience.add(Circuit("c"))
        circuit = Circuit("c")
        audience.add(circuit)
        kept.append(circuit)
        for _ in range(500):
            audience.add(Circuit("c"))

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    announced: Any = Announced("c")
    audience.tell(announced)
    assert [circuit.count for circuit in kept] == [1] * 4
    del kept[:]
    gc.collect()
    # Nothing is left of those that went.
    assert audience._by_name == {}
