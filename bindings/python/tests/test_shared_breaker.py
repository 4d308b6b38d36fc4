"""A shared breaker on a real Redis: what it sends, what it keeps there, what it tells."""

from __future__ import annotations

import functools
import gc
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
import redis.asyncio
import switchgear.redis.asyncio
import valkey
from support.child import run_script
from support.clock import ManualClock
from support.servers import Server, wait_until
from support.stores import PATIENT, Answering, AsyncTapped, Tapped, heard, name, reason
from switchgear import (
    CircuitOpenError,
    ConfigError,
    InvalidNameError,
    InvalidTimeError,
    StateChange,
    StoreError,
    StoreUnavailableError,
)
from switchgear.redis import DistributedCircuitBreaker, DistributedCircuitBreakerGroup, RedisStore


class BoomError(Exception):
    """What the dependency raises."""


def fail() -> str:
    raise BoomError("ECONNREFUSED")


def ok() -> str:
    return "ok"


@pytest.fixture
def client(redis_server: Server) -> Iterator[redis.Redis]:
    with redis.Redis(port=redis_server.port, decode_responses=True) as client:
        yield client


def failed(breaker: DistributedCircuitBreaker) -> None:
    with pytest.raises(BoomError):
        breaker.execute(fail)


def refused(breaker: DistributedCircuitBreaker) -> CircuitOpenError:
    with pytest.raises(CircuitOpenError) as caught:
        breaker.execute(ok)
    return caught.value


def test_nothing_is_sent_before_a_circuit_is_asked_and_then_no_more_than_is_promised(client: redis.Redis) -> None:
    clock = ManualClock()
    tapped = Tapped(client)
    with RedisStore(tapped, clock=clock, timeout_ms=PATIENT) as store:
        breaker = DistributedCircuitBreaker(name(), store, failure_threshold=2, open_duration_ms=1000)
        DistributedCircuitBreakerGroup(name(), store).for_key("k")
        assert tapped.sent == []
        breaker.get_state()
        failed(breaker)
        breaker.reset()
        # Scripts are known from here on.
        assert len(tapped.took(lambda: breaker.execute(ok))) == 1
        assert len(tapped.took(lambda: failed(breaker))) == 2
        assert len(tapped.took(lambda: failed(breaker))) == 2
        # What its own failure has told it need not be asked.
        assert tapped.took(lambda: refused(breaker)) == []
        clock.now += 999
        assert tapped.took(lambda: refused(breaker)) == []
        clock.now -= 999
        clock.now += 1000
        breaker.acquire().record_success()
        breaker.trip()
        clock.now += 1000
        assert tapped.took(lambda: breaker.execute(ok)) == ["EVALSHA"] * 3
        assert breaker.get_state() == "closed"


def test_a_plain_client_of_one_server_is_asked_by_a_plain_read(client: redis.Redis) -> None:
    breaker = DistributedCircuitBreaker(name(), RedisStore(client, timeout_ms=PATIENT))
    breaker.execute(ok)

    def reads() -> int:
        count: int = client.info("commandstats")["cmdstat_hmget"]["calls"]
        return count

    # Others read as well: no fewer than our own.
    before = reads()
    for _ in range(10):
        breaker.execute(ok)
    assert reads() - before >= 10


def blocking(**options: Any) -> Any:
    kind: Any = redis.BlockingConnectionPool
    return redis.Redis.from_pool(kind(**options))


@pytest.mark.parametrize("kind", [redis.Redis, valkey.Valkey, blocking], ids=["redis", "valkey", "blocking pool"])
def test_a_healthy_call_needs_no_other_thread(redis_server: Server, kind: Any) -> None:
    with kind(port=redis_server.port) as client:
        # With the server's time it would be asked for that now and then, over the one connection that there is.
        store = RedisStore(client, clock=ManualClock(), timeout_ms=PATIENT)
        breaker = DistributedCircuitBreaker(name(), store, failure_threshold=1000)
        # This makes the connection.
        breaker.execute(ok)

        def carry(*_: object) -> Any:
            raise AssertionError("another thread was asked")

        store.link.line._here().carriers.carry = carry  # type: ignore[method-assign,assignment]  # so that it is noticed
        for _ in range(5):
            assert breaker.execute(ok) == "ok"
            failed(breaker)
        assert breaker.get_snapshot().failures_in_window == 5


def test_scenario_45_many_workers_see_open_and_none_moves_when_it_opened(client: redis.Redis) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    circuit = name()
    policy: dict[str, Any] = {"failure_threshold": 1, "open_duration_ms": 10_000}
    first = DistributedCircuitBreaker(circuit, store, **policy)
    failed(first)
    opened_at = first.get_snapshot().opened_at
    for second in range(32):
        clock.now = 1_700_000_000_000 + second * 300
        newcomer = DistributedCircuitBreaker(circuit, store, **policy)
        assert refused(newcomer).retry_after_ms == 10_000 - second * 300
        assert newcomer.get_snapshot().opened_at == opened_at
    clock.now = 1_700_000_009_999
    refused(first)
    clock.now += 1
    assert first.acquire().probe


def test_scenario_46_constructing_changes_no_shared_state(client: redis.Redis) -> None:
    store = RedisStore(client, timeout_ms=PATIENT)
    circuit = name()
    DistributedCircuitBreaker(circuit, store).force_open()
    before = client.hgetall(f"{{cb:{circuit}}}")
    DistributedCircuitBreaker(circuit, store, failure_threshold=1)
    DistributedCircuitBreakerGroup(circuit, store)
    assert client.hgetall(f"{{cb:{circuit}}}") == before


@pytest.mark.parametrize("trip_on", ["rolling", "consecutive", "rate"])
def test_scenario_51_every_key_has_a_ttl_which_a_refusal_does_not_extend(client: redis.Redis, trip_on: str) -> None:
    clock = ManualClock()
    circuit = name()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    extra = {"minimum_calls": 4} if trip_on == "rate" else {"failure_threshold": 3}
    breaker = DistributedCircuitBreaker(circuit, store, trip_on=trip_on, open_duration_ms=1000, **extra)  # type: ignore[arg-type]  # a mapping says less

    def lives() -> dict[str, int]:
        return {str(key): client.pttl(key) for key in client.keys(f"{{cb:{circuit}}}*")}

    if trip_on != "consecutive":
        # There it would end the row of failures whenever it arrives, for nobody waits for it.
        breaker.execute(ok)
    if trip_on == "rate":
        # Nobody waits for it, and it may come another way than what is told later.
        wait_until(lambda: breaker.get_snapshot().calls_in_window == 1)
    for _ in range(3):
        failed(breaker)
        assert lives()
        assert all(86_000_000 < ttl <= 86_400_000 for ttl in lives().values())
    for key in lives():
        client.pexpire(key, 5_000_000)
    refused(breaker)
    assert all(ttl <= 5_000_000 for ttl in lives().values())
    clock.now += 1000
    probe = breaker.acquire()
    assert all(86_000_000 < ttl <= 86_400_000 for ttl in lives().values())
    probe.record_success()
    breaker.force_open()
    assert set(lives().values()) == {-1}
    breaker.reset()
    assert -1 not in lives().values()
    short = DistributedCircuitBreaker(name(), store, idle_ttl_ms=200_000)
    short.record_failure()
    assert 0 < client.pttl(f"{{cb:{short.name}}}:f") <= 200_000


@pytest.mark.parametrize(
    "wrong", ["", "n" * 513, "a\nb", "a\0b", "\x7f", "\ud800", 5, None, b"bytes"], ids=[str(n) for n in range(9)]
)
def test_scenario_53_what_cannot_name_a_circuit_is_told_before_anything_is_sent(wrong: Any) -> None:
    tapped = Tapped(redis.Redis())
    store = RedisStore(tapped)
    with pytest.raises(InvalidNameError):
        DistributedCircuitBreaker(wrong, store)
    with pytest.raises(InvalidNameError):
        DistributedCircuitBreakerGroup(wrong, store)
    group = DistributedCircuitBreakerGroup("g", store)
    if wrong != "":
        with pytest.raises(InvalidNameError):
            group.for_key(wrong)
    assert len(group) == 0
    assert tapped.sent == []


def test_scenario_53_what_can_name_one_is_kept_under_that_name_in_utf_8(
    client: redis.Redis, redis_server: Server
) -> None:
    suffix = name()
    for circuit in (f"}}x{suffix}", f"a{{b}}c{suffix}", f"\U0001f4b3 é{suffix}", f" {suffix} "):
        for encoding in ("utf-8", "latin-1"):
            with redis.Redis(port=redis_server.port, encoding=encoding) as own:
                DistributedCircuitBreaker(circuit, RedisStore(own, timeout_ms=PATIENT)).force_open()
            assert client.hget(f"{{cb:{circuit}}}", "mode") == "forced-open"
            client.delete(f"{{cb:{circuit}}}")


def test_scenario_57_the_open_duration_that_was_stored_at_the_trip_counts(client: redis.Redis) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    circuit = name()
    long = DistributedCircuitBreaker(circuit, store, failure_threshold=1, open_duration_ms=5000)
    short = DistributedCircuitBreaker(circuit, store, failure_threshold=1, open_duration_ms=10)
    failed(long)
    clock.now += 4999
    refused(short)
    clock.now += 1
    assert short.acquire().probe


def test_scenario_58_two_failures_at_one_time_both_count(client: redis.Redis) -> None:
    store = RedisStore(client, clock=ManualClock(), timeout_ms=PATIENT)
    circuit = name()
    breakers = [DistributedCircuitBreaker(circuit, store, failure_threshold=4) for _ in range(2)]
    for breaker in breakers:
        failed(breaker)
    assert breakers[0].get_snapshot().failures_in_window == 2


def test_scenario_58_a_command_that_is_delivered_twice_counts_once(client: redis.Redis) -> None:
    def twice(args: list[str], through: Callable[[list[str]], Any]) -> Any:
        through(args)
        return through(args)

    clock = ManualClock()
    store = RedisStore(Tapped(client, twice), clock=clock, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(
        name(), store, failure_threshold=3, open_duration_ms=10, half_open_max_calls=2, success_threshold=2
    )
    failed(breaker)
    assert breaker.get_snapshot().failures_in_window == 1
    breaker.trip()
    clock.now += 10
    probe = breaker.acquire()
    assert breaker.get_snapshot().half_open_in_flight == 1
    assert probe.record_success() == "applied"
    assert breaker.get_snapshot().half_open_successes == 1


def test_a_change_of_state_says_who_made_it_and_why(client: redis.Redis) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT, instance="pod-7")
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=2, open_duration_ms=1000)
    changes: list[StateChange] = []
    stop = breaker.on("state_change", changes.append)
    failed(breaker)
    failed(breaker)
    clock.now += 1000
    breaker.execute(ok)
    at = clock.now
    opened = StateChange(breaker.name, "closed", "open", at - 1000, 2, 1000, "threshold", "local", "pod-7")
    half_open = StateChange(breaker.name, "open", "half-open", at, 0, None, "cooldown", "local", "pod-7")
    closed = StateChange(breaker.name, "half-open", "closed", at, 0, None, "probes-succeeded", "local", "pod-7")
    assert changes == [opened, half_open, closed]
    breaker.force_open()
    assert [(change.to_state, change.reason) for change in changes[3:]] == [("open", "manual")]
    stop()
    breaker.reset()
    assert len(changes) == 4


def test_another_configuration_of_a_half_open_period_is_told_once(client: redis.Redis) -> None:
    clock = ManualClock()
    circuit = name()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    ours = DistributedCircuitBreaker(circuit, store, open_duration_ms=1000, half_open_max_calls=3, success_threshold=9)
    theirs = DistributedCircuitBreaker(circuit, store, open_duration_ms=1000)
    ours.trip()
    clock.now += 1000
    ours.acquire()
    events = heard(store)
    # It runs by what the one who began it says.
    assert [theirs.can_execute() for _ in range(3)] == [True, True, False]
    assert [(event.circuit, event.at, event.error) for event in events] == [(circuit, clock.now, None)]


def test_a_listener_may_use_the_breaker_and_one_that_raises_harms_nothing(client: redis.Redis) -> None:
    store = RedisStore(client, clock=ManualClock(), timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=1)
    seen: list[object] = []

    def first(change: StateChange) -> None:
        seen.append((change.to_state, breaker.get_state()))
        if change.to_state == "open":
            breaker.reset()
        raise RuntimeError("a listener's own")

    breaker.on("state_change", first)
    breaker.on("state_change", lambda change: seen.append(change.to_state))
    failed(breaker)
    assert seen == [("open", "open"), "open", ("closed", "closed"), "closed"]


def test_the_last_failure_is_one_that_counted_and_is_known_to_who_hears_of_the_trip(client: redis.Redis) -> None:
    store = RedisStore(client, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=1)
    stale = breaker.acquire()
    breaker.reset()
    current = breaker.acquire()
    known: list[str | None] = []
    stop = breaker.on("state_change", lambda _: known.append(refused(breaker).last_failure))
    assert stale.record_failure(BoomError("stale")) == "stale"
    assert current.record_failure(BoomError("current")) == "applied"
    assert known == ["current"]
    assert refused(breaker).last_failure == "current"
    stop()
    breaker.reset()
    breaker.trip()
    assert refused(breaker).last_failure is None


def test_an_ignored_error_counts_nowhere_and_frees_the_slot(client: redis.Redis) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=1, open_duration_ms=10, ignore=BoomError)
    failed(breaker)
    breaker.trip()
    clock.now += 10
    for _ in range(3):
        failed(breaker)
        assert breaker.get_snapshot().half_open_in_flight == 0
    assert breaker.execute(ok) == "ok"
    assert breaker.get_state() == "closed"


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_is_neutral_comes_through_and_frees_the_slot(
    client: redis.Redis, interrupt: type[BaseException]
) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=1, open_duration_ms=10)

    def stop() -> None:
        raise interrupt

    for tripped in (False, True):
        if tripped:
            breaker.trip()
            clock.now += 10
        with pytest.raises(interrupt):
            breaker.execute(stop)
        with pytest.raises(interrupt), breaker:
            stop()
    assert breaker.acquire().probe


def test_generators_are_guarded_over_their_whole_life(client: redis.Redis) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=1, open_duration_ms=10)

    @breaker
    def pages(count: int, last: Exception | None = None) -> Iterator[int]:
        yield from range(count)
        if last is not None:
            raise last

    assert inspect.isgeneratorfunction(pages)
    assert list(pages(3)) == [0, 1, 2]
    reading = pages(2, BoomError("half-way"))
    assert next(reading) == 0
    assert breaker.get_state() == "closed"
    with pytest.raises(BoomError):
        list(reading)
    assert breaker.get_state() == "open"
    clock.now += 10
    early = pages(3)
    next(early)
    assert breaker.get_snapshot().half_open_in_flight == 1
    early.close()
    assert breaker.get_snapshot().half_open_in_flight == 0
    assert list(pages(1)) == [0]
    assert breaker.get_state() == "closed"


@pytest.mark.thread_unsafe(reason="the garbage collector is asked to come at one moment")
def test_a_generator_that_is_collected_within_the_client_frees_its_slot_and_blocks_nobody(redis_server: Server) -> None:
    kind: Any = redis.ConnectionPool

    class Collecting(kind):  # type: ignore[misc]  # untyped where it comes from
        """The collector comes while a lock is held that one thread can take once."""

        lock = threading.Lock()
        collects = False

        def get_connection(self, *args: Any, **options: Any) -> Any:
            with self.lock:
                if self.collects:
                    Collecting.collects = False
                    gc.collect()
                return super().get_connection(*args, **options)

    class Cycle:
        pages: object

    clock = ManualClock()
    with redis.Redis.from_pool(Collecting(port=redis_server.port)) as client:
        store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
        breaker = DistributedCircuitBreaker(name(), store, open_duration_ms=10, half_open_max_calls=2)
        breaker.trip()
        clock.now += 10

        @breaker
        def pages() -> Iterator[int]:
            yield 1
            yield 2

        def leave() -> None:
            cycle = Cycle()
            cycle.pages = (reading := pages(), cycle)
            next(reading)

        gc.disable()
        try:
            leave()
            assert breaker.get_snapshot().half_open_in_flight == 1
            Collecting.collects = True
            client.get("something of the application's own")
            assert breaker.get_snapshot().half_open_in_flight == 0
            leave()
            Collecting.collects = True
            assert breaker.can_execute()
            assert breaker.get_snapshot().half_open_in_flight == 1
        finally:
            gc.enable()


EXITS = """
import sys, time
import redis
import redis.asyncio
import switchgear.redis.asyncio
import valkey
from support.clock import ManualClock
from support.stores import PATIENT, set_deadline
from switchgear.redis import DistributedCircuitBreaker, RedisStore

clock = ManualClock()
client = redis.Redis(port=int(sys.argv[1]))
store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
breaker = DistributedCircuitBreaker(sys.argv[2], store, open_duration_ms=10)
breaker.trip()
clock.now += 10

@breaker
def pages():
    yield 1
    yield 2

left_open = pages()
next(left_open)

class Late:
    def __del__(self):
        # No connection, and no thread to make one.
        client.connection_pool.disconnect()
        breaker._circuit._line._of_process.carriers.end()
        set_deadline(store, 500)
        try:
            breaker.get_state()
        except Exception as error:
            print(type(error).__name__, flush=True)

late = Late()
print("over", flush=True)
"""


def test_scenario_41_a_process_ends_by_itself_with_a_generator_open_and_a_breaker_asked_at_the_very_end(
    redis_server: Server,
) -> None:
    ran = run_script(EXITS, str(redis_server.port), name())
    assert (ran.code, ran.stdout.splitlines()[0]) == (0, "over"), ran.stderr


def test_what_has_to_be_awaited_is_refused_with_the_name_of_the_right_class(client: redis.Redis) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, open_duration_ms=10)

    async def coroutine() -> None: ...

    async def steps() -> Any:
        yield 1

    for fn in (coroutine, steps, functools.partial(coroutine)):
        with pytest.raises(TypeError, match=r"switchgear\.redis\.asyncio\.DistributedCircuitBreaker"):
            breaker(fn)
        with pytest.raises(TypeError, match=r"switchgear\.redis\.asyncio\.DistributedCircuitBreaker"):
            breaker.guard(fallback=print)(fn)
    with pytest.raises(TypeError, match=r"switchgear\.redis\.asyncio\.DistributedCircuitBreaker"):
        breaker.execute(coroutine)  # type: ignore[unused-coroutine]  # what it is about
    # What cannot be known before is refused as well, its slot freed and its coroutine closed.
    breaker.trip()
    clock.now += 10
    with pytest.raises(TypeError, match=r"switchgear\.redis\.asyncio\.DistributedCircuitBreaker"):
        breaker.execute(lambda: coroutine())  # type: ignore[unused-coroutine]  # noqa: PLW0108 - a plain function
    assert breaker.get_snapshot().half_open_in_flight == 0


def test_functions_of_all_kinds_keep_what_they_are(client: redis.Redis) -> None:
    breaker = DistributedCircuitBreaker(name(), RedisStore(client, timeout_ms=PATIENT))

    class Service:
        @breaker
        def plain(self, order: int) -> tuple[object, int]:
            return self, order

        @breaker
        @classmethod
        def of_class(cls, order: int) -> tuple[object, int]:
            return cls, order

        @staticmethod
        @breaker
        def of_none(order: int) -> int:
            return order

    service = Service()
    assert service.plain(1) == (service, 1)
    assert service.of_class(2) == (Service, 2)
    assert service.of_none(3) == 3
    assert list(inspect.signature(Service.plain).parameters) == ["self", "order"]
    assert breaker(functools.partial(max, 3))(5) == 5
    with pytest.raises(TypeError, match="a class"):
        breaker(Service)


def test_a_fallback_steps_in_for_refusals_and_where_told_for_failures(client: redis.Redis) -> None:
    breaker = DistributedCircuitBreaker(name(), RedisStore(client, timeout_ms=PATIENT), failure_threshold=1)
    assert breaker.execute(fail, fallback=str, fallback_on="failure") == "ECONNREFUSED"
    assert breaker.execute(ok, fallback=lambda refusal: type(refusal).__name__) == "CircuitOpenError"

    @breaker.guard(fallback=lambda refusal, order: f"{order} later")
    def ship(order: str) -> str:
        return order

    assert ship("order") == "order later"


def test_under_observe_the_call_goes_ahead_and_the_refusal_is_told(client: redis.Redis) -> None:
    store = RedisStore(client, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=1, observe=True)
    told: list[str] = []
    for event in ("success", "failure", "ignored", "refused"):
        breaker.on(event, lambda e, event=event: told.append(f"{event} {e.error!r:.16}"))
    failed(breaker)
    failed(breaker)
    assert breaker.execute(ok) == "ok"
    assert breaker.can_execute()
    permit = breaker.acquire()
    assert (permit.record_success(), permit.record_success()) == ("stale", "duplicate")
    assert told == ["failure BoomError('ECONN", *["refused CircuitOpenError"] * 4]


def test_a_call_tells_exactly_one_event(client: redis.Redis) -> None:
    store = RedisStore(client, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=2, is_failure=lambda e: str(e) != "mine")
    told: list[str] = []
    for event in ("success", "failure", "ignored", "refused"):
        breaker.on(event, lambda _, event=event: told.append(event))

    def mine() -> None:
        raise BoomError("mine")

    breaker.execute(ok)
    with pytest.raises(BoomError):
        breaker.execute(mine)
    failed(breaker)
    failed(breaker)
    refused(breaker)
    assert told == ["success", "ignored", "failure", "failure", "refused"]


@pytest.mark.parametrize("reading", [float("nan"), -1, 1.5, 2**52 + 1, float("inf"), "soon", None], ids=str)
def test_a_clock_that_gives_no_time_is_told_before_anything_is_asked(reading: Any) -> None:
    tapped = Tapped(redis.Redis())
    clock = ManualClock()
    breaker = DistributedCircuitBreaker("c", RedisStore(tapped, clock=clock))
    clock.now = reading
    for call in (
        lambda: breaker.execute(ok),
        breaker.can_execute,
        breaker.acquire,
        breaker.get_snapshot,
        breaker.reset,
    ):
        with pytest.raises(InvalidTimeError, match="`now` must be an integer"):
            call()
    assert tapped.sent == []


def test_a_clock_that_fails_while_settling_hides_nothing(client: redis.Redis) -> None:
    broken = threading.Event()

    def clock() -> int:
        if broken.is_set():
            raise OSError("no time")
        return 1_700_000_000_000

    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    events = heard(store)
    breaker = DistributedCircuitBreaker(name(), store, failure_threshold=1)

    def breaks() -> None:
        broken.set()
        raise BoomError

    with pytest.raises(BoomError):
        breaker.execute(breaks)
    assert [str(event.error) for event in events] == ["no time"]
    with pytest.raises(OSError, match="no time"):
        breaker.execute(ok)


def test_the_clock_of_a_policy_replaces_that_of_the_store(client: redis.Redis) -> None:
    clock, other = ManualClock(1000), ManualClock(5000)
    store = RedisStore(client, clock=other, timeout_ms=PATIENT)
    breaker = DistributedCircuitBreaker(name(), store, clock=clock)
    breaker.trip()
    assert breaker.get_snapshot().opened_at == 1000
    with pytest.raises(InvalidTimeError):
        DistributedCircuitBreaker(name(), store, clock=lambda: -1)


@pytest.mark.parametrize(
    ("policy", "field"),
    [
        ({"failure_threshold": 0}, "failure_threshold"),
        ({"failureThreshold": 5}, "failureThreshold"),
        ({"on_store_failure": "fail"}, "on_store_failure"),
        ({"idle_ttl_ms": 60_000}, "idle_ttl_ms"),
        ({"idle_ttl_ms": 1.5}, "idle_ttl_ms"),
        ({"max_keys": 5}, "max_keys"),
        ({"observe": 1}, "observe"),
        ({"failure_rate": 0.5}, "failure_rate"),
    ],
    ids=str,
)
def test_an_option_that_is_not_valid_is_told_before_anything_is_sent(policy: dict[str, Any], field: str) -> None:
    tapped = Tapped(redis.Redis())
    with pytest.raises(ConfigError) as caught:
        DistributedCircuitBreaker("b", RedisStore(tapped), **policy)
    assert caught.value.field == field
    for wrong in ({"max_keys": 0}, {"max_keys": True}):
        with pytest.raises(ConfigError):
            DistributedCircuitBreakerGroup("g", RedisStore(tapped), **wrong)
    breaker = DistributedCircuitBreaker("b", RedisStore(tapped))
    with pytest.raises(ConfigError):
        breaker.trip(for_ms=0)
    assert tapped.sent == []


def test_fail_closed_refuses_and_fail_open_lets_through_what_cannot_be_asked() -> None:
    gone = Answering(ConnectionError("gone"))
    store = RedisStore(gone, timeout_ms=PATIENT)
    closed = DistributedCircuitBreaker("b", store, on_store_failure="fail-closed")
    told: list[str] = []
    closed.on("refused", lambda e: told.append(type(e.error).__name__))
    with pytest.raises(StoreUnavailableError) as caught:
        closed.execute(ok)
    error = caught.value
    assert (error.circuit, error.reason, error.code, error.status_code) == ("b", "gone", "store_unavailable", 503)
    assert (error.headers, error.retry_after, error.retryable) == ({}, None, False)
    assert isinstance(error.__cause__, StoreError)
    assert not closed.can_execute()
    assert closed.execute(ok, fallback=lambda refusal: type(refusal).__name__) == "StoreUnavailableError"
    assert told == ["StoreUnavailableError"] * 3
    for unanswered in (
        closed.get_state,
        closed.get_snapshot,
        closed.reset,
        closed.trip,
        closed.force_open,
        closed.disable,
    ):
        assert reason(unanswered) == "gone"
    for untold in (closed.record_success, closed.record_failure, closed.release):
        assert untold() == "stale"

    opened = DistributedCircuitBreaker(
        "b", RedisStore(gone, timeout_ms=PATIENT), on_store_failure="fail-open", failure_threshold=1
    )
    assert opened.execute(ok) == "ok"
    failed(opened)
    failed(opened)
    assert opened.can_execute()
    permit = opened.acquire()
    assert not permit.probe
    assert permit.record_failure() == "stale"


def test_a_group_makes_one_breaker_per_key_and_hears_them_all(client: redis.Redis) -> None:
    clock = ManualClock()
    store = RedisStore(client, clock=clock, timeout_ms=PATIENT)
    of = name()
    group = DistributedCircuitBreakerGroup(of, store, max_keys=2, failure_threshold=1)
    changes: list[tuple[str, str]] = []
    group.on("state_change", lambda change: changes.append((change.circuit, change.to_state)))
    first = group.for_key("a")
    assert first is group.for_key("a")
    assert first.name == f"{of}:a"
    failed(first)
    group.for_key("b")
    group.for_key("c")
    # The open one stays, though it was used before the others.
    assert [breaker.name for breaker in group] == [f"{of}:a", f"{of}:c"]
    assert len(group) == 2
    assert changes == [(f"{of}:a", "open")]
    assert group.delete("a")
    assert not group.delete("a")
    # The circuit is in the store.
    assert group.for_key("a").get_state() == "open"
    with pytest.raises(InvalidNameError):
        group.for_key("x" * 513)
    assert group.name in repr(group)


def test_nothing_is_asked_to_show_a_breaker_and_it_is_not_copied() -> None:
    tapped = Tapped(redis.Redis(password="s3cret"))
    breaker = DistributedCircuitBreaker("shown", RedisStore(tapped))
    assert repr(breaker) == "<DistributedCircuitBreaker 'shown'>"
    assert tapped.sent == []
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        breaker.__reduce_ex__(4)


def test_a_timeout_is_no_option_of_what_cannot_be_interrupted() -> None:
    store = RedisStore(Answering(None))
    for make in (DistributedCircuitBreaker, DistributedCircuitBreakerGroup):
        with pytest.raises(
            ConfigError, match=r"`timeout_ms` must be left out .* a sync call cannot be interrupted"
        ) as raised:
            make("c", store, timeout_ms=5_000)
        assert (raised.value.field, raised.value.value) == ("timeout_ms", "5000")
        make("c", store, timeout_ms=None)
    with pytest.raises(ConfigError, match=r"valid are .*idle_ttl_ms.*, max_keys$"):
        DistributedCircuitBreakerGroup("c", store, max_key=5)  # type: ignore[call-arg]  # that is what is tested


def test_whether_a_key_is_in_a_group_asks_nothing_of_the_store() -> None:
    tapped, other = Tapped(redis.Redis()), AsyncTapped(redis.asyncio.Redis())
    groups: list[Any] = [
        DistributedCircuitBreakerGroup("web", RedisStore(tapped)),
        switchgear.redis.asyncio.DistributedCircuitBreakerGroup("web", switchgear.redis.asyncio.RedisStore(other)),
    ]
    for group in groups:
        breaker = group.for_key("a")
        assert "a" in group
        assert breaker in group
        assert "web:a" not in group
        assert group.delete("a")
        assert "a" not in group
    assert tapped.sent == other.sent == []
