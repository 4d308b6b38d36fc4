"""What the HTTP adapters share: a circuit per host, the options they take, and which answers and errors count."""

from __future__ import annotations

import errno
import socket
import ssl
import sys
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from switchgear import _native
from switchgear._error import ConfigError
from switchgear._group import CircuitBreakerGroup
from switchgear._types import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


class HostPolicy(Policy, total=False):
    """The policy of each host's circuit, and what their group takes beside it.

    `is_failure_result` and `timeout_ms` are a `ConfigError` here.
    """

    name: str | None
    """Comes before each host in the name of its circuit: `name:https://api.example.com`; by default nothing does."""
    max_keys: int | None
    """How many hosts have a circuit at most, 1 to 1 000 000; by default 1024. The least recently used goes first."""


class HostCircuits:
    """One circuit per host, and the calls whose answers were thrown away without being read or closed.

    Such calls are only noted where they are found, for that is the garbage collector: it may run anywhere, also while
    the same thread holds a lock of its own or of a store's client. The next call of the adapter frees their slots.
    """

    __slots__ = ("_lost", "group")

    def __init__(self, group: Any) -> None:
        self.group = group
        self._lost: deque[Call] = deque()

    def lost(self) -> Iterator[Call]:
        """Takes out the calls that were given up without a word."""
        while True:
            try:
                yield self._lost.popleft()
            except IndexError:
                return

    def acquire(self, key: str) -> Any:
        """Asks the circuit of a key for one call, and gives what `acquire` of its breaker gives."""
        return self.group.for_key(key).acquire()

    def call(self, permit: Any) -> Call:
        """A call that was let through. `permit`: that of any breaker, entered."""
        return Call(permit, self._lost)


class Call:
    """One call that was let through. It is settled once, by what comes first; what comes later does nothing.

    Each way to settle it gives what the permit gave: of a circuit of asyncio that has to be awaited.
    """

    __slots__ = ("_lost", "_permit", "_settled")

    def __init__(self, permit: Any, lost: deque[Call]) -> None:
        self._settled = False
        self._permit = permit
        self._lost = lost

    def succeed(self) -> object:
        """The host did its work."""
        return self._leave(None)

    def fail(self, error: BaseException) -> object:
        """The host failed, unless the policy's `is_failure` or `ignore` says that this does not count."""
        return self._leave(error)

    def end(self, error: BaseException, *, counts: bool) -> object:
        """It raised."""
        return self._leave(error) if counts else self.drop()

    def drop(self) -> object:
        """Neither: the caller gave it up."""
        if self._settled:
            return None
        self._settled = True
        # A user's clock may raise anything: settling never hides the caller's result.
        with suppress(Exception):
            return self._permit.release()
        return None

    def _leave(self, error: BaseException | None) -> object:
        if self._settled:
            return None
        self._settled = True
        permit = self._permit
        leave = permit.__exit__ if hasattr(permit, "__exit__") else permit.__aexit__
        return leave(*((None, None, None) if error is None else (type(error), error, error.__traceback__)))

    def lose(self) -> None:
        """Notes, from the garbage collector, that nobody can settle it any more."""
        if not self._settled:
            self._lost.append(self)


def origin(scheme: str, host: str) -> str | None:
    """The key of a host: an origin as a browser writes it. None if there can be no such host.

    Args:
        scheme: in lower case.
        host: in lower case and ASCII, IPv6 in brackets, with the port if it is not the scheme's own.
    """
    return f"{scheme}://{host}" if len(host) <= _LONGEST_HOST else None


# 253 characters of a name (RFC 1035), and a port.
_LONGEST_HOST = 253 + len(":65535")


def status_counts(status: int) -> bool:
    """Whether a status says that the server failed: 429, and 500 to 599 but 501."""
    return _native.http_status_counts(status)


def has_no_body(method: str | None, status: int, headers: Mapping[str, str]) -> bool:
    """Whether there is nothing to read behind these headers (RFC 9110, 6.4.1)."""
    return (
        method == "HEAD"
        or status < 200
        or status in {204, 304}
        or (method == "CONNECT" and status < 300)
        or headers.get("content-length") == "0"
    )


def is_network_error(error: BaseException) -> bool:
    """Whether an error of Python's own says that the network or the server failed.

    For wrapped transports that let such errors through. Any other `OSError` is about a file: a missing certificate,
    say.
    """
    if isinstance(error, (ConnectionError, TimeoutError, socket.gaierror, ssl.SSLError)):
        return True
    return isinstance(error, OSError) and error.errno in _UNREACHABLE


_UNREACHABLE = frozenset({errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ENETDOWN, errno.EHOSTDOWN, errno.EADDRNOTAVAIL})


def circuits_of(group: object, policy: Mapping[str, object], adapter: str, *, awaited: bool) -> HostCircuits:
    """The circuits of an adapter: those of a group that was given, or its own by the options that were.

    Raises:
        ConfigError: an option that an adapter does not take, or one beside a group.
        TypeError: `group` is no group, or one of the other kind.
    """
    given = [name for name, value in policy.items() if value is not None]
    for name in given:
        if name in _OF_THE_WRAPPED:
            wrapped = _WRAPPED[adapter]
            hint = f"give it to the {wrapped} that it wraps, {adapter}({wrapped.split('.')[-1]}({name}=...))"
            raise ConfigError(f"`{name}` is not an option of {adapter}: {hint}", name)
    if group is None:
        for name in given:
            if name in _NOT_TAKEN:
                raise ConfigError(f"`{name}` is not an option of {adapter}: {_NOT_TAKEN[name]}", name)
        return HostCircuits(CircuitBreakerGroup(**policy))  # type: ignore[arg-type]  # checked by it
    if given:
        raise ConfigError(f"`{given[0]}` of {adapter} goes with no `group`: give it to the group", given[0])
    _check_kind(group, adapter, awaited=awaited)
    return HostCircuits(group)


_NOT_TAKEN = {
    "is_failure_result": "which answers count is one table for all HTTP adapters; narrow it by `is_failure`",
    "timeout_ms": "give the client a timeout, which counts",
}

# What sends, and what users of it know it to take: of `httpx.Client` where the transport has it, and of `HTTPAdapter`.
_WRAPPED = {
    "BreakerAdapter": "requests.adapters.HTTPAdapter",
    "BreakerTransport": "httpx.HTTPTransport",
    "AsyncBreakerTransport": "httpx.AsyncHTTPTransport",
}
_OF_THE_WRAPPED = frozenset(
    [
        "verify",
        "cert",
        "trust_env",
        "http1",
        "http2",
        "limits",
        "proxy",
        "uds",
        "local_address",
        "retries",
        "socket_options",
        "pool_connections",
        "pool_maxsize",
        "max_retries",
        "pool_block",
    ]
)


def _check_kind(group: object, adapter: str, *, awaited: bool) -> None:
    shared = _GROUPS[awaited]
    if isinstance(group, CircuitBreakerGroup) or _is_of(group, shared):
        return
    if _is_of(group, _GROUPS[not awaited]):
        why = "it would block the event loop" if awaited else "it has to be awaited"
        raise TypeError(f"{adapter} takes a {shared}.{_SHARED}, not one of {_GROUPS[not awaited]}: {why}")
    raise TypeError(f"`group` must be a CircuitBreakerGroup or a {shared}.{_SHARED}, got {_native.describe(group)}")


_SHARED = "DistributedCircuitBreakerGroup"
_GROUPS = {False: "switchgear.redis", True: "switchgear.redis.asyncio"}


def _is_of(group: object, module: str) -> bool:
    # A group of a module that was never imported cannot be here: no need to import it to find out.
    kind = getattr(sys.modules.get(module), _SHARED, None)
    return isinstance(kind, type) and isinstance(group, kind)
