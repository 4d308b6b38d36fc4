"""What the component offers, by what it answers. That its rules are those of everywhere else the vectors show."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from component import (
    ComponentError,
    Instance,
    Resource,
    compiled_component,
    fields_of,
    record,
    settings,
    unwrapped,
    value_of,
)
from wasmtime import WasmtimeError
from wasmtime.component import Variant

WIT = Path(__file__).parents[1] / "wit"


@pytest.fixture
def instance() -> Instance:
    return Instance()


def breaker(instance: Instance, *layers: dict[str, Any], naming: str = "camel") -> Resource:
    return Resource(instance, "local", "breaker", naming, [settings(layer) for layer in layers])


def problem(call: Callable[..., object], *arguments: object) -> tuple[str, str | None, str | None, str]:
    with pytest.raises(ComponentError) as raised:
        call(*arguments)
    error = raised.value
    return error.code, error.field, error.value, str(error)


def test_it_needs_nothing_from_its_host_and_offers_four_interfaces() -> None:
    engine, component = compiled_component()
    assert component.type.imports(engine) == {}
    offered = [re.sub("@.*", "", name) for name in component.type.exports(engine)]
    assert offered == [f"switchgear:breaker/{name}" for name in ("types", "local", "shared", "host")]


def test_each_item_of_the_world_is_documented() -> None:
    undocumented = []
    for file in sorted(WIT.glob("*.wit")):
        lines = file.read_text().splitlines()
        for number, line in enumerate(lines, 1):
            words = line.strip()
            if not words or words.startswith(("///", "use ", "export ", "error,", "}")):
                continue
            if not lines[number - 2].strip().startswith("///"):
                undocumented.append(f"{file.name}:{number}: {words}")
    assert undocumented == []


def test_a_circuit_trips_probes_and_closes(instance: Instance) -> None:
    circuit = breaker(instance, {"failureThreshold": 2, "openDurationMs": 1000})
    decision = circuit.call("can-request", 0).decision
    assert (decision.tag, fields_of(decision.payload)) == ("allowed", {"kind": "closed", "epoch": 0, "id": 0})
    counted = circuit.call("settle", 0, decision.payload, "failure")
    assert (counted.status, counted.transition) == ("applied", None)
    tripped = circuit.call("settle", 5, decision.payload, "failure")
    assert fields_of(tripped.transition) == {
        "from-state": "closed",
        "to-state": "open",
        "at": 5,
        "reason": "threshold",
        "failures": 2,
        "open-ms": 1000,
        "epoch": 5,
    }
    refused = circuit.call("can-request", 1004).decision
    assert (refused.tag, fields_of(refused.payload)) == ("refused", {"state": "open", "retry-after-ms": 1})
    probe = circuit.call("can-request", 1005)
    assert fields_of(probe.decision.payload) == {"kind": "probe", "epoch": 1005, "id": 1}
    assert (getattr(probe.transition, "to-state"), probe.transition.reason) == ("half-open", "cooldown")
    full = circuit.call("can-request", 1006).decision
    assert fields_of(full.payload) == {"state": "half-open", "retry-after-ms": 999}
    # The call that was admitted before the trip, and its permit settled again.
    assert circuit.call("settle", 1007, decision.payload, "success").status == "stale"
    closed = circuit.call("settle", 1008, probe.decision.payload, "success")
    assert (closed.status, closed.transition.reason, circuit.call("state")) == ("applied", "probes-succeeded", "closed")


def test_manual_control(instance: Instance) -> None:
    circuit = breaker(instance)
    assert circuit.call("retry-after-ms", 0) == 0
    assert getattr(circuit.call("force-open", 1), "open-ms") is None
    assert (circuit.call("state"), circuit.call("retry-after-ms", 1)) == ("open", None)
    assert fields_of(circuit.call("snapshot", 1))["mode"] == "forced-open"
    assert getattr(circuit.call("disable", 2), "to-state") == "closed"
    assert circuit.call("can-request", 2).decision.payload.kind == "bypass"
    assert getattr(circuit.call("trip", 3, 70), "open-ms") == 70
    assert circuit.call("retry-after-ms", 3) == 70
    assert circuit.call("trip", 3, None) is None
    assert circuit.call("retry-after-ms", 3) == 30_000
    assert circuit.call("reset", 4).reason == "manual"
    assert circuit.call("reset", 5) is None


def test_hints_say_what_is_bound_to_come(instance: Instance) -> None:
    circuit = breaker(instance, {"failureThreshold": 1, "openDurationMs": 1000})
    free = circuit.call("hints")
    assert fields_of(getattr(free, "admit-free")) == {"kind": "closed", "epoch": 0, "id": 0}
    assert (getattr(free, "success-free"), free.refuse) == (True, None)
    circuit.call("settle", 100_000, None, "failure")
    tripped = circuit.call("hints")
    assert (getattr(tripped, "admit-free"), fields_of(tripped.refuse)) == (None, {"begin": 40_000, "end": 101_000})


def test_layers_and_what_came_of_them(instance: Instance) -> None:
    outer = {"failure_threshold": 3, "open_duration_ms": 500}
    circuit = breaker(instance, outer, {"trip_on": "rate", "failure_rate": 0.25}, {}, naming="snake")
    assert [(each.name, each.value) for each in circuit.call("config")] == [
        ("trip_on", Variant("text", "rate")),
        ("window_ms", Variant("number", 10_000.0)),
        ("failure_rate", Variant("number", 0.25)),
        ("minimum_calls", Variant("number", 20.0)),
        ("open_duration_ms", Variant("number", 500.0)),
        ("open_backoff", Variant("number", 1.0)),
        ("open_duration_max_ms", Variant("number", 5000.0)),
        ("half_open_max_calls", Variant("number", 1.0)),
        ("success_threshold", Variant("number", 1.0)),
        ("probe_timeout_ms", Variant("number", 500.0)),
    ]
    again = Resource(instance, "local", "breaker", "snake", [circuit.call("config")])
    assert again.call("config") == circuit.call("config")


def test_what_is_no_option(instance: Instance) -> None:
    assert problem(lambda: breaker(instance, {"failureThreshold": 0})) == (
        "config_invalid",
        "failureThreshold",
        "0",
        "`failureThreshold` must be an integer from 1 to 1000000, got `0`",
    )
    assert problem(lambda: breaker(instance, {"open_backoff": "twice"}, naming="snake"))[:3] == (
        "config_invalid",
        "open_backoff",
        "'twice'",
    )
    assert problem(lambda: breaker(instance, {"windowMs": None}))[1:3] == ("windowMs", "null")
    code, field, value, message = problem(lambda: breaker(instance, {"failure_threshold": 1}))
    assert (code, field, value) == ("config_invalid", "failure_threshold", None)
    assert message.startswith("`failure_threshold` is not an option; valid are tripOn, ")
    assert problem(lambda: breaker(instance, {"failureRate": 0.5}))[3] == "`failureRate` needs tripOn: 'rate'"


def test_what_is_no_moment_changes_nothing(instance: Instance) -> None:
    circuit = breaker(instance, {"failureThreshold": 1})
    late = 2**52 + 1
    operations: list[tuple[Any, ...]] = [
        ("can-request", late),
        ("settle", late, None, "failure"),
        ("reset", late),
        ("trip", late, None),
        ("force-open", late),
        ("disable", late),
        ("retry-after-ms", late),
        ("snapshot", late),
    ]
    for operation in operations:
        code, field, value, message = problem(circuit.call, *operation)
        assert (code, field, value) == ("time_invalid", None, None)
        assert message == (
            "`now` must be an integer from 0 to 4503599627370496 (2^52) milliseconds, got `4503599627370497`"
        )
    assert circuit.call("trip", 2**52, None).at == 2**52


@pytest.mark.parametrize(
    "misuse",
    [
        lambda circuit, _: circuit.call("settle", 1, None, "exploded"),
        lambda circuit, _: (circuit.drop(), circuit.call("state")),
        lambda circuit, other: other.call("touch", circuit.handle),
        lambda circuit, other: circuit._instance.call("local", "[method]breaker.state", other.handle),
    ],
    ids=["a word that there is not", "what was dropped", "what is no number", "another resource"],
)
def test_what_is_no_value_of_its_type_is_refused_by_the_runtime_and_harms_no_other_instance(
    instance: Instance, misuse: Callable[[Resource, Resource], object]
) -> None:
    bystander = breaker(Instance(), {"failureThreshold": 1})
    other = Resource(instance, "local", "recency", 1, by="constructor")
    with pytest.raises((WasmtimeError, TypeError)):
        misuse(breaker(instance), other)
    assert bystander.call("settle", 1, None, "failure").transition.reason == "threshold"


def test_what_is_no_length_of_an_opening(instance: Instance) -> None:
    circuit = breaker(instance, naming="snake")
    for length in (0, 3_155_760_000_001, 2**64 - 1):
        assert problem(circuit.call, "trip", 0, length)[:2] == ("config_invalid", "for_ms")
    assert circuit.call("state") == "closed"
    shared = circuit_of_a_fleet(instance)
    code, field, value, _ = problem(shared.call, "control", 0, Variant("trip", 0))
    assert (code, field, value, shared.call("in-flight")) == ("config_invalid", "forMs", "0", 0)


def test_the_order_of_a_group(instance: Instance) -> None:
    order = Resource(instance, "local", "recency", 2, by="constructor")

    def insert() -> tuple[object, ...]:
        return tuple(fields_of(order.call("insert")).values())

    assert [insert(), insert()] == [(0, False), (1, False)]
    order.call("touch", 0)
    assert insert() == (1, True)
    order.call("note", 0, False)
    assert insert() == (1, True)
    order.call("remove", 0)
    assert insert() == (0, False)
    for slot in (2, 7, 2**32 - 1):
        order.call("touch", slot)
        order.call("note", slot, True)
        order.call("remove", slot)
    order.drop()


def test_what_hosts_need_besides(instance: Instance) -> None:
    assert instance.call("host", "check-name", "GET /users/{id}") is None
    assert problem(instance.call, "host", "check-name", "a\nb")[:3] == ("name_invalid", None, None)
    counting = [status for status in (200, 404, 429, 500, 501, 503) if instance.call("host", "status-counts", status)]
    assert counting == [429, 500, 503]
    assert instance.call("host", "without-credentials", "at redis://me:secret@db") == "at redis://***@db"


def test_the_options_that_hosts_add(instance: Instance) -> None:
    check = partial(instance.call, "host", "check-option")
    century = 3_155_760_000_000
    for option, name, most in [
        ("timeout-ms", "timeoutMs", 2**31 - 1),
        ("slow-call-ms", "slowCallMs", century),
        ("max-keys", "maxKeys", 1_000_000),
        ("for-ms", "forMs", century),
        ("idle-ttl-ms", "idleTtlMs", century),
    ]:
        assert check("camel", option, value_of(most)) == most
        assert problem(check, "camel", option, value_of(most + 1))[:2] == ("config_invalid", name)
        assert problem(check, "camel", option, value_of(True))[2] == "true"
    said = problem(check, "snake", "max-keys", value_of(0.5))[3]
    assert said == "`max_keys` must be an integer from 1 to 1000000, got `0.5`"


def test_scripts_and_constants_of_the_shared_half(instance: Instance) -> None:
    scripts = instance.call("shared", "scripts")
    assert [script.name for script in scripts] == [
        "admit",
        "can-request",
        "record-success",
        "record-failure",
        "release",
        "get-state",
        "control",
    ]
    assert instance.call("shared", "admission-fields") == ["state", "mode", "epoch", "opened_at", "open_ms"]
    assert instance.call("shared", "default-prefix") == "cb:"
    assert instance.call("shared", "default-timeout-ms") == 100


class Shared:
    """A circuit of a fleet, and the node that it lives on."""

    def __init__(self, instance: Instance, name: str, prefix: str, layers: tuple[dict[str, Any], ...]) -> None:
        given = [settings(each) for each in layers]
        self.circuit = Resource(instance, "shared", "circuit", name, prefix, 0x5EED, "host-1", "camel", given)
        self.node = Resource(instance, "shared", "node", by="constructor")

    def call(self, method: str, *arguments: Any) -> Any:
        """Calls a method; of one that takes the time, the time comes first and serves as both."""
        if method in ("success-is-free", "in-flight", "next-ask", "free-until"):
            return self.circuit.call(method)
        now, *rest = arguments
        return self.circuit.call(method, self.node.handle, record(host=now, store=now), *rest)

    def asks(self, method: str, *arguments: Any) -> Any:
        """Begins what is not answered at once: the one thing to send."""
        begun = self.call(method, *arguments)
        ask = self.call("next-ask")
        assert (begun, self.call("next-ask")) == (Variant("wait", ask.ticket), None)
        return ask


def circuit_of_a_fleet(
    instance: Instance, *layers: dict[str, Any], name: str = "billing", prefix: str = "cb:"
) -> Shared:
    return Shared(instance, name, prefix, layers)


UNHEARD_OF = (None,) * 5
OPEN = ("open", None, "7", "1000", "500")


def test_what_is_no_shared_circuit(instance: Instance) -> None:
    assert problem(lambda: circuit_of_a_fleet(instance, name=""))[:2] == ("name_invalid", None)
    assert problem(lambda: circuit_of_a_fleet(instance, prefix="}"))[0] == "name_invalid"
    assert problem(lambda: circuit_of_a_fleet(instance, {"onStoreFailure": "guess"}))[:3] == (
        "config_invalid",
        "onStoreFailure",
        "'guess'",
    )
    assert problem(lambda: circuit_of_a_fleet(instance, {"quorum": 6}))[:3] == ("config_invalid", "quorum", "6")


def test_an_admission_and_its_outcome(instance: Instance) -> None:
    shared = circuit_of_a_fleet(instance, {"tripOn": "rate"})
    ask = shared.asks("admit", 5)
    assert (ask.ticket, fields_of(ask)["delay-ms"], ask.command.tag) == (1, 0, "run")
    assert fields_of(ask.command.payload) == {
        "script": "admit",
        "by-text": False,
        "keys": ["{cb:billing}"],
        "arguments": [],
    }
    step = shared.call("on-reading", 6, ask.ticket, UNHEARD_OF)
    assert (step.answer.tag, step.others) == ("granted", "share")
    permit = step.answer.payload
    assert (permit.kind, permit.epoch, permit.id.nonce) == ("closed", 0, 0x5EED)
    assert shared.call("success-is-free") is False
    success = shared.call("settle", 7, permit, "success")
    assert (success.tag, success.payload.answer) == ("answered", Variant("settled", "applied")), "nobody waits for it"
    told = shared.call("next-ask")
    run = told.command.payload
    assert run.script == "record-success"
    assert run.keys == ["{cb:billing}", "{cb:billing}:f", "{cb:billing}:p", "{cb:billing}:r"]
    assert run.arguments[:4] == ["7", "0000000000005eed0000000000002", "0", "0"]
    done = shared.call("on-reply", 8, told.ticket, [1, 0, 0, 0, 0, -1, -1, 0, -1, 0])
    assert (done.answer, shared.call("in-flight")) == (None, 0)
    failure = shared.asks("settle", 9, permit, "failure")
    done = shared.call("on-reply", 9, failure.ticket, [1, 0, 0, 0, 0, -1, -1, 0, -1, 0])
    assert (done.answer, done.counted) == (Variant("settled", "applied"), True)
    released = shared.call("settle", 9, permit, "release")
    assert (released.payload.answer, shared.call("next-ask")) == (Variant("settled", "applied"), None)


def test_an_open_circuit_refuses_from_what_was_read(instance: Instance) -> None:
    shared = circuit_of_a_fleet(instance)
    answer = shared.call("on-reading", 1400, shared.asks("admit", 1400).ticket, OPEN).answer
    assert (answer.tag, fields_of(answer.payload)) == ("refused", {"state": "open", "retry-after-ms": 100})
    known = shared.call("admit", 1499)
    assert (known.tag, fields_of(known.payload.answer.payload)["retry-after-ms"]) == ("answered", 1)


def test_a_late_probe_is_given_back(instance: Instance) -> None:
    shared = circuit_of_a_fleet(instance, {"onStoreFailure": "fail-closed"})
    shared.call("on-reading", 1500, shared.asks("admit", 1500).ticket, OPEN)
    ask = shared.call("next-ask")
    assert (ask.command.payload.script, shared.call("in-flight")) == ("can-request", 1)
    late = shared.call("on-deadline", 1600, ask.ticket)
    assert (late.answer.tag, late.others) == ("unavailable", "go-on")
    step = shared.call("on-reply", 1600, ask.ticket, [2, 2, 0, 1500, 0, 1, 1, 0, -1, 0])
    back = shared.call("next-ask")
    assert (step.answer, step.transition.reason, back.command.payload.script) == (None, "cooldown", "release")
    assert shared.call("on-reply", 1601, back.ticket, [1, 2, 0, 1500, 0, -1, -1, 0, -1, 0]).answer is None


def test_a_store_that_fails(instance: Instance) -> None:
    def answer(policy: str) -> tuple[Shared, Any]:
        shared = circuit_of_a_fleet(instance, {"onStoreFailure": policy})
        return shared, shared.call("on-error", 0, shared.asks("admit", 0).ticket, "LOADING").answer

    assert answer("fail-closed")[1].tag == "unavailable"
    for policy, kind, status in [("fail-open", "unasked", "stale"), ("local", "local-closed", "applied")]:
        shared, granted = answer(policy)
        assert (granted.tag, granted.payload.kind) == ("granted", kind)
        settled = shared.call("settle", 1, granted.payload, "failure")
        assert settled.payload.answer == Variant("settled", status)


def test_a_node_that_fails_three_times_is_asked_no_more_and_looked_after(instance: Instance) -> None:
    shared = circuit_of_a_fleet(instance)
    health = [shared.call("on-error", now, shared.asks("admit", now).ticket, "gone").health for now in range(3)]
    assert health == [None, None, Variant("degraded", "node")]
    assert (shared.call("admit", 3).tag, shared.call("next-ask")) == ("answered", None)
    shared.call("admit", 1002)
    look = shared.call("next-ask")
    assert shared.call("on-reading", 1003, look.ticket, UNHEARD_OF).health == Variant("restored", "node")
    assert shared.node.call("is-asked")
    assert shared.node.call("replaced") is None


def test_what_no_script_of_ours_replies(instance: Instance) -> None:
    for reply in ([], [7], [1] * 40, [-(2**63), 2**63 - 1]):
        shared = circuit_of_a_fleet(instance, {"onStoreFailure": "fail-closed"})
        step = shared.call("on-reply", 0, shared.asks("get-state", 0).ticket, reply)
        assert (step.malformed, step.answer.tag) == (True, "unavailable"), reply
    shared = circuit_of_a_fleet(instance)
    said = {"answer": None, "transition": None, "counted": False, "config_mismatch": False, "malformed": False}
    nothing = record(**said, others="share", health=None)
    assert shared.call("on-reply", 0, 99, [1]) == nothing
    assert shared.call("on-error", 0, 99, "") == nothing
    assert shared.call("on-reading", 0, 99, UNHEARD_OF) == nothing
    assert shared.call("on-deadline", 0, 99) == nothing
    assert instance.call("shared", "parse-announcement", "hello") is None


def test_a_result_is_read_as_it_is_meant() -> None:
    error = record(code="a", message="b", field=None, value=None)
    for result in (error, Variant("err", error)):
        with pytest.raises(ComponentError):
            unwrapped(result)
    assert [unwrapped(Variant("ok", 1)), unwrapped(Variant("granted", 1)), unwrapped(None)] == [
        1,
        Variant("granted", 1),
        None,
    ]
