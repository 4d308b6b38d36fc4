"""The whole life of a circuit, through any client: the same answers through each.

Also a program, for client libraries of other versions than the one that is installed here:
`python -m support.life single|cluster|sentinel PORT` with the library on PYTHONPATH.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from typing import Any
from uuid import uuid4

import switchgear.redis
import switchgear.redis.asyncio
from support.clock import ManualClock
from switchgear import CircuitOpenError, Snapshot, StateChange

NAMES = ("billing", "GET /users/{id}", "}x", "a{b}c", "\U0001f4b3", "{}", "n" * 512)
"""Names, some of which land on each node of a cluster."""


def live(client: Any, prefix: str, name: str) -> None:
    """Trips, refuses, probes, closes, and is controlled by hand; the clock stands where this puts it."""
    clock = ManualClock(1_700_000_000_000)
    store = switchgear.redis.RedisStore(client, prefix=prefix, clock=clock, timeout_ms=20_000)
    errors: list[object] = []
    store.on("store_error", errors.append)
    breaker = switchgear.redis.DistributedCircuitBreaker(name, store, failure_threshold=2, open_duration_ms=1000)

    assert breaker.execute(lambda: "ok") == "ok"
    raises(BoomError, lambda: breaker.execute(fail))
    assert breaker.get_snapshot().failures_in_window == 1
    raises(BoomError, lambda: breaker.execute(fail))
    clock.now += 100
    refusal = raises(CircuitOpenError, lambda: breaker.execute(lambda: "ok"))
    assert (refusal.state, refusal.retry_after_ms, refusal.last_failure) == ("open", 900, "boom")
    assert breaker.get_snapshot() == OPEN
    clock.now += 900
    probe = breaker.acquire()
    assert probe.probe
    refusal = raises(CircuitOpenError, breaker.acquire)
    assert (refusal.state, refusal.retry_after_ms) == ("half-open", 1000)
    assert probe.record_success() == "applied"
    assert breaker.get_state() == "closed"
    closed = breaker.acquire()
    assert not closed.probe
    breaker.force_open()
    assert raises(CircuitOpenError, lambda: breaker.execute(lambda: "ok")).retry_after_ms is None
    breaker.disable()
    assert breaker.execute(lambda: "ok") == "ok"
    breaker.trip(for_ms=50)
    assert closed.record_failure() == "stale"
    assert breaker.get_snapshot().remaining_open_ms == 50
    breaker.reset()
    assert breaker.can_execute()
    assert errors == []


async def live_async(client: Any, prefix: str, name: str) -> None:
    """The same for asyncio."""
    clock = ManualClock(1_700_000_000_000)
    store = switchgear.redis.asyncio.RedisStore(client, prefix=prefix, clock=clock, timeout_ms=20_000)
    errors: list[object] = []
    store.on("store_error", errors.append)
    breaker = switchgear.redis.asyncio.DistributedCircuitBreaker(
        name, store, failure_threshold=2, open_duration_ms=1000
    )

    assert await breaker.execute(ok_async) == "ok"
    await raises_async(BoomError, breaker.execute(fail_async))
    assert (await breaker.get_snapshot()).failures_in_window == 1
    await raises_async(BoomError, breaker.execute(fail_async))
    clock.now += 100
    refusal = await raises_async(CircuitOpenError, breaker.execute(ok_async))
    assert (refusal.state, refusal.retry_after_ms, refusal.last_failure) == ("open", 900, "boom")
    assert await breaker.get_snapshot() == OPEN
    clock.now += 900
    probe = await breaker.acquire()
    assert probe.probe
    refusal = await raises_async(CircuitOpenError, breaker.acquire())
    assert (refusal.state, refusal.retry_after_ms) == ("half-open", 1000)
    assert await probe.record_success() == "applied"
    assert await breaker.get_state() == "closed"
    closed = await breaker.acquire()
    assert not closed.probe
    await breaker.force_open()
    assert (await raises_async(CircuitOpenError, breaker.execute(ok_async))).retry_after_ms is None
    await breaker.disable()
    assert await breaker.execute(ok_async) == "ok"
    await breaker.trip(for_ms=50)
    assert await closed.record_failure() == "stale"
    assert (await breaker.get_snapshot()).remaining_open_ms == 50
    await breaker.reset()
    assert await breaker.can_execute()
    assert errors == []


def hear(client: Any, prefix: str) -> None:
    """Hears what another instance does, over a connection like the client's."""
    options: Any = {"prefix": prefix, "timeout_ms": 20_000}
    changes: list[StateChange] = []
    store = switchgear.redis.RedisStore(client, instance="ears", events=True, **options)
    listening = switchgear.redis.DistributedCircuitBreaker(HEARD, store)
    listening.on("state_change", changes.append)
    other = switchgear.redis.DistributedCircuitBreaker(
        HEARD, switchgear.redis.RedisStore(client, instance="mouth", **options)
    )
    assert listening.get_state() == "closed"
    give_up_at = time.monotonic() + 60
    while not changes:
        # Once more, for it may have come too early.
        other.trip()
        other.reset()
        time.sleep(0.01)
        assert time.monotonic() < give_up_at
    assert {(change.source, change.instance) for change in changes} == {("remote", "mouth")}
    store.close()


async def hear_async(client: Any, prefix: str) -> None:
    """The same for asyncio."""
    options: Any = {"prefix": prefix, "timeout_ms": 20_000}
    changes: list[StateChange] = []
    store = switchgear.redis.asyncio.RedisStore(client, instance="ears", events=True, **options)
    listening = switchgear.redis.asyncio.DistributedCircuitBreaker(HEARD, store)
    listening.on("state_change", changes.append)
    other = switchgear.redis.asyncio.DistributedCircuitBreaker(
        HEARD, switchgear.redis.asyncio.RedisStore(client, instance="mouth", **options)
    )
    assert await listening.get_state() == "closed"
    give_up_at = time.monotonic() + 60
    while not changes:
        await other.trip()
        await other.reset()
        await asyncio.sleep(0.01)
        assert time.monotonic() < give_up_at
    assert {(change.source, change.instance) for change in changes} == {("remote", "mouth")}
    await store.close()


def steer(client: Any, prefix: str) -> None:
    """Steers circuits without breakers, and lists them."""
    store = switchgear.redis.RedisStore(client, prefix=prefix, clock=ManualClock(), timeout_ms=20_000)
    assert store.circuits() == []
    for name in NAMES:
        store.control(name).trip(for_ms=700)
    assert [(listed.name, listed.snapshot.remaining_open_ms) for listed in store.circuits()] == LISTED
    for name in NAMES:
        store.control(name).reset()
    assert {listed.snapshot.state for listed in store.circuits()} == {"closed"}


async def steer_async(client: Any, prefix: str) -> None:
    """The same for asyncio."""
    store = switchgear.redis.asyncio.RedisStore(client, prefix=prefix, clock=ManualClock(), timeout_ms=20_000)
    assert await store.circuits() == []
    for name in NAMES:
        await store.control(name).trip(for_ms=700)
    assert [(listed.name, listed.snapshot.remaining_open_ms) for listed in await store.circuits()] == LISTED
    for name in NAMES:
        await store.control(name).reset()
    assert {listed.snapshot.state for listed in await store.circuits()} == {"closed"}


LISTED = [(name, 700) for name in sorted(NAMES)]

HEARD = "GET /a b \U0001f4b3"
"""The circuit that is heard of."""


class BoomError(Exception):
    """What the dependency raises."""


def fail() -> object:
    raise BoomError("boom")


async def ok_async() -> str:
    return "ok"


async def fail_async() -> object:
    raise BoomError("boom")


def raises(kind: type[Any], call: Callable[[], object]) -> Any:
    """The exception that a call raises."""
    try:
        given = call()
    except kind as error:
        return error
    raise AssertionError(f"it gave {given!r}")


async def raises_async(kind: type[Any], call: Awaitable[object]) -> Any:
    """The same of a coroutine."""
    try:
        given = await call
    except kind as error:
        return error
    raise AssertionError(f"it gave {given!r}")


OPEN = Snapshot(
    state="open",
    mode="auto",
    failures_in_window=0,
    calls_in_window=0,
    consecutive_failures=0,
    half_open_successes=0,
    half_open_in_flight=0,
    opened_at=1_700_000_000_000,
    remaining_open_ms=900,
    trips=1,
    epoch=1_700_000_000_000,
)

OPTIONS: Sequence[tuple[str, dict[str, Any]]] = (
    ("RESP2", {"protocol": 2}),
    ("RESP3", {"protocol": 3}),
    ("decoding", {"decode_responses": True}),
    ("decoding-RESP3", {"decode_responses": True, "protocol": 3}),
    ("another-encoding", {"encoding": "latin-1", "decode_responses": True}),
)
"""How clients may be told to speak, and to read."""


def clients(library: Any, place: str, port: int) -> Iterator[tuple[str, Any]]:
    """Clients of a library, one after another, with what tells them apart. Each is closed before the next."""
    for label, options in _options(library, place):
        if place == "single":
            made = _single(library)(port=port, **options)
        elif place == "cluster":
            made = getattr(library.cluster, f"{_prefix(library)}Cluster")(host="127.0.0.1", port=port, **options)
        else:
            sentinel = library.sentinel.Sentinel([("127.0.0.1", port)])
            made = sentinel.master_for("mymaster", **options)
        yield label, made
        made.close()


async def clients_async(library: Any, place: str, port: int) -> AsyncIterator[tuple[str, Any]]:
    """The same for asyncio."""
    module = library.asyncio
    for label, options in _options(library, place):
        sentinel: Any = None
        if place == "single":
            made = _single(module)(port=port, **options)
        elif place == "cluster":
            made = getattr(module.cluster, f"{_prefix(library)}Cluster")(host="127.0.0.1", port=port, **options)
            await made.initialize()
            # Some versions close connections of the node that they began with only now, used or not.
            if tidying := asyncio.all_tasks() - {asyncio.current_task()}:
                await asyncio.wait(tidying)
        else:
            sentinel = module.sentinel.Sentinel([("127.0.0.1", port)])
            made = sentinel.master_for("mymaster", **options)
        yield label, made
        for client in (made, *(sentinel.sentinels if sentinel is not None else ())):
            await (client.aclose() if hasattr(client, "aclose") else client.close())


def _options(library: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    yield from OPTIONS
    if place == "single":
        yield "one-connection", {"single_connection_client": True}
        if library.__name__ == "redis":
            yield "health-checks", {"health_check_interval": 1}


def _prefix(library: Any) -> str:
    return "Redis" if library.__name__ == "redis" else "Valkey"


def _single(module: Any) -> Any:
    return getattr(module, "Redis", None) or module.Valkey


def everything(library: Any, place: str, port: int) -> int:
    """Every client of a library at one place. How many circuits lived."""
    lived = 0
    for label, client in clients(library, place, port):
        for name in NAMES:
            live(client, f"{label}-{uuid4()}:", name)
            lived += 1
        hear(client, f"{label}-{uuid4()}:")
        steer(client, f"{label}[^*]-{uuid4()}:")
    return lived + asyncio.run(_everything_async(library, place, port))


async def _everything_async(library: Any, place: str, port: int) -> int:
    lived = 0
    async for label, client in clients_async(library, place, port):
        prefix = f"{label}-{uuid4()}:"
        await asyncio.gather(*(live_async(client, prefix, name) for name in NAMES))
        lived += len(NAMES)
        await hear_async(client, prefix)
        await steer_async(client, f"{label}[^*]-{uuid4()}:")
    return lived


def main(library_name: str, place: str, port: str) -> None:
    """What the program does."""
    library: Any = __import__(library_name)
    for module in ("asyncio", "cluster", "sentinel", "asyncio.cluster", "asyncio.sentinel"):
        __import__(f"{library_name}.{module}")
    print(library.__version__, everything(library, place, int(port)))


if __name__ == "__main__":
    main(*sys.argv[1:])
