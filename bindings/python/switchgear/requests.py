"""An adapter for sessions of requests that asks a circuit per host before it sends anything.

What counts is the same for every HTTP adapter of this package:

- failure: a network error, a timeout, an answer of 429 or of 500 to 599 but 501, a body that breaks off, and
  `requests.exceptions.RetryError`;
- neutral, which counts nowhere: the caller was interrupted, closed the answer before its end, threw it away, or asked
  for something that cannot be sent (`InvalidURL`, `InvalidHeader`, a missing certificate file, an error in the
  iterator that is its request body);
- success: everything else, once the body has been read to its end, as requests itself does unless told `stream=True`.

A host is an origin: scheme, host and port, as in `https://api.example.com` or `http://localhost:8080`; that is the
key in the group, too. Each hop of a redirect asks the circuit of its own host. Behind a proxy it is still the host
that was asked. The retries of urllib3 (`HTTPAdapter(max_retries=...)`) happen within one call, which counts once.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, cast
from urllib.parse import urlsplit

import switchgear
from switchgear import _native
from switchgear._http import Call, circuits_of, has_no_body, is_network_error, origin, status_counts

try:
    import requests
    import requests.adapters
    import urllib3
    import urllib3.exceptions
except ModuleNotFoundError as error:
    if error.name not in {"requests", "urllib3"}:
        raise
    raise ImportError("switchgear.requests needs requests: pip install requests") from error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import TypeAlias

    from typing_extensions import Unpack

    from switchgear._http import HostPolicy
    from switchgear.redis import DistributedCircuitBreakerGroup

    Group: TypeAlias = switchgear.CircuitBreakerGroup | DistributedCircuitBreakerGroup

__all__ = ["BreakerAdapter", "CircuitOpenError", "StoreUnavailableError"]


class _NotSent(requests.RequestException):
    """What a request that was never sent has of requests' own fields."""

    response: None = None
    request: Any = None

    def __reduce__(self) -> tuple[Any, ...]:
        kind, args, *state = cast("tuple[Any, ...]", super().__reduce__())
        return (kind, args, {**state[0], "request": _portable(self.request)}) if state else (kind, args)


class CircuitOpenError(switchgear.CircuitOpenError, _NotSent):
    """The circuit of a host refused the request; nothing was sent.

    Both a `switchgear.CircuitOpenError` and a `requests.RequestException`, so that handlers of either catch it.
    `request` is the request that was refused; a pickled or copied error has it without hooks, and without a body that
    can be read only once.
    """


class StoreUnavailableError(switchgear.StoreUnavailableError, _NotSent):
    """The store of a shared circuit did not answer, under `on_store_failure="fail-closed"`; nothing was sent.

    Both a `switchgear.StoreUnavailableError` and a `requests.RequestException`, so that handlers of either catch it.
    `request` is as in `CircuitOpenError`.
    """


class BreakerAdapter(requests.adapters.BaseAdapter):
    """Sends by another adapter what the circuit of its host lets through.

    A refused request raises `CircuitOpenError` of this module and never reaches the network; everything else, answers
    and errors, comes through as the wrapped adapter gave it, but that `response.raw` is watched. The answer to a
    request with a body is settled when that has been read to its end. Until then it holds its slot of a half-open
    circuit: close what you do not read. A slot whose answer was neither read nor closed is free again after
    `probe_timeout_ms`, or with the next request after the answer was garbage collected. A stream that never ends
    proves nothing, and should have a session without this adapter.

    One adapter serves all threads, and may be mounted for several prefixes and on several sessions; closing a session
    closes the wrapped adapter. It cannot be pickled, and so neither can its session, for circuits live in their
    process.

    Example:
        ```python
        import requests

        from switchgear.requests import BreakerAdapter, CircuitOpenError

        session = requests.Session()
        adapter = BreakerAdapter(failure_threshold=1)
        session.mount("https://", adapter)
        session.mount("http://", adapter)
        try:
            session.get("http://127.0.0.1:1/", timeout=1)
        except requests.ConnectionError:
            print("nobody there")
        try:
            session.get("http://127.0.0.1:1/", timeout=1)
        except CircuitOpenError as error:
            assert error.circuit == "http://127.0.0.1:1"
            assert error.headers == {"Retry-After": "30"}
        ```
    """

    def __init__(
        self,
        adapter: requests.adapters.BaseAdapter | None = None,
        *,
        group: Group | None = None,
        **policy: Unpack[HostPolicy],
    ) -> None:
        """Wraps an adapter.

        Args:
            adapter: What sends; by default a `requests.adapters.HTTPAdapter()`.
            group: Where the circuits are: a `CircuitBreakerGroup`, or a
                `switchgear.redis.DistributedCircuitBreakerGroup` to share them with other processes. By default a
                group of this adapter's own. Its `is_failure_result` and `timeout_ms` are not asked.
            **policy: The options of its own group, `name` and `max_keys` (default 1024 hosts) among them. `is_failure`
                and `ignore` are asked about errors, and about a `requests.HTTPError` for a status that counts.
                `slow_call_ms` is about the time until the body has been read.

        Raises:
            ConfigError: An option that is none or out of range; `is_failure_result` and `timeout_ms`, which fit no
                adapter; any option beside `group`.
            TypeError: The adapter or the group is of the wrong kind.
        """
        super().__init__()
        if adapter is not None and not isinstance(adapter, requests.adapters.BaseAdapter):
            raise TypeError(_wrong_kind(adapter))
        self._circuits = circuits_of(group, policy, "BreakerAdapter", awaited=False)
        self._adapter = requests.adapters.HTTPAdapter() if adapter is None else adapter

    @property
    def group(self) -> Group:
        """The circuits: `adapter.group.for_key("https://api.example.com")` is that of a host."""
        return cast("Group", self._circuits.group)

    def send(  # noqa: PLR0917 - the signature of every adapter
        self,
        request: requests.PreparedRequest,
        stream: bool = False,
        timeout: Any = None,
        verify: Any = True,
        cert: Any = None,
        proxies: Any = None,
    ) -> requests.Response:
        """Sends a request if the circuit of its host lets it through; the arguments are those of any adapter.

        Raises:
            CircuitOpenError: It did not.
            StoreUnavailableError: The store did not say, under `on_store_failure="fail-closed"`.
        """
        send = partial(self._adapter.send, request, stream, timeout, verify, cert, proxies)
        key = _key(request.url)
        if key is None:
            return send()
        for lost in self._circuits.lost():
            lost.drop()
        try:
            permit = self._circuits.acquire(key)
        except switchgear.Refusal as refusal:
            raise _refused(refusal, request) from refusal.__cause__
        call = self._circuits.call(permit.__enter__())
        upload = _Upload(request)
        try:
            with upload:
                response = send()
        except BaseException as error:
            call.end(error, counts=not upload.broke and _counts(error))
            raise
        try:
            if status_counts(response.status_code or 0):
                call.fail(requests.HTTPError(f"HTTP {response.status_code}", request=request, response=response))
            elif _is_read(request, response):
                call.succeed()
            else:
                response.raw = _Body(response.raw, call)
        except BaseException:
            # Interrupted while a store is told: nobody gets the answer, and so nobody else gives its connection back.
            response.close()
            raise
        return response

    def close(self) -> None:
        """Closes the wrapped adapter."""
        self._adapter.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a BreakerAdapter cannot be pickled or copied: its circuits live in this process; mount a new one"
        )


class _StandIn:
    """Stands in for a file or an iterator: what it does not do itself, that one does."""

    def __init__(self, inner: Any) -> None:
        self.__dict__["_inner"] = inner

    @property  # type: ignore[misc]  # nobody is to change it
    def __class__(self) -> type[Any]:
        """What it passes for, where somebody asks whether it is an `urllib3.HTTPResponse`, or a text file."""
        return type(self._inner)

    def __getattr__(self, name: str) -> Any:
        if name == "_inner":  # Made without its constructor, as `copy` does.
            raise AttributeError(name)
        return getattr(self._inner, name)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self._inner, name, value)


class _Body(_StandIn):
    """The body of an answer, whose end settles the call."""

    def __init__(self, raw: Any, call: Call) -> None:
        super().__init__(raw)
        self.__dict__["_call"] = call

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        if name in _READS:
            return partial(self._read, value, name)
        if name in _STREAMS:
            return lambda *args, **options: _Chunks(value(*args, **options), self)
        if name in _ENDS:
            return partial(self._end, value)
        return value

    def __iter__(self) -> Iterator[bytes]:
        return _Chunks(iter(self._inner), self)

    def __enter__(self) -> Any:
        self._inner.__enter__()
        return self

    def __exit__(self, *raised: object) -> Any:
        return self._end(self._inner.__exit__, *raised)

    def __del__(self) -> None:
        self._call.lose()

    def _read(self, read: Callable[..., Any], name: str, *args: Any, **options: Any) -> Any:
        data = self._watch(partial(read, *args, **options))
        amount = args[0] if args else options.get("amt")
        if name == "read" and (amount is None or amount < 0):
            self._call.succeed()
        elif not data and amount != 0 and not isinstance(self._inner, urllib3.HTTPResponse):
            # Nothing where something was asked for is the end; but urllib3 may have something to decode first.
            self._call.succeed()
        return data

    def _watch(self, step: Callable[[], Any]) -> Any:
        """A step of reading."""
        try:
            data = step()
        except StopIteration:
            self._call.succeed()
            raise
        except BaseException as error:
            self._call.end(error, counts=_counts(error))
            raise
        # Closed, and not by us: urllib3 does so with the last byte of what was announced.
        if getattr(self._inner, "closed", False):
            self._call.succeed()
        return data

    def _end(self, end: Callable[..., Any], *args: Any) -> Any:
        try:
            return end(*args)
        finally:
            self._call.drop()


_READS = frozenset({"read", "read1", "readinto", "readline"})
_STREAMS = frozenset({"stream", "read_chunked"})
_ENDS = frozenset({"close", "drain_conn", "release_conn"})


class _Chunks:
    """What a body gives bit by bit. No generator, for what those do when thrown away, the garbage collector runs."""

    def __init__(self, chunks: Iterator[bytes], body: _Body) -> None:
        self._step = partial(next, chunks)
        # Also keeps the body from getting lost while it is read.
        self._body = body

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        return cast("bytes", self._body._watch(self._step))


class _Upload:
    """The caller's own request body: an error from there is not the host's, whatever it looks like.

    It has a stand-in while the request is sent, unless it is in memory, where it cannot break.
    """

    def __init__(self, request: requests.PreparedRequest) -> None:
        self.broke = False
        self._request = request
        self._body: Any = request.body

    def __enter__(self) -> None:
        if not _is_in_memory(self._body):
            self._request.body = cast("Any", _UploadBody(self._body, self))

    def __exit__(self, *_: object) -> None:
        self._request.body = self._body


class _UploadBody(_StandIn):
    def __init__(self, body: Any, upload: _Upload) -> None:
        super().__init__(body)
        self.__dict__["_upload"] = upload

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        return partial(self._read, value) if name == "read" else value

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._inner
        except Exception:
            self._upload.broke = True
            raise

    def _read(self, read: Callable[..., Any], *args: Any) -> Any:
        try:
            return read(*args)
        except Exception:
            self._upload.broke = True
            raise


def _is_in_memory(body: object) -> bool:
    if body is None or isinstance(body, str):
        return True
    try:
        memoryview(body)  # type: ignore[arg-type]  # this is how one asks
    except TypeError:
        return False
    return True


def _key(url: str | bytes | None) -> str | None:
    try:
        parts = urlsplit(url.decode("ascii") if isinstance(url, bytes) else url or "")
        host, port = parts.hostname or "", parts.port
    except ValueError:  # No URL: the wrapped adapter says so.
        return None
    if ":" in host:
        host = f"[{host}]"
    return origin(parts.scheme, host if port in {None, _PORTS.get(parts.scheme)} else f"{host}:{port}")


_PORTS = {"http": 80, "https": 443}


def _is_read(request: requests.PreparedRequest, response: requests.Response) -> bool:
    """Whether there is nothing to read, or an adapter further down has read it."""
    return (
        response.raw is None
        or getattr(response, "_content_consumed", False)
        or has_no_body(request.method, response.status_code, response.headers)
    )


def _counts(error: BaseException) -> bool:
    """Whether an error says that the host failed."""
    if isinstance(error, requests.RequestException):
        return isinstance(error, _COUNTED)
    return isinstance(error, _COUNTED_BELOW) or is_network_error(error)


_COUNTED = (
    requests.ConnectionError,
    requests.Timeout,
    requests.exceptions.ChunkedEncodingError,
    requests.exceptions.RetryError,
)
# What reading the body raises before requests makes its own of it.
_COUNTED_BELOW = (
    urllib3.exceptions.ProtocolError,
    urllib3.exceptions.TimeoutError,
    urllib3.exceptions.SSLError,
    urllib3.exceptions.NewConnectionError,
    urllib3.exceptions.ProxyError,
)


def _refused(
    refusal: switchgear.Refusal, request: requests.PreparedRequest
) -> CircuitOpenError | StoreUnavailableError:
    kind = CircuitOpenError if isinstance(refusal, switchgear.CircuitOpenError) else StoreUnavailableError
    refused = kind(*refusal.args)
    refused.request = request
    return refused


def _wrong_kind(adapter: object) -> str:
    wanted = "a requests.adapters.BaseAdapter"
    return f"`adapter` of BreakerAdapter must be {wanted}, got {_native.describe(adapter)}"


def _portable(request: Any) -> Any:
    """A request that can be pickled: hooks are functions, and a body that is read once is no data."""
    if not isinstance(request, requests.PreparedRequest):
        return request
    copy = request.copy()
    copy.hooks = requests.hooks.default_hooks()
    if not isinstance(copy.body, (str, bytes, bytearray)):
        copy.body = None
    return copy
