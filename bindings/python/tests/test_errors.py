"""What the errors say, and that they say it on the other side of a pickle, too."""

from __future__ import annotations

import copy
import pickle

import pytest
import switchgear
from switchgear import (
    CallTimeoutError,
    CircuitBreaker,
    CircuitBreakerState,
    CircuitOpenError,
    ConfigError,
    InvalidNameError,
    InvalidTimeError,
    Refusal,
    StoreError,
    StoreUnavailableError,
    SwitchgearError,
    _native,
)

EACH: list[SwitchgearError] = [
    ConfigError("`window_ms` must be more", "window_ms", "0"),
    ConfigError("`window` is not an option", "window"),
    InvalidNameError("no name"),
    InvalidTimeError("no time"),
    CircuitOpenError("billing", "open", 12_300, "ECONNREFUSED"),
    CircuitOpenError("billing", "half-open"),
    CallTimeoutError("billing", 250),
    StoreError("LOADING"),
    StoreUnavailableError("billing", "LOADING"),
    StoreUnavailableError("billing"),
]


@pytest.mark.parametrize("error", EACH, ids=repr)
def test_an_error_is_rebuilt_with_its_fields(error: SwitchgearError) -> None:
    rebuilt: list[SwitchgearError] = [
        type(error)(*error.args),
        copy.copy(error),
        copy.deepcopy(error),
        *(pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)),
    ]
    for other in rebuilt:
        assert type(other) is type(error)
        assert other.args == error.args
        assert vars(other) == vars(error)
        assert (str(other), repr(other), other.code) == (str(error), repr(error), error.code)


def test_each_code_of_the_core_has_its_class() -> None:
    assert {error.code for error in EACH} == set(_native.error_codes())


@pytest.mark.parametrize("error", EACH, ids=repr)
def test_an_error_is_known_by_the_name_it_is_imported_by(error: SwitchgearError) -> None:
    assert type(error).__module__ == "switchgear"
    assert getattr(switchgear, type(error).__name__) is type(error)
    assert isinstance(error, SwitchgearError)


def test_wrong_input_is_a_value_error() -> None:
    for kind in (ConfigError, InvalidNameError, InvalidTimeError):
        assert issubclass(kind, ValueError)


def test_a_refusal_is_no_error_that_retry_loops_know() -> None:
    for kind in (CircuitOpenError, StoreUnavailableError):
        assert not issubclass(kind, (OSError, TimeoutError, ConnectionError))
        assert not kind.retryable
        assert kind.status_code == 503
    assert issubclass(CallTimeoutError, TimeoutError)


@pytest.mark.parametrize(
    ("retry_after_ms", "seconds", "headers", "said"),
    [
        (12_300, 12.3, {"Retry-After": "13"}, "retry in 12.3 s"),
        (12_301, 12.301, {"Retry-After": "13"}, "retry in 12.4 s"),
        (1, 0.001, {"Retry-After": "1"}, "retry in 0.1 s"),
        (0, 0.0, {"Retry-After": "0"}, "retry in 0.0 s"),
        (1000, 1.0, {"Retry-After": "1"}, "retry in 1.0 s"),
        (None, None, {}, "(forced"),
    ],
)
def test_how_long_to_wait_is_rounded_up(
    retry_after_ms: int | None, seconds: float | None, headers: dict[str, str], said: str
) -> None:
    for last_failure in (None, "boom"):
        error = CircuitOpenError("billing", "open", retry_after_ms, last_failure)
        assert error.retry_after == seconds
        assert error.headers == headers
        assert said in str(error)
        assert ("last failure: boom" in str(error)) == (last_failure is not None)


def test_the_message_of_a_refusal() -> None:
    told = str(CircuitOpenError("billing", "open", 12_300, "ECONNREFUSED"))
    assert told == "circuit `billing` is open, retry in 12.3 s (last failure: ECONNREFUSED)"
    assert (
        str(CircuitOpenError("billing", "open", None, "boom"))
        == "circuit `billing` is open (forced, last failure: boom)"
    )


def test_a_timeout_has_no_errno() -> None:
    error = CallTimeoutError("billing", 250)
    assert error.errno is None
    assert error.strerror is None
    assert str(error) == "call of circuit `billing` took longer than 250 ms"


def test_an_unavailable_store_says_as_much_as_a_refusal() -> None:
    error = StoreUnavailableError("billing", "LOADING")
    assert (error.retry_after_ms, error.retry_after, error.headers) == (None, None, {})
    assert str(error) == "the store of circuit `billing` did not answer: LOADING"
    assert str(StoreUnavailableError("billing")) == "the store of circuit `billing` did not answer"


@pytest.mark.parametrize(
    "refusal", [CircuitOpenError("billing", "open", 1_500), StoreUnavailableError("billing")], ids=repr
)
def test_both_refusals_are_caught_by_one_class(refusal: Refusal) -> None:
    def caught() -> Refusal:
        try:
            raise refusal
        except Refusal as error:
            return error

    assert (caught().circuit, caught().status_code, caught().retryable) == ("billing", 503, False)
    wait = caught().retry_after_ms
    assert caught().retry_after == (None if wait is None else 1.5)
    assert caught().headers == ({} if wait is None else {"Retry-After": "2"})
    assert Refusal.__module__ == "switchgear"


def test_no_other_error_is_a_refusal() -> None:
    assert {type(error) for error in EACH if isinstance(error, Refusal)} == {CircuitOpenError, StoreUnavailableError}


def test_a_class_that_is_both_a_refusal_and_a_clients_error_is_built_as_a_refusal() -> None:
    class ClientError(OSError):
        def __init__(self, message: str, *, request: object) -> None:
            raise AssertionError("it takes other arguments")

    class BothError(CircuitOpenError, ClientError):
        pass

    error = BothError("billing", "open", 100)
    assert isinstance(error, ClientError)
    assert error.args == ("billing", "open", 100, None)
    assert error.errno is None


def test_an_error_whose_class_has_no_name_is_counted_all_the_same() -> None:
    class Nameless(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]  # that is the point
            raise RuntimeError("I have none")

    class SilentError(Exception, metaclass=Nameless):
        pass

    breaker = CircuitBreaker("c", failure_threshold=1)
    with pytest.raises(SilentError), breaker:
        raise SilentError
    assert breaker.get_state() == "open"
    with pytest.raises(CircuitOpenError, match="an error without a name"):
        breaker.acquire()


def test_a_permit_of_the_bare_machine_is_not_copied_either() -> None:
    permit = CircuitBreakerState().acquire(0)
    with pytest.raises(TypeError, match="neither copied nor pickled"):
        copy.copy(permit)
