"""A process of the fleet, in Python with threads: it does what its lines of JSON say, and answers each with one."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import redis
from heard import Clock, FailedError, Heard, camel, outcome, say, snake, snaked, spelled
from redis.cluster import ClusterNode
from switchgear.redis import DistributedCircuitBreaker, RedisStore

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
            nodes = [ClusterNode("127.0.0.1", at) for at in cluster]  # type: ignore[no-untyped-call]  # untyped in redis-py
            self.client = redis.RedisCluster(startup_nodes=nodes, **auth)
        else:
            self.client = redis.Redis(port=port or 0, **auth)
        options = snaked(store) | ({"clock": clock} if injected else {})
        made = RedisStore(self.client, **{"instance": who, **options})
        self.breaker = DistributedCircuitBreaker(circuit, made, **snaked(policy))
        self.listen(made, self.breaker)
        self.over = threading.Event()
        self.loops: list[threading.Thread] = []

    def call(self, dependency: int) -> str:
        """One guarded call: what the caller got."""
        given: list[Any] = []

        def work() -> object:
            text = self.ask(dependency, probe=False)
            given.append(object() if text == "ok" else FailedError(text))
            if isinstance(given[0], FailedError):
                raise given[0]
            return given[0]

        try:
            return "ok" if self.breaker.execute(work) is given[0] else "something else"
        except Exception as error:
            return outcome(error, given[0] if given else None)

    def loop(self, dependency: int) -> None:
        """Calls by hand, again and again until the end, so that the dependency knows which of them are probes."""
        while not self.over.is_set():
            try:
                permit = self.breaker.acquire()
            except Exception as error:
                self.refused(error)
                time.sleep(0.01)
                continue
            if self.ask(dependency, probe=permit.probe) == "ok":
                permit.record_success()
                self.told["done"] += 1
            else:
                permit.record_failure()
                self.told["failed"] += 1
            time.sleep(0.01)

    def ask(self, port: int, *, probe: bool) -> str:
        """Asks the dependency."""
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(self.question(probe=probe))
            return connection.makefile().readline().strip()


circuits: dict[str, Circuit] = {}


def open_(*, as_: str, circuit: str, connects: bool = True, **options: Any) -> None:
    now = options.pop("clock", None)
    if now is not None:
        clock.now = now
    circuits[as_] = Circuit(as_, circuit, injected=now is not None, **options)
    if connects:
        circuits[as_].client.ping()


def calls(*, as_: str, n: int, dependency: int) -> dict[str, Any]:
    begin = time.monotonic()
    got, at = [], []
    for _ in range(n):
        at.append((time.monotonic() - begin) * 1000)
        got.append(circuits[as_].call(dependency))
    return {"got": got, "at": at, "ms": (time.monotonic() - begin) * 1000}


def ask(*, as_: str) -> bool:
    return circuits[as_].breaker.can_execute()


def loop(*, as_: str, n: int, dependency: int) -> None:
    circuit = circuits[as_]
    circuit.loops = [threading.Thread(target=circuit.loop, args=[dependency], daemon=True) for _ in range(n)]
    for thread in circuit.loops:
        thread.start()


def end(*, as_: str) -> None:
    circuits[as_].over.set()
    for thread in circuits[as_].loops:
        thread.join()


def snapshot(*, as_: str) -> dict[str, Any]:
    return camel(circuits[as_].breaker.get_snapshot())


def control(*, as_: str, operation: str, options: dict[str, Any] | None = None) -> None:
    getattr(circuits[as_].breaker, snake(operation))(**snaked(options))


def stats(*, as_: str) -> dict[str, Any]:
    return circuits[as_].stats()


def close() -> None:
    for circuit in circuits.values():
        circuit.client.close()
    circuits.clear()


def set_clock(*, to: int) -> None:
    clock.now = to


OPERATIONS: dict[str, Callable[..., Any]] = {
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


def do(line: str) -> None:
    message = json.loads(line)
    ticket = message.pop("id")
    operation = OPERATIONS[message.pop("do")]
    if "as" in message:
        message["as_"] = message.pop("as")
    try:
        say({"id": ticket, "result": operation(**message)})
    except Exception as error:
        say({"id": ticket, "error": spelled(error)})


say({"ready": True})
for line in sys.stdin:
    threading.Thread(target=do, args=[line], daemon=True).start()
os._exit(0)
