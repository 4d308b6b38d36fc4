"""The shared half for real: what it asks for is sent to a Redis, and what comes back is handed in."""

from __future__ import annotations

import dataclasses
import hashlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis
from component import Instance, Resource, fields_of, record, settings
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
        layers = [settings(options)]
        self.circuit = Resource(self.instance, "shared", "circuit", name, "cb:", 7, "host-1", "camel", layers)
        self.node = Resource(self.instance, "shared", "node", by="constructor")
        self.client = client
        self.by_script = by_script
        self.sent: list[str] = []
        self.transitions: list[tuple[str, str, str]] = []

    def admit(self, now: int) -> Any:
        return self.carry(now, "admit")

    def settle(self, now: int, permit: Record | None, outcome: str) -> str:
        status: str = self.carry(now, "settle", permit, outcome).payload
        return status

    def control(self, now: int, operation: Variant) -> str:
        tag: str = self.carry(now, "control", operation).tag
        return tag

    def snapshot(self, now: int) -> dict[str, Any]:
        return fields_of(self.carry(now, "get-state").payload)

    def ask(self, now: int, method: str, *arguments: Any) -> Any:
        """Calls what takes a node and the time."""
        return self.circuit.call(method, self.node.handle, times(now), *arguments)

    def carry(self, now: int, method: str, *arguments: Any) -> Any:
        """Begins, and sends until there is nothing more to send; the answer."""
        begun = self.ask(now, method, *arguments)
        answer = self.heard(begun.payload) if begun.tag == "answered" else None
        while (ask := self.circuit.call("next-ask")) is not None:
            try:
                step = self.hand_in(now, ask, self.send(ask.command))
            except ResponseError as error:
                step = self.ask(now, "on-error", ask.ticket, f"{error.status_code} {error}")
            answer = self.heard(step) or answer
        return answer

    def heard(self, step: Any) -> Any:
        if step.transition is not None:
            made = fields_of(step.transition)
            self.transitions.append((made["from-state"], made["to-state"], made["reason"]))
        return step.answer

    def send(self, command: Any) -> Any:
        send: Callable[..., Any] = self.client.execute_command
        if command.tag == "time":
            self.sent.append("TIME")
            return send("TIME")
        if command.tag == "try-write":
            self.sent.append("HDEL")
            return send("HDEL", command.payload, "")
        run = fields_of(command.payload)
        if run["script"] == "admit" and not self.by_script:
            self.sent.append("HMGET")
            return self.client.hmget(run["keys"][0], self.fields)
        script = self.scripts[run["script"]]
        head = ["EVAL", script.text] if run["by-text"] else ["EVALSHA", script.sha1]
        self.sent.append(f"{head[0]} {run['script']}")
        return send(*head, len(run["keys"]), *run["keys"], *run["arguments"])

    def hand_in(self, now: int, ask: Any, reply: Any) -> Any:
        if ask.command.tag == "run" and ask.command.payload.script == "admit":
            return self.ask(now, "on-reading", ask.ticket, tuple(reply))
        return self.ask(now, "on-reply", ask.ticket, list(reply) if isinstance(reply, (list, tuple)) else [reply])

    def take_sent(self) -> list[str]:
        sent, self.sent = self.sent, []
        return sent


def times(now: int) -> Record:
    """A made-up clock, for the host and for the store."""
    return record(host=now, store=now)


@pytest.fixture
def server() -> Iterator[Server]:
    with start_server() as server:
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[redis.Redis]:
    with redis.Redis(port=server.port, decode_responses=True, protocol=2) as client:
        yield client


def test_a_shared_circuit_trips_probes_and_closes(client: redis.Redis) -> None:
    host = Host(client, {"failureThreshold": 2, "openDurationMs": 1000, "openCacheMs": 0})

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
    host = Host(client, {"failureThreshold": 1, "openCacheMs": 0}, by_script=True)
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
    host = Host(client, {"onStoreFailure": "fail-closed"})
    client.set("{cb:billing}", "no hash")
    assert host.admit(T0).tag == "unavailable"
    assert host.take_sent() == ["HMGET"]
    assert host.circuit.call("in-flight") == 0


def test_while_the_store_does_not_answer_the_process_decides_and_looks_once_a_second(client: redis.Redis) -> None:
    host = Host(client, {"failureThreshold": 1})
    client.set("{cb:billing}", "no hash")
    for now in range(T0, T0 + 3):
        assert host.admit(now).payload.kind == "local-closed"
    assert host.take_sent() == ["HMGET"] * 3
    granted = host.admit(T0 + 3)
    assert host.settle(T0 + 4, granted.payload, "failure") == "applied"
    assert host.admit(T0 + 5).payload.state == "open"
    assert host.take_sent() == []
    assert host.transitions == [("closed", "open", "threshold")]
    client.delete("{cb:billing}")
    assert host.admit(T0 + 30_004).payload.kind == "local-probe"
    assert host.take_sent() == ["HMGET"], "a look of its own"
    assert host.node.call("is-asked")


def test_the_server_s_time_is_asked_where_nobody_says_it(client: redis.Redis) -> None:
    host = Host(client, {})
    begun = host.circuit.call("admit", host.node.handle, record(host=5, store=None))
    ask = host.circuit.call("next-ask")
    assert (begun, ask.command.tag) == (Variant("wait", ask.ticket), "time")
    at = record(host=5, store=None)
    host.circuit.call("on-reply", host.node.handle, at, ask.ticket, list(host.send(ask.command)))
    assert host.circuit.call("next-ask").command.payload.script == "admit"
    assert host.node.call("now", 5) > T0


def test_who_asks_meanwhile_joins_and_a_known_answer_is_not_asked_for(client: redis.Redis) -> None:
    host = Host(client, {"closedCacheMs": 1000})
    first = host.ask(T0, "admit")
    assert host.ask(T0, "admit") == Variant("join", first.payload)
    ask = host.circuit.call("next-ask")
    step = host.hand_in(T0 + 1, ask, host.send(ask.command))
    assert (step.answer.payload.kind, step.others) == ("closed", "share")
    free = host.circuit.call("free-until")
    assert (free.permit, free.begins, free.ends) == (step.answer.payload, T0, T0 + 1000)
    assert host.ask(T0 + 999, "admit").tag == "answered"
    assert host.ask(T0 + 1000, "admit").tag == "wait"


def test_instances_hear_of_each_other_s_transitions(client: redis.Redis) -> None:
    one, two = Host(client, {"failureThreshold": 1}), Host(client, {"failureThreshold": 1, "closedCacheMs": 60_000})
    two.circuit = Resource(two.instance, "shared", "circuit", "billing", "cb:", 8, "host-2", "camel", [])
    subscribed: Callable[..., Any] = client.pubsub
    with subscribed(ignore_subscribe_messages=True) as heard:
        heard.subscribe(one.instance.call("shared", "channel", "cb:"))
        assert heard.get_message(timeout=60) is None
        assert one.settle(T0, one.admit(T0).payload, "failure") == "applied"
        message = heard.get_message(timeout=60)
    assert message is not None
    said = one.instance.call("shared", "parse-announcement", message["data"])
    assert (said.circuit, said.instance, fields_of(said.transition)["to-state"]) == ("billing", "host-1", "open")
    assert one.ask(T0 + 1, "on-event", message["data"]) is False
    assert two.ask(T0 + 1, "on-event", message["data"]) is True
    assert two.ask(T0 + 2, "admit").payload.answer.tag == "refused"


def test_a_component_and_the_python_package_share_one_circuit(server: Server, client: redis.Redis) -> None:
    store = RedisStore(redis.Redis(port=server.port), timeout_ms=60_000)
    package = DistributedCircuitBreaker("orders", store, failure_threshold=1, open_duration_ms=3_600_000)
    options = {"failureThreshold": 1, "openDurationMs": 3_600_000, "openCacheMs": 0}
    host = Host(client, options, name="orders")
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
