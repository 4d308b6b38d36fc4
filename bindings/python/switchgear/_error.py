"""The errors. One class per stable code; the codes are the core's, and a test compares the two tables.

Each is rebuilt by `type(error)(*error.args)`, and so by pickle and copy, too.
"""

from __future__ import annotations

from typing import ClassVar, Final, Literal

# `Exception.__init__` is called by its name throughout: a class that is both one of these and an error of a client
# library has bases that take other arguments.


class SwitchgearError(Exception):
    """Base of all errors of this package."""

    code: ClassVar[str] = "switchgear"
    """The stable code of this error, the same in every language."""


class ConfigError(SwitchgearError, ValueError):
    """An option that cannot be taken; nothing was changed.

    Args:
        message: Names the field, the value and what is valid.
        field: The option's name.
        value: The value as an error may show it; `None` where the name itself is what is wrong.
    """

    code = "config_invalid"

    def __init__(self, message: str, field: str, value: str | None = None) -> None:
        Exception.__init__(self, message, field, value)
        self.field: Final = field
        self.value: Final = value

    def __str__(self) -> str:
        return str(self.args[0])


class InvalidNameError(SwitchgearError, ValueError):
    """What cannot name a circuit: names are 1 to 512 bytes of UTF-8 without control characters.

    Args:
        message: What is wrong with it.
    """

    code = "name_invalid"

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)


class InvalidTimeError(SwitchgearError, ValueError):
    """What is no moment: a time is an integer of milliseconds, 0 to 2^52. Nothing was changed.

    Args:
        message: What is wrong with it.
    """

    code = "time_invalid"

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)


class Refusal(SwitchgearError):  # noqa: N818 - what a fallback gets: an answer, and the base of two errors
    """Why a guarded function was not run: what is raised is a `CircuitOpenError` or a `StoreUnavailableError`.

    It has what web frameworks and retry loops want to know, whichever of the two it is.

    Args:
        circuit: The circuit's name.
        retry_after_ms: Milliseconds until a call may be admitted, never negative; `None` if nobody knows.
    """

    status_code: ClassVar[int] = 503
    """The HTTP status that fits."""
    retryable: ClassVar[bool] = False
    """A retry loop should stop here; it may come back after `retry_after`."""

    def __init__(self, circuit: str, retry_after_ms: int | None) -> None:
        # Not the arguments of the error: those are its own class's.
        self.circuit: Final = circuit
        self.retry_after_ms: Final = retry_after_ms

    @property
    def retry_after(self) -> float | None:
        """The same in seconds, as `time.sleep` and the retry libraries take it."""
        return None if self.retry_after_ms is None else self.retry_after_ms / 1000

    @property
    def headers(self) -> dict[str, str]:
        """`Retry-After` in whole seconds, rounded up; empty where the wait is unknown."""
        return {} if self.retry_after_ms is None else {"Retry-After": str(-(-self.retry_after_ms // 1000))}


class CircuitOpenError(Refusal):
    """The circuit refused the call; the function was not run. A fresh object each time.

    Neither a `TimeoutError` nor a `ConnectionError`: a retry loop that knows only those stops here.

    Args:
        circuit: The circuit's name.
        state: What refused: an open circuit, or a half-open one whose slots are all taken.
        retry_after_ms: Milliseconds until a call may be admitted, never negative; `None` if unknown, as when an
            operator holds the circuit open.
        last_failure: The text of the last failure that this process counted; `None` if there is none.

    Example:
        ```python
        from switchgear import CircuitBreaker, CircuitOpenError

        breaker = CircuitBreaker("billing")
        breaker.trip(for_ms=12_300)
        try:
            breaker.execute(lambda: "charged")
        except CircuitOpenError as error:
            assert error.circuit == "billing"
            assert error.headers == {"Retry-After": "13"}
        ```
    """

    code = "circuit_open"

    def __init__(
        self,
        circuit: str,
        state: Literal["open", "half-open"],
        retry_after_ms: int | None = None,
        last_failure: str | None = None,
    ) -> None:
        Exception.__init__(self, circuit, state, retry_after_ms, last_failure)
        Refusal.__init__(self, circuit, retry_after_ms)
        self.state: Final = state
        self.last_failure: Final = last_failure

    def __str__(self) -> str:
        what = f"circuit `{self.circuit}` is {self.state}"
        wait = self.retry_after_ms
        if wait is None:
            # Only an operator who holds it open leaves the wait unknown.
            return f"{what} (forced)" if self.last_failure is None else f"{what} (forced, {self._cause})"
        # One decimal, rounded up: a caller who waits that long does not come too early.
        tenths = -(-wait // 100)
        message = f"{what}, retry in {tenths // 10}.{tenths % 10} s"
        return message if self.last_failure is None else f"{message} ({self._cause})"

    @property
    def _cause(self) -> str:
        return f"last failure: {self.last_failure}"


class CallTimeoutError(SwitchgearError, TimeoutError):
    """A guarded call took longer than its `timeout_ms`. It counted as a failure.

    Args:
        circuit: The circuit's name.
        timeout_ms: The timeout in milliseconds.
    """

    code = "call_timeout"

    def __init__(self, circuit: str, timeout_ms: int) -> None:
        Exception.__init__(self, circuit, timeout_ms)
        self.circuit: Final = circuit
        self.timeout_ms: Final = timeout_ms

    def __str__(self) -> str:
        return f"call of circuit `{self.circuit}` took longer than {self.timeout_ms} ms"


class StoreError(SwitchgearError):
    """The store of a shared circuit answered with an error, or could not be reached.

    Args:
        message: What it said, without the user and password of a URL.
    """

    code = "store_error"

    def __init__(self, message: str) -> None:
        Exception.__init__(self, message)


class StoreUnavailableError(Refusal):
    """The store of a shared circuit did not answer, and so the call was refused (`fail-closed`) or nothing was changed.

    Nobody knows when the store will answer again: `retry_after_ms` and `retry_after` are `None`, `headers` is empty.

    Args:
        circuit: The circuit's name; `*` where it is about all circuits of a store, which cannot be listed.
        reason: What the store said, or that it said nothing in time.
    """

    code = "store_unavailable"

    def __init__(self, circuit: str, reason: str | None = None) -> None:
        Exception.__init__(self, circuit, reason)
        Refusal.__init__(self, circuit, None)
        self.reason: Final = reason

    def __str__(self) -> str:
        what = f"the store of circuit `{self.circuit}` did not answer"
        return what if self.reason is None else f"{what}: {self.reason}"


# Where users find them, and what pickles and tracebacks are to say.
for _class in (
    SwitchgearError,
    ConfigError,
    InvalidNameError,
    InvalidTimeError,
    Refusal,
    CircuitOpenError,
    CallTimeoutError,
    StoreError,
    StoreUnavailableError,
):
    _class.__module__ = "switchgear"
del _class
