"""Wrong input: a clear error that names field, value and what is valid, and nothing was changed."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from support.clock import ManualClock
from switchgear import (
    CircuitBreaker,
    CircuitBreakerGroup,
    CircuitBreakerState,
    ConfigError,
    InvalidNameError,
    InvalidTimeError,
    _native,
)

MAKERS: dict[str, Callable[..., object]] = {
    "breaker": lambda **policy: CircuitBreaker("c", **policy),
    "group": CircuitBreakerGroup,
    "state": CircuitBreakerState,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize(
    ("policy", "field", "value"),
    [
        ({"failure_threshold": 0}, "failure_threshold", "0"),
        ({"failure_threshold": 1.5}, "failure_threshold", "1.5"),
        ({"failure_threshold": "5"}, "failure_threshold", "'5'"),
        ({"failure_threshold": True}, "failure_threshold", "True"),
        ({"failure_threshold": 10**30}, "failure_threshold", "an integer of more than 64 bits"),
        ({"failure_threshold": float("nan")}, "failure_threshold", "NaN"),
        ({"failure_threshold": float("inf")}, "failure_threshold", "Infinity"),
        ({"failure_threshold": Decimal(5)}, "failure_threshold", "Decimal object"),
        ({"window_ms": -1}, "window_ms", "-1"),
        ({"open_backoff": 0.5}, "open_backoff", "0.5"),
        ({"trip_on": "sometimes"}, "trip_on", "'sometimes'"),
        ({"trip_on": 1}, "trip_on", "1"),
        ({"failure_rate": 0.5}, "failure_rate", None),
        ({"open_duration_ms": 1000, "open_duration_max_ms": 999}, "open_duration_max_ms", "999"),
        ({"open_duration_ms": 1, "reset_timeout_ms": 1}, "open_duration_ms", None),
        ({"failure_treshold": 5}, "failure_treshold", None),
        ({"failureThreshold": 5}, "failureThreshold", None),
        ({"refusal_stack": True}, "refusal_stack", None),
        ({"is_failure": 5}, "is_failure", "5"),
        ({"is_failure_result": []}, "is_failure_result", "list object"),
        ({"ignore": "KeyError"}, "ignore", "'KeyError'"),
        ({"ignore": (KeyError, int)}, "ignore", "callable int"),
        ({"ignore": KeyError("x")}, "ignore", "KeyError object"),
        ({"slow_call_ms": 0}, "slow_call_ms", "0"),
        ({"timeout_ms": 0}, "timeout_ms", "0"),
        ({"timeout_ms": 2**31}, "timeout_ms", "2147483648"),
        ({"timeout_ms": "1s"}, "timeout_ms", "'1s'"),
        ({"observe": 1}, "observe", "1"),
        ({"clock": 5}, "clock", "5"),
    ],
)
def test_a_wrong_policy(make: Callable[..., object], policy: dict[str, Any], field: str, value: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        make(**policy)
    error = caught.value
    assert error.field == field
    assert f"`{field}`" in str(error)
    if value is not None:
        assert error.value is not None
        assert error.value.strip("'\"") == value.strip("'")


def test_the_error_of_an_unknown_option_says_what_there_is() -> None:
    with pytest.raises(ConfigError) as caught:
        CircuitBreaker("c", failure_treshold=1)  # type: ignore[call-arg]  # that is what is tested
    for name, _, _ in _native.fields():
        assert name in str(caught.value)
    for name in ("is_failure", "ignore", "slow_call_ms", "timeout_ms", "observe", "clock"):
        assert name in str(caught.value)

    for other in ("reset_timeout_ms", "half_open_max_probes"):
        assert f"(or {other})" in str(caught.value)
    assert "max_keys" not in str(caught.value)
    with pytest.raises(ConfigError, match=r"valid are trip_on, .*, clock, name, max_keys$"):
        CircuitBreakerGroup(failure_treshold=1)  # type: ignore[call-arg]  # that is what is tested


@pytest.mark.parametrize("given", [KeyError, (KeyError, ValueError)])
def test_exception_classes_are_for_ignore(given: Any) -> None:
    with pytest.raises(ConfigError, match=r"`is_failure` must be a predicate.*for exception types there is `ignore`"):
        CircuitBreaker("c", is_failure=given)
    assert CircuitBreaker("c", ignore=given).get_state() == "closed"


def test_a_long_name_of_an_option_is_cut() -> None:
    with pytest.raises(ConfigError) as caught:
        CircuitBreaker("c", **{"x" * 10_000: 1})  # type: ignore[arg-type]  # that is what is tested
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_none_is_left_out(make: Callable[..., object]) -> None:
    names = [name for name, _, _ in _native.fields()]
    host = ["is_failure", "ignore", "is_failure_result", "slow_call_ms", "timeout_ms", "observe", "clock"]
    make(**dict.fromkeys([*names, "reset_timeout_ms", "half_open_max_probes", *host]))


def test_synonyms() -> None:
    clock = ManualClock()
    breaker = CircuitBreaker("c", reset_timeout_ms=500, half_open_max_probes=2, clock=clock)
    breaker.trip()
    assert breaker.get_snapshot().remaining_open_ms == 500
    clock.now += 500
    assert [breaker.can_execute() for _ in range(3)] == [True, True, False]


def test_nothing_of_an_object_is_shown() -> None:
    class Secret:
        def __repr__(self) -> str:
            raise AssertionError("nobody is to look")

        __str__ = __repr__

    for name in ("failure_threshold", "ignore", "observe", "clock", "timeout_ms"):
        with pytest.raises(ConfigError) as caught:
            CircuitBreaker("c", **{name: Secret()})  # type: ignore[arg-type]  # that is what is tested
        assert "Secret object" in str(caught.value)


@pytest.mark.parametrize("name", ["", "x" * 513, "a\nb", "a\x00b", "a\x7fb", "a\x85b", "\ud800", 5, None, b"bytes"])
def test_wrong_names(name: Any) -> None:
    with pytest.raises(InvalidNameError):
        CircuitBreaker(name)
    with pytest.raises(InvalidNameError):
        CircuitBreakerGroup().for_key(name)
    if name is not None:
        with pytest.raises(InvalidNameError):
            CircuitBreakerGroup(name=name)


@pytest.mark.parametrize("name", ["a", "x" * 512, "GET /users/{id}", "}x", "a b", "\U0001f50c", "é" * 256])
def test_names(name: str) -> None:
    assert CircuitBreaker(name).name == name
    assert CircuitBreakerGroup().for_key(name).name == name


@pytest.mark.parametrize("reading", [-1, 2**52 + 1, 1.5, float("nan"), "0", None, True, 10**40])
def test_a_clock_that_gives_no_time_is_found_out_at_once(reading: Any) -> None:
    with pytest.raises(InvalidTimeError, match=r"`clock` gave no time: .* milliseconds, got `"):
        CircuitBreaker("c", clock=lambda: reading)
    with pytest.raises(InvalidTimeError):
        CircuitBreakerGroup(clock=lambda: reading)


def test_what_a_clock_raises_comes_through() -> None:
    def broken() -> int:
        raise LookupError("no clock here")

    with pytest.raises(LookupError):
        CircuitBreaker("c", clock=broken)


@pytest.mark.parametrize("for_ms", [0, -1, 1.5, "1", True, 2**60])
def test_a_trip_for_no_duration_trips_nothing(for_ms: Any) -> None:
    breaker = CircuitBreaker("c")
    state = CircuitBreakerState()
    with pytest.raises(ConfigError) as caught:
        breaker.trip(for_ms=for_ms)
    assert caught.value.field == "for_ms"
    with pytest.raises(ConfigError) as caught:
        state.trip(0, for_ms)
    assert caught.value.field == "for_ms"
    assert breaker.get_state() == state.get_state() == "closed"


@pytest.mark.parametrize("max_keys", [0, -1, 1.5, "10", 1_000_001])
def test_the_size_of_a_group(max_keys: Any) -> None:
    with pytest.raises(ConfigError) as caught:
        CircuitBreakerGroup(max_keys=max_keys)
    assert caught.value.field == "max_keys"


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"fallback": "cached"}, "fallback"),
        ({"fallback_on": "always"}, "fallback_on"),
        ({"fallback_on": ["refusal"]}, "fallback_on"),
    ],
)
def test_wrong_options_of_a_call_run_nothing(options: dict[str, Any], field: str) -> None:
    breaker = CircuitBreaker("c")
    ran: list[int] = []
    with pytest.raises(ConfigError) as caught:
        breaker.execute(lambda: ran.append(1), **options)
    assert caught.value.field == field
    with pytest.raises(ConfigError) as caught:
        breaker.guard(**options)
    assert caught.value.field == field
    assert ran == []


def test_what_exists_once_can_be_neither_copied_nor_pickled() -> None:
    group = CircuitBreakerGroup()
    for one in (CircuitBreaker("c"), group, group.for_key("a"), CircuitBreakerState()):
        for way in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="neither copied nor pickled"):
                way(one)


def test_keywords_and_positions() -> None:
    assert CircuitBreaker(name="c").name == "c"
    with pytest.raises(TypeError):
        CircuitBreaker("c", {"failure_threshold": 1})  # type: ignore[call-arg, arg-type]  # options have names
    with pytest.raises(TypeError):
        CircuitBreakerGroup("name")  # type: ignore[call-arg]  # options have names
