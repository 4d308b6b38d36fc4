"""A process of the fleet, in Python with asyncio: it does what its lines of JSON say, and answers each with one."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

import redis.asyncio as redis
from heard import Clock, FailedError, Heard, camel, outcome, say, snake, snaked, spelled
from redis.asyncio.cluster import ClusterNode
from switchgear.redis.asyncio import DistributedCircuitBreaker, RedisStore

clock = Clock()


class Circuit(Heard):
    """One circuit, and what was heard of it."""

    def __init__(
        self,
        as_: str,
        circuit: str,
        *,
        who: str,
        port: int | None = None,
        cluster: list[int] | None = None,
        username: str | None = None,
        password: str | None = None,
        store: dict[str, Any] | None = None,
        policy: dict[str, Any] | None = None,
        injected: bool = False,
    ) -> None:
        super().__init__(as_, who)
        auth: dict[str, Any] = {"username": username, "password": password}
        self.client: redis.Redis | redis.RedisCluster
        if cluster is not None:
            self.client = redis.RedisCluster(startup_nodes=[ClusterNode("127.0.0.1", at) for at in cluster], **auth)
        else:
            self.client = redis.Redis(port=port or 0, **auth)
        options = snaked(store) | ({"clock": clock} if injected else {})
        made = RedisStore(self.client, **{"instance": who, **options})
        self.breaker = DistributedCircuitBreaker(circuit, made, **snaked(policy))
        self.listen(made, self.breaker)
        self.over = asyncio.Event()
        self.loops: list[asyncio.Task[None]] = []

    async def call(self, dependency: int) -> str:
        """One guarded call: what the caller got."""
        given: list[Any] = []

        async def work() -> object:
            text = await self.ask(dependency, probe=False)
            given.append(object() if text == "ok" else FailedError(text))
            if isinstance(given[0], FailedError):
                raise given[0]
            return given[0]

        try:
            return "ok" if await self.breaker.execute_async(work) is given[0] else "something else"
        except Exception as error:
            return outcome(error, given[0] if given else None)

    async def loop(self, dependency: int) -> None:
        """Calls by hand, again and again until the end, so that the dependency knows which of them are probes."""
        while not self.over.is_set():
            try:
                permit = await self.breaker.acquire()
            except Exception as error:
                self.refused(error)
                await asyncio.sleep(0.01)
                continue
            if await self.ask(dependency, probe=permit.probe) == "ok":
                await permit.record_success()
                self.told["done"] += 1
            else:
                await permit.record_failure()
                self.told["failed"] += 1
            await asyncio.sleep(0.01)

    async def ask(self, port: int, *, probe: bool) -> str:
        """Asks the dependency."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(self.question(probe=probe))
        answer = await reader.readline()
        writer.close()
        return answer.decode().strip()


circuits: dict[str, Circuit] = {}


async def open_(*, as_: str, circuit: str, connects: bool = True, **options: Any) -> None:
    now = options.pop("clock", None)
    if now is not None:
        clock.now = now
    circuits[as_] = Circuit(as_, circuit, injected=now is not None, **options)
    if connects:
        await circuits[as_].client.ping()


async def calls(*, as_: str, n: int, dependency: int) -> dict[str, Any]:
    begin = time.monotonic()
    got, at = [], []
    for _ in range(n):
        at.append((time.monotonic() - begin) * 1000)
        got.append(await circuits[as_].call(dependency))
    return {"got": got, "at": at, "ms": (time.monotonic() - begin) * 1000}


async def ask(*, as_: str) -> bool:
    return await circuits[as_].breaker.can_execute()


async def loop(*, as_: str, n: int, dependency: int) -> None:
    circuit = circuits[as_]
    circuit.loops = [asyncio.create_task(circuit.loop(dependency)) for _ in range(n)]


async def end(*, as_: str) -> None:
    circuits[as_].over.set()
    await asyncio.gather(*circuits[as_].loops)


async def snapshot(*, as_: str) -> dict[str, Any]:
    return camel(await circuits[as_].breaker.get_snapshot())


async def control(*, as_: str, operation: str, options: dict[str, Any] | None = None) -> None:
    await getattr(circuits[as_].breaker, snake(operation))(**snaked(options))


async def stats(*, as_: str) -> dict[str, Any]:
    return circuits[as_].stats()


async def close() -> None:
    for circuit in circuits.values():
        await circuit.client.aclose()
    circuits.clear()


async def set_clock(*, to: int) -> None:
    clock.now = to


OPERATIONS: dict[str, Callable[..., Awaitable[Any]]] = {
    "open": open_,
    "calls": calls,
    "ask": ask,
    "loop": loop,
    "end": end,
    "snapshot": snapshot,
    "control": control,
    "stats": stats,
    "close": close,
    "clock": set_clock,
}


async def do(line: bytes) -> None:
    message = json.loads(line)
    ticket = message.pop("id")
    operation = OPERATIONS[message.pop("do")]
    if "as" in message:
        message["as_"] = message.pop("as")
    try:
        say({"id": ticket, "result": await operation(**message)})
    except Exception as error:
        say({"id": ticket, "error": spelled(error)})


async def main() -> None:
    reader = asyncio.StreamReader(limit=1 << 20)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    say({"ready": True})
    tasks: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        task = asyncio.create_task(do(line))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    os._exit(0)


asyncio.run(main())
