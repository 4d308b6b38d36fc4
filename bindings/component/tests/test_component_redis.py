"""The shared half for real: what it asks for is sent to a Redis, and what comes back is handed in."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from component import Instance, Resource, fields_of, settings
from redis.exceptions import ResponseError
from support.servers import Server, start_server
from switchgear import CircuitOpenError
from switchgear.redis import DistributedCircuitBreaker, RedisStore
from wasmtime.component import Record, Variant

T0 = 1_700_000_000_000


class Host:
    """The least that a host does: it carries. `sent` is what went over the wire, by name."""

    def __init__(
        self, client: redis.Redis, options: dict[str, Any], name: str = "billing", *, by_script: bool = False
    ) -> None:
        self.instance = Instance()
        self.scripts = {script.name: script for script in self.instance.call("shared", "scripts")}
        self.fields = self.instance.call("shared", "admission-fields")
        self.circuit = Resource(self.instance, "shared", "circuit", name, "cb:", 7, "camel", [settings(options)])
        self.client = client
        self.by_script = by_script
        self.sent: list[str] = []
        self.transitions: list[tuple[str, str, str]] = []

    def admit(self, now: int) -> Any:
        return self.carry(now, self.circuit.call("admit", now))

    def settle(self, now: int, permit: Record | None, outcome: str) -> str:
        status: str = self.carry(now, self.circuit.call("settle", now, permit, outcome)).payload
        return status

    def control(self, now: int, operation: Variant) -> str:
        tag: str = self.carry(now, self.circuit.call("control", now, operation)).tag
        return tag

    def snapshot(self, now: int) -> dict[str, Any]:
        return fields_of(self.carry(now, self.circuit.call("get-state", now)).payload)

    def carry(self, now: int, step: Any) -> Any:
        """Sends until there is nothing more to send; the answer."""
        answer = step.answer
        while step.ask is not None:
            ask = fields_of(step.ask)
            try:
                step = self.hand_in(now, ask, self.send(ask))
            except ResponseError as error:
                step = self.circuit.call("on-error", now, ask["ticket"], f"{error.status_code} {error}")
            answer = step.answer or answer
            if step.transition is not None:
                made = fields_of(step.transition)
                self.transitions.append((made["from-state"], made["to-state"], made["reason"]))
        return answer

    def send(self, ask: dict[str, Any]) -> Any:
        if ask["script"] == "admit" and not self.by_script:
            self.sent.append("HMGET")
            return self.client.hmget(ask["keys"][0], self.fields)
        script = self.scripts[ask["script"]]
        head = ["EVAL", script.text] if ask["by-text"] else ["EVALSHA", script.sha1]
        self.sent.append(f"{head[0]} {ask['script']}")
        send: Callable[..., Any] = self.client.execute_command
        return send(*head, len(ask["keys"]), *ask["keys"], *ask["arguments"])

    def hand_in(self, now: int, ask: dict[str, Any], reply: Any) -> Record:
        step: Record
        if ask["script"] == "admit":
            step = self.circuit.call("on-reading", now, ask["ticket"], tuple(reply))
        else:
            step = self.circuit.call("on-reply", now, ask["ticket"], reply)
        return step

    def take_sent(self) -> list[str]:
        sent, self.sent = self.sent, []
        return sent


@pytest.fixture
def server() -> Iterator[Server]:
    with start_server() as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[redis.Redis]:
    with redis.Redis(port=server.port, decode_responses=True, protocol=2) as client:
        yield client


def test_a_shared_circuit_trips_probes_and_closes(client: redis.Redis) -> None:
    host = Host(client, {"failureThreshold": 2, "openDurationMs": 1000})

    granted = host.admit(T0)
    assert (granted.tag, granted.payload.kind, host.take_sent()) == ("granted", "closed", ["HMGET"])
    assert host.settle(T0, granted.payload, "success") == "applied"
    assert host.take_sent() == [], "a success under rolling is not told"

    # The server does not know the script, is sent its text, and knows it then.
    assert host.settle(T0 + 1, granted.payload, "failure") == "applied"
    assert host.take_sent() == ["EVALSHA record-failure", "EVAL record-failure"]
    assert host.settle(T0 + 2, granted.payload, "failure") == "applied"
    assert host.take_sent() == ["EVALSHA record-failure"]
    assert host.transitions == [("closed", "open", "threshold")]

    refused = host.admit(T0 + 1001)
    assert (refused.tag, fields_of(refused.payload)) == ("refused", {"state": "open", "retry-after-ms": 1})
    assert host.take_sent() == ["HMGET"]

    probe = host.admit(T0 + 1002)
    assert (probe.tag, probe.payload.kind, probe.payload.epoch) == ("granted", "probe", T0 + 1002)
    assert host.take_sent() == ["HMGET", "EVALSHA can-request", "EVAL can-request"]
    full = host.admit(T0 + 1003)
    assert fields_of(full.payload) == {"state": "half-open", "retry-after-ms": 999}
    assert host.take_sent() == ["HMGET", "EVALSHA can-request"]
    assert host.snapshot(T0 + 1003)["half-open-in-flight"] == 1
    host.take_sent()

    assert host.settle(T0 + 1004, granted.payload, "failure") == "stale", "it was admitted before the trip"
    assert host.settle(T0 + 1005, probe.payload, "success") == "applied"
    assert host.transitions[1:] == [("open", "half-open", "cooldown"), ("half-open", "closed", "probes-succeeded")]
    assert host.admit(T0 + 1006).payload.kind == "closed"
    assert host.circuit.call("in-flight") == 0


def test_scripts_that_a_server_has_forgotten_are_sent_again(client: redis.Redis) -> None:
    host = Host(client, {"failureThreshold": 1}, by_script=True)
    assert host.admit(T0).payload.kind == "closed"
    assert host.take_sent() == ["EVALSHA admit", "EVAL admit"]
    client.script_flush()
    assert host.admit(T0).payload.kind == "closed"
    assert host.take_sent() == ["EVALSHA admit", "EVAL admit"]
    assert host.control(T0, Variant("trip", 70)) == "controlled"
    assert host.admit(T0).payload.state == "open"
    assert host.take_sent() == ["EVALSHA control", "EVAL control", "EVALSHA admit"]


def test_manual_control_and_the_snapshot(client: redis.Redis) -> None:
    host = Host(client, {"tripOn": "consecutive"})
    for now, operation, state, mode in [
        (T0, "force-open", "open", "forced-open"),
        (T0 + 1, "disable", "closed", "disabled"),
        (T0 + 2, "reset", "closed", "auto"),
    ]:
        assert host.control(now, Variant(operation)) == "controlled"
        seen = host.snapshot(now)
        assert (seen["state"], seen["mode"], seen["epoch"]) == (state, mode, now)
    assert host.settle(T0 + 3, None, "failure") == "applied"
    assert host.snapshot(T0 + 3)["consecutive-failures"] == 1


def test_each_script_is_named_by_the_hash_that_a_server_gives_it(client: redis.Redis) -> None:
    for script in Instance().call("shared", "scripts"):
        assert client.script_load(script.text) == script.sha1 == hashlib.sha1(script.text.encode()).hexdigest()


def test_an_error_of_the_store_is_an_answer(client: redis.Redis) -> None:
    host = Host(client, {})
    client.set("{cb:billing}", "no hash")
    assert host.admit(T0).tag == "unavailable"
    assert host.take_sent() == ["HMGET"]
    assert host.circuit.call("in-flight") == 0


def test_a_component_and_the_python_package_share_one_circuit(server: Server, client: redis.Redis) -> None:
    store = RedisStore(redis.Redis(port=server.port), timeout_ms=60_000)
    package = DistributedCircuitBreaker("orders", store, failure_threshold=1, open_duration_ms=3_600_000)
    host = Host(client, {"failureThreshold": 1, "openDurationMs": 3_600_000}, name="orders")
    now = time.time_ns() // 1_000_000
    assert package.get_state() == "closed"

    assert host.settle(now, host.admit(now).payload, "failure") == "applied"
    with pytest.raises(CircuitOpenError):
        package.execute(lambda: None)

    package.reset()
    assert host.admit(now).payload.kind == "closed"
    package.force_open()
    assert fields_of(host.admit(now).payload) == {"state": "open", "retry-after-ms": None}
    seen = dataclasses.asdict(package.get_snapshot())
    assert host.snapshot(now) == {name.replace("_", "-"): value for name, value in seen.items()}
