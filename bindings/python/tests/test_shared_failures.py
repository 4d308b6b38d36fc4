"""A store that hangs, is gone, or says no: nobody waits longer than he must, and nothing is hidden."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import Any

import pytest
import redis
import redis.backoff
import redis.retry
import valkey
from support.clock import ManualClock
from support.servers import Server, own_port, start_server, wait_until
from support.stores import PATIENT, Answering, Tapped, heard, name, reason, set_deadline, texts
from switchgear import CircuitOpenError, StoreUnavailableError
from switchgear.redis import DistributedCircuitBreaker, RedisStore, StoreEvent

pytestmark = pytest.mark.thread_unsafe(reason="the tests stop, pause and flush their servers")


class BoomError(Exception):
    """What the dependency raises."""


def fail() -> str:
    raise BoomError("boom")


def ok() -> str:
    return "ok"


def failed(breaker: DistributedCircuitBreaker) -> None:
    with pytest.raises(BoomError):
        breaker.execute(fail)


def strict(circuit: str, store: RedisStore, **policy: Any) -> DistributedCircuitBreaker:
    """A breaker whose callers hear what the store said."""
    return DistributedCircuitBreaker(circuit, store, on_store_failure="fail-closed", **policy)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server() as server:
        yield server


def endless(**options: Any) -> dict[str, Any]:
    """A client that would wait for ever."""
    return {"socket_timeout": None, "socket_connect_timeout": None, **options}


def blocking_pool(**options: Any) -> Any:
    kind: Any = redis.BlockingConnectionPool
    return kind(timeout=None, **options)


CLIENTS: dict[str, Any] = {
    "redis": redis.Redis,
    "valkey": valkey.Valkey,
    "retrying": lambda **options: redis.Redis(retry=redis.retry.Retry(redis.backoff.NoBackoff(), 5), **options),
    "one connection": lambda **options: redis.Redis(single_connection_client=True, **options),
    "blocking pool": lambda **options: redis.Redis.from_pool(blocking_pool(**options)),
    "health checks": lambda **options: redis.Redis(health_check_interval=1, **options),
    "commands": lambda **options: Tapped(redis.Redis(**options)),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_store_that_hangs_keeps_nobody_waiting_longer_than_the_deadline(server: Server, client: str) -> None:
    store = RedisStore(CLIENTS[client](**endless(port=server.port)), timeout_ms=30)
    events = heard(store)
    degraded: list[StoreEvent] = []
    store.on("degraded", degraded.append)
    closed = strict(name(), store)
    opened = DistributedCircuitBreaker(name(), store, on_store_failure="fail-open")
    fresh = RedisStore(CLIENTS[client](**endless(port=server.port)), timeout_ms=30)
    unconnected = strict(name(), fresh)
    # Not before the client is connected: what a machine that is busy needs for that is nobody's deadline.
    patient = RedisStore(store.link.line._client, timeout_ms=PATIENT)
    strict(name(), patient).execute(ok)
    server.pause()
    try:
        for _ in range(2):
            assert reason(lambda: closed.execute(ok)) == "no answer within 30 ms"
            assert opened.execute(ok) == "ok"
            failed(opened)
            assert reason(lambda: unconnected.execute(ok)) == "no answer within 30 ms"
        assert reason(closed.get_snapshot) == "no answer within 30 ms"
        assert reason(closed.reset) == "no answer within 30 ms"
        assert closed.record_failure() == "stale"
    finally:
        server.resume()
    # Three questions, after which no call waits any more; what is said or asked by hand is tried all the same.
    assert len(events) >= 6
    assert set(texts(events)) == {"no answer within 30 ms"}
    assert [(event.circuit, str(event.error)) for event in degraded] == [(None, "no answer within 30 ms")]
    assert strict(closed.name, patient).execute(ok) == "ok"
    assert strict(closed.name, RedisStore(fresh.link.line._client, timeout_ms=PATIENT)).can_execute()


def test_many_threads_meet_a_store_that_hangs_and_find_it_again(server: Server) -> None:
    with redis.Redis(**endless(port=server.port)) as client:
        patient = strict(name(), RedisStore(client, timeout_ms=PATIENT))
        patient.execute(ok)
        breaker = strict(name(), RedisStore(client, timeout_ms=50))
        reasons: list[str | None] = []
        server.pause()
        threads = [
            threading.Thread(target=lambda: reasons.append(reason(lambda: breaker.execute(ok)))) for _ in range(24)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        server.resume()
        assert reasons == ["no answer within 50 ms"] * 24
        assert patient.execute(ok) == "ok"
        # No reply of then is taken for one of now.
        for _ in range(20):
            assert patient.get_state() == "closed"


def test_a_server_that_never_answers_disables_no_store_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("switchgear.redis._carry._STUCK_SECONDS", 0.05)
    with ExitStack() as stack:
        port = own_port()
        hole = stack.enter_context(socket.create_server(("127.0.0.1", port)))
        client = stack.enter_context(redis.Redis(**endless(port=port)))
        breaker = strict(name(), RedisStore(client, timeout_ms=20))
        hole.setblocking(False)
        taken = 0
        # Until all its threads wait for a greeting, and go on to: these connections stay open.
        while taken < 8:
            # Unlike an admission it is asked whatever has become of those before.
            assert reason(breaker.get_state) == "no answer within 20 ms"
            with suppress(BlockingIOError):
                while True:
                    stack.callback(hole.accept()[0].close)
                    taken += 1
        hole.close()
        stack.enter_context(start_server(port=port))
        while True:
            try:
                assert breaker.execute(ok) == "ok"
            except StoreUnavailableError:
                continue
            break


def test_a_store_that_hangs_while_settling_hides_neither_value_nor_error(server: Server) -> None:
    with redis.Redis(**endless(port=server.port)) as client:
        store = RedisStore(client, timeout_ms=PATIENT)
        events = heard(store)
        breaker = strict(name(), store, trip_on="consecutive")
        permit = breaker.acquire()

        def hang(error: Exception | None = None) -> str:
            server.pause()
            set_deadline(store, 100)
            if error is not None:
                raise error
            return "ok"

        def resume() -> None:
            server.resume()
            set_deadline(store, PATIENT)

        assert breaker.execute(hang) == "ok"
        resume()
        boom = BoomError()
        with pytest.raises(BoomError) as caught:
            breaker.execute(lambda: hang(boom))
        resume()
        assert caught.value is boom
        with breaker:
            hang()
        resume()
        assert permit.record_failure() == "applied"
        # The failure's; a success is told, too, but nobody waits for it, and what is said of it may come later.
        assert "no answer within 100 ms" in texts(events)
        assert set(texts(events)) <= {"no answer within 100 ms", f"no answer within {PATIENT} ms"}


def test_scenario_52_a_killed_server_is_unavailable_and_a_call_goes_on_where_one_comes_back() -> None:
    server = start_server()
    with redis.Redis(port=server.port, retry=redis.retry.Retry(redis.backoff.NoBackoff(), 0)) as client:
        breaker = strict(name(), RedisStore(client, timeout_ms=PATIENT), failure_threshold=2)
        failed(breaker)
        permit = breaker.acquire()
        server.kill()
        assert "refused" in (reason(lambda: breaker.execute(ok)) or "").lower()
        with start_server(port=server.port):
            # The state went with the server; what was admitted before counts in what is there now, once.
            assert permit.record_failure() == "applied"
            assert breaker.get_snapshot().failures_in_window == 1
            assert breaker.execute(ok) == "ok"


def test_scenario_47_a_flush_is_no_exception_but_a_fresh_closed_circuit(server: Server) -> None:
    clock = ManualClock()
    with redis.Redis(port=server.port) as client:
        store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
        breaker = strict(name(), store, failure_threshold=1, open_duration_ms=1000, open_cache_ms=0)
        breaker.trip()
        clock.now += 1000
        probe = breaker.acquire()
        client.flushall()
        assert probe.record_failure() == "stale"
        snapshot = breaker.get_snapshot()
        assert (snapshot.state, snapshot.epoch, snapshot.opened_at) == ("closed", 0, None)
        failed(breaker)
        assert breaker.get_state() == "open"
        client.flushall()
        assert breaker.execute(ok) == "ok"


def test_scenario_52_with_a_script_flush_before_each_command_an_outcome_counts_once_for_one_more_round_trip(
    server: Server,
) -> None:
    clock = ManualClock()
    with redis.Redis(port=server.port) as client:

        def forgetting(args: list[str], through: Any) -> Any:
            client.script_flush()
            return through(args)

        tapped = Tapped(client, forgetting)
        store = RedisStore(tapped, clock=clock, timeout_ms=PATIENT)
        events = heard(store)
        breaker = strict(name(), store, failure_threshold=3, open_duration_ms=1000)
        assert tapped.took(lambda: breaker.execute(ok)) == ["EVALSHA", "EVAL"]
        assert tapped.took(lambda: failed(breaker)) == ["EVALSHA", "EVAL"] * 2
        assert breaker.get_snapshot().failures_in_window == 1
        failed(breaker)
        failed(breaker)
        assert breaker.get_snapshot().trips == 1
        clock.now += 1000
        probe = breaker.acquire()
        assert not breaker.can_execute()
        assert probe.record_success() == "applied"
        assert breaker.get_state() == "closed"
        assert events == []


def test_scenario_52_so_it_does_through_the_connections_of_a_pool(server: Server) -> None:
    with redis.Redis(port=server.port, decode_responses=True) as client:
        breaker = strict(name(), RedisStore(client, timeout_ms=PATIENT), failure_threshold=2)
        client.script_flush()
        failed(breaker)
        client.script_flush()
        assert breaker.get_snapshot().failures_in_window == 1
        client.script_flush()
        failed(breaker)
        assert breaker.get_state() == "open"


def test_connections_that_the_server_closed_are_made_again(server: Server) -> None:
    with redis.Redis(port=server.port) as client:
        store = RedisStore(client, timeout_ms=PATIENT)
        events = heard(store)
        breaker = strict(name(), store)
        for _ in range(5):
            assert breaker.execute(ok) == "ok"
            server.cli("client", "kill", "type", "normal")
        assert events == []


@pytest.mark.parametrize("library", [redis, valkey])
def test_a_wrong_password_is_told_and_appears_nowhere(library: Any) -> None:
    with start_server(password="right") as server:
        kind = getattr(library, "Redis", None) or library.Valkey
        with kind.from_url(f"redis://default:s3cret@127.0.0.1:{server.port}") as client:
            store = RedisStore(client, timeout_ms=PATIENT)
            events = heard(store)
            breaker = strict(name(), store)
            with pytest.raises(StoreUnavailableError) as caught:
                breaker.execute(ok)
            assert "invalid username-password" in str(caught.value)
            chain = [caught.value, caught.value.__cause__, caught.value.__context__, *events]
            assert "s3cret" not in repr([(repr(e), str(e), vars(e) if hasattr(e, "__dict__") else 0) for e in chain])


def test_the_text_of_a_client_that_names_a_url_loses_its_user_part() -> None:
    text = "connecting to rediss://app:p@ss/w0rd@cache.internal:6380 failed, tried redis://:x@other:1"
    breaker = strict("b", RedisStore(Answering(OSError(text)), timeout_ms=PATIENT))
    assert reason(lambda: breaker.execute(ok)) == (
        "connecting to rediss://***@cache.internal:6380 failed, tried redis://***@other:1"
    )


def test_rights_that_are_missing_are_told(server: Server) -> None:
    server.cli("acl", "setuser", "reader", "on", ">right", "~*", "+hmget", "+info", "+hello", "+client")
    with redis.Redis(port=server.port, username="reader", password="right") as client:
        breaker = strict(name(), RedisStore(client, timeout_ms=PATIENT))
        assert breaker.execute(ok) == "ok"
        assert (reason(breaker.get_state) or "").startswith("NOPERM ")
        failed(breaker)


def test_a_key_of_another_type_spoils_its_own_circuit_only(server: Server) -> None:
    with redis.Redis(port=server.port) as client:
        store = RedisStore(client, timeout_ms=PATIENT)
        taken = strict(name(), store)
        client.set(f"{{cb:{taken.name}}}", "text")
        assert (reason(lambda: taken.execute(ok)) or "").startswith("WRONGTYPE ")
        assert (reason(taken.get_snapshot) or "").startswith("WRONGTYPE ")
        assert taken.record_failure() == "stale"
        failed(strict(name(), store))


def test_a_read_only_replica_admits_while_closed_takes_no_outcome_and_hides_none(server: Server) -> None:
    replica = start_server(args=["--replicaof", f"127.0.0.1 {server.port}"])
    with replica, redis.Redis(port=replica.port) as client:
        # While it takes over what its master has it says another no.
        wait_until(lambda: "master_link_status:up" in replica.cli("info", "replication"))
        store = RedisStore(client, timeout_ms=PATIENT)
        events = heard(store)
        breaker = strict(name(), store, failure_threshold=1)
        assert breaker.execute(ok) == "ok"
        failed(breaker)
        assert (reason(breaker.trip) or "").startswith("READONLY ")
        assert [text.split()[0] for text in texts(events)] == ["READONLY", "READONLY"]


@pytest.mark.parametrize(
    "reply",
    ["OK", None, b"", [], [1], [None, None, "x", None], {}, [1, 0, 0, 0, 0, 0, 0, 0, 0, 0.5], [""] * 10, [{}] * 5],
    ids=str,
)
def test_a_reply_that_none_of_our_commands_gets_is_no_answer(reply: object) -> None:
    breaker = strict("odd", RedisStore(Answering(reply), timeout_ms=PATIENT))
    assert reason(lambda: breaker.execute(ok)) == "the reply is none that a command of ours gets"
    assert reason(breaker.get_snapshot) == "the reply is none that a command of ours gets"
    assert breaker.record_failure() == "stale"


class SpeechlessError(Exception):
    """Says nothing."""


class HostileError(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (TypeError("not today"), "not today"),
        (SpeechlessError(), "SpeechlessError"),
        (HostileError(), "an error that cannot be shown"),
        (redis.exceptions.NoPermissionError("no"), "NOPERM no"),
    ],
    ids=["words", "speechless", "hostile", "code"],
)
def test_a_client_that_raises_is_survived(error: Exception, text: str) -> None:
    store = RedisStore(Answering(error), timeout_ms=PATIENT)
    events = heard(store)
    breaker = strict("c", store)
    assert reason(lambda: breaker.execute(ok)) == text
    assert texts(events) == [text]


def test_a_pool_without_a_free_connection_is_waited_for_no_longer_than_the_deadline(server: Server) -> None:
    pool = blocking_pool(max_connections=1, port=server.port)
    with redis.Redis.from_pool(pool) as client:
        breaker = strict(name(), RedisStore(client, timeout_ms=PATIENT))
        hasty = strict(breaker.name, RedisStore(client, timeout_ms=30))
        breaker.execute(ok)
        taken = pool.get_connection()
        assert reason(lambda: hasty.execute(ok)) == "no answer within 30 ms"
        pool.release(taken)
        # Whoever waited for it in his place gave it back.
        assert breaker.execute(ok) == "ok"


def in_pieces(taken: socket.socket, stop: threading.Event) -> None:
    """Begins a reply, and goes on only when the test is over."""
    taken.sendall(b"*5\r\n$4\r\nop")
    stop.wait()


def dripping(taken: socket.socket, stop: threading.Event) -> None:
    """Each piece in time, all of them together never: whoever waits for the last one hangs."""
    with suppress(OSError):
        taken.sendall(b"*5\r\n$1000000\r\n")
        while not stop.wait(0.05):
            taken.sendall(b"x")


@pytest.mark.parametrize("answer", [in_pieces, dripping])
def test_a_reply_that_does_not_end_is_waited_for_no_longer_than_the_deadline(
    answer: Callable[[socket.socket, threading.Event], None],
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, ExitStack() as stack:
        late = threading.Event()
        stop = threading.Event()
        stack.callback(stop.set)

        def serve(taken: socket.socket) -> None:
            with taken, suppress(OSError):
                while said := taken.recv(65536):
                    # What a client says first, whatever it is.
                    if b"HMGET" not in said:
                        taken.sendall(b"+OK\r\n" * said.count(b"*"))
                    elif not late.is_set():
                        taken.sendall(b"*5\r\n" + b"$-1\r\n" * 5)
                    else:
                        answer(taken, stop)
                        return

        def accept() -> None:
            with suppress(OSError):
                while True:
                    taken, _ = listener.accept()
                    threading.Thread(target=serve, args=(taken,), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        client = stack.enter_context(redis.Redis(**endless(port=listener.getsockname()[1], protocol=2)))
        store = RedisStore(client, timeout_ms=PATIENT)
        breaker = strict(name(), store)
        # It has a connection from here on.
        assert breaker.can_execute()
        late.set()
        set_deadline(store, 120)
        assert reason(lambda: breaker.execute(ok)) == "no answer within 120 ms"


def test_after_a_refusal_nothing_is_left_that_holds_the_process(server: Server) -> None:
    with redis.Redis(port=server.port) as client:
        breaker = strict(name(), RedisStore(client, timeout_ms=PATIENT))
        breaker.force_open()
        with pytest.raises(CircuitOpenError):
            breaker.execute(ok)
    assert all(thread.daemon or thread is threading.main_thread() for thread in threading.enumerate())
