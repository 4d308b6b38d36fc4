"""Nothing that a host can hand in makes the component trap: each call gives a value, or an error with a code.

After a trap an instance can never be entered again, so whatever follows one fails as well.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from component import ComponentError, Instance, Resource, record
from hypothesis import given
from hypothesis import settings as examples
from hypothesis import strategies as st
from wasmtime.component import Record, Variant

# The suite runs often; SWITCHGEAR_EXAMPLES=1000 looks further.
EXAMPLES = int(os.environ.get("SWITCHGEAR_EXAMPLES", "60"))

OPTIONS = [
    *("tripOn", "failureThreshold", "windowMs", "failureRate", "minimumCalls", "openDurationMs", "openBackoff"),
    *("openDurationMaxMs", "halfOpenMaxCalls", "successThreshold", "probeTimeoutMs", "resetTimeoutMs"),
    *("halfOpenMaxProbes", "onStoreFailure", "idleTtlMs"),
]

u64 = st.one_of(
    st.integers(0, 2**64 - 1),
    st.integers(0, 5000),
    st.sampled_from([2**52, 2**52 + 1, 2**53, 2**63, 2**64 - 1, 3_155_760_000_000, 3_155_760_000_001]),
)
u32 = st.one_of(st.integers(0, 9), st.integers(0, 2**32 - 1))
s64 = st.one_of(st.integers(-2, 4), st.integers(-(2**63), 2**63 - 1))
# What is no Unicode, a lone surrogate, cannot be a text of a component: wasmtime refuses it before the call.
text = st.one_of(st.text(max_size=600), st.sampled_from(["", "}", "cb:", "\0", "x" * 513, "redis://me:secret@db"]))
number = st.one_of(
    st.floats(),
    st.integers(-5, 5000).map(float),
    st.sampled_from([0.1, 0.5, 1.5, 1e6, 1e300, math.nan, math.inf, -math.inf, -0.0, 3_155_760_000_000.0]),
)
word = st.sampled_from(["rolling", "consecutive", "rate", "fail-open", "fail-closed"])
value = st.one_of(
    number.map(lambda it: Variant("number", it)),
    st.one_of(word, text).map(lambda it: Variant("text", it)),
    text.map(lambda it: Variant("other", it)),
)
naming = st.sampled_from(["camel", "snake"])
name = st.one_of(st.sampled_from(OPTIONS), text)
setting = st.builds(lambda name, value: record(name=name, value=value), name, value)
layers = st.lists(st.lists(setting, max_size=4), max_size=3)
outcome = st.sampled_from(["success", "failure", "release"])
moment = st.one_of(st.integers(0, 5000), u64)


def permit(kinds: list[str], name: st.SearchStrategy[Any]) -> st.SearchStrategy[Record | None]:
    made = st.builds(
        lambda kind, epoch, name: record(kind=kind, epoch=epoch, id=name), st.sampled_from(kinds), u64, name
    )
    return st.one_of(st.none(), made)


of_breaker = st.one_of(
    st.tuples(st.just("can-request"), moment),
    st.tuples(st.just("settle"), moment, permit(["closed", "probe", "bypass"], u64), outcome),
    st.tuples(st.just("trip"), moment, st.one_of(st.none(), u64)),
    st.tuples(st.sampled_from(["reset", "force-open", "disable", "retry-after-ms", "snapshot"]), moment),
    st.tuples(st.sampled_from(["state", "hints", "config"])),
)
of_recency = st.one_of(
    st.tuples(st.just("insert")),
    st.tuples(st.sampled_from(["touch", "remove"]), u32),
    st.tuples(st.just("note"), u32, st.booleans()),
)
call_id = st.builds(lambda nonce, counter: record(nonce=nonce, counter=counter), u64, u64)
ticket = st.one_of(st.integers(0, 12), u64)
message = st.one_of(st.sampled_from(["NOSCRIPT", "TRYAGAIN", "LOADING"]), text)
field = st.one_of(st.none(), st.sampled_from(["open", "half-open", "forced-open", "disabled", "0", "1000"]), text)
times = st.builds(lambda host, store: record(host=host, store=store), moment, st.one_of(st.none(), moment))
kinds_of_permit = ["closed", "probe", "bypass", "unasked", "local-closed", "local-probe"]
of_circuit = st.one_of(
    st.tuples(st.sampled_from(["admit", "get-state"]), times),
    st.tuples(st.just("settle"), times, permit(kinds_of_permit, call_id), outcome),
    st.tuples(
        st.just("control"),
        times,
        st.one_of(
            st.sampled_from(["reset", "force-open", "disable"]).map(Variant),
            st.one_of(st.none(), u64).map(lambda it: Variant("trip", it)),
        ),
    ),
    st.tuples(st.just("on-reading"), times, ticket, st.tuples(field, field, field, field, field)),
    st.tuples(st.just("on-reply"), times, ticket, st.lists(s64, max_size=14)),
    st.tuples(st.just("on-error"), times, ticket, message),
    st.tuples(st.just("on-deadline"), times, ticket),
    st.tuples(st.just("on-event"), times, st.one_of(text, st.just("1 0 1 0 9 9 5 50 00000000000000cd billing\ni"))),
    st.tuples(st.just("admit-unasked"), times),
    st.tuples(st.sampled_from(["success-is-free", "in-flight", "next-ask", "free-until"])),
)
WITHOUT_NODE = ("admit-unasked", "success-is-free", "in-flight", "next-ask", "free-until")


@pytest.fixture(scope="module")
def instance() -> Instance:
    return Instance()


def attempt(call: Callable[[], Any]) -> Any:
    """What it gives; none for an error, which has one of the stable codes and says something."""
    try:
        return call()
    except ComponentError as error:
        wrong = error
    assert wrong.code in ("config_invalid", "name_invalid", "time_invalid")
    assert str(wrong)
    return None


def run(made: Resource | None, calls: list[tuple[Any, ...]]) -> None:
    if made is None:
        return
    for call in calls:
        attempt(partial(made.call, *call))
    made.drop()


@examples(max_examples=EXAMPLES, deadline=None)
@given(naming, layers)
def test_options(instance: Instance, naming: str, layers: list[list[Record]]) -> None:
    run(attempt(lambda: Resource(instance, "local", "breaker", naming, layers)), [("config",)])


@examples(max_examples=EXAMPLES, deadline=None)
@given(st.lists(of_breaker, max_size=25), st.sampled_from(["rolling", "consecutive", "rate"]))
def test_breakers(instance: Instance, calls: list[tuple[Any, ...]], trip_on: str) -> None:
    options = [record(name="tripOn", value=Variant("text", trip_on))]
    run(Resource(instance, "local", "breaker", "camel", [options]), calls)


@examples(max_examples=EXAMPLES, deadline=None)
@given(u32, st.lists(of_recency, max_size=25))
def test_the_order_of_groups(instance: Instance, capacity: int, calls: list[tuple[Any, ...]]) -> None:
    run(Resource(instance, "local", "recency", capacity, by="constructor"), calls)


@examples(max_examples=EXAMPLES, deadline=None)
@given(st.tuples(text, text, u64, text), naming, layers)
def test_names_and_options_of_shared_circuits(
    instance: Instance, names: tuple[str, str, int, str], naming: str, layers: list[list[Record]]
) -> None:
    made = attempt(lambda: Resource(instance, "shared", "circuit", *names, naming, layers))
    run(made, [("admit-unasked", record(host=0, store=None)), ("next-ask",)])


@examples(max_examples=EXAMPLES, deadline=None)
@given(u64, st.lists(of_circuit, max_size=25), st.sampled_from(["local", "fail-open", "fail-closed"]))
def test_shared_circuits(instance: Instance, nonce: int, calls: list[tuple[Any, ...]], on_store_failure: str) -> None:
    options = [record(name="onStoreFailure", value=Variant("text", on_store_failure))]
    node = Resource(instance, "shared", "node", by="constructor")
    made = Resource(instance, "shared", "circuit", "billing", "cb:", nonce, "host-1", "camel", [options])
    run(made, [(name, *rest) if name in WITHOUT_NODE else (name, node.handle, *rest) for name, *rest in calls])
    node.drop()


@examples(max_examples=EXAMPLES, deadline=None)
@given(naming, st.sampled_from(["timeout-ms", "slow-call-ms", "max-keys", "for-ms", "idle-ttl-ms"]), value)
def test_options_of_hosts(instance: Instance, naming: str, option: str, value: Variant) -> None:
    attempt(lambda: instance.call("host", "check-option", naming, option, value))


@examples(max_examples=EXAMPLES, deadline=None)
@given(text, st.integers(0, 2**16 - 1))
def test_texts_and_statuses(instance: Instance, text: str, status: int) -> None:
    attempt(lambda: instance.call("host", "check-name", text))
    assert isinstance(instance.call("host", "without-credentials", text), str)
    assert isinstance(instance.call("host", "status-counts", status), bool)
