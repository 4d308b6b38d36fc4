"""httpx transports that ask a circuit per host before they send anything.

What counts is the same for every HTTP adapter of this package:

- failure: a network error, a timeout, an answer of 429 or of 500 to 599 but 501, a body that breaks off;
- neutral, which counts nowhere: the caller cancelled, closed the answer before its end, threw it away, or asked for
  something that cannot be sent (`httpx.InvalidURL`, `httpx.UnsupportedProtocol`, `httpx.LocalProtocolError`, an error
  in its own request body); and `httpx.PoolTimeout`, for the client's own pool was busy, and not with this host alone;
- success: everything else, once the body has been read to its end.

A host is an origin: scheme, host and port, as in `https://api.example.com` or `http://localhost:8080`; that is the
key in the group, too. Each hop of a redirect asks the circuit of its own host. Behind a proxy it is still the host
that was asked.
"""

from __future__ import annotations

import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, cast

import switchgear
from switchgear import _native
from switchgear._http import Call, circuits_of, has_no_body, is_network_error, origin, status_counts

try:
    import httpx
except ModuleNotFoundError as error:
    if error.name != "httpx":
        raise
    raise ImportError("switchgear.httpx needs httpx: pip install httpx") from error

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from types import TracebackType
    from typing import TypeAlias

    from typing_extensions import Self, Unpack

    from switchgear._http import HostPolicy
    from switchgear.redis import DistributedCircuitBreakerGroup
    from switchgear.redis.asyncio import DistributedCircuitBreakerGroup as AsyncDistributedCircuitBreakerGroup

    Group: TypeAlias = switchgear.CircuitBreakerGroup | DistributedCircuitBreakerGroup
    AsyncGroup: TypeAlias = switchgear.CircuitBreakerGroup | AsyncDistributedCircuitBreakerGroup

__all__ = ["AsyncBreakerTransport", "BreakerTransport", "CircuitOpenError", "StoreUnavailableError"]


class CircuitOpenError(switchgear.CircuitOpenError, httpx.TransportError):
    """The circuit of a host refused the request; nothing was sent.

    Both a `switchgear.CircuitOpenError` and an `httpx.TransportError`, so that handlers of either catch it. `request`
    is the request that was refused.
    """

    _request: httpx.Request | None = None


class StoreUnavailableError(switchgear.StoreUnavailableError, httpx.TransportError):
    """The store of a shared circuit did not answer, under `on_store_failure="fail-closed"`; nothing was sent.

    Both a `switchgear.StoreUnavailableError` and an `httpx.TransportError`, so that handlers of either catch it.
    `request` is the request that was refused.
    """

    _request: httpx.Request | None = None


class BreakerTransport(httpx.BaseTransport):
    """Sends by another transport what the circuit of its host lets through.

    A refused request raises `CircuitOpenError` of this module and never reaches the network; everything else, answers
    and errors, comes through as the wrapped transport gave it. The answer to a request with a body is settled when
    that has been read to its end. Until then it holds its slot of a half-open circuit: close what you do not read. A
    slot whose answer was neither read nor closed is free again after `probe_timeout_ms`, or with the next request
    after the answer was garbage collected. A stream that never ends proves nothing, and should have a client without
    this transport.

    An httpx client that is given a transport takes no notice of its own `verify`, `cert`, `http1`, `http2` and
    `limits`, nor of proxies in the environment, and its `proxy` and `mounts` go past it: give them to the wrapped
    transport (`BreakerTransport(httpx.HTTPTransport(proxy=...))`), or wrap each transport that is mounted.

    Example:
        ```python
        import httpx

        from switchgear.httpx import BreakerTransport, CircuitOpenError

        down = httpx.MockTransport(lambda request: httpx.Response(503))  # an httpx.HTTPTransport() in real life
        with httpx.Client(transport=BreakerTransport(down, failure_threshold=1)) as client:
            assert client.get("https://api.example.com/").status_code == 503
            try:
                client.get("https://api.example.com/")
            except CircuitOpenError as error:
                assert error.circuit == "https://api.example.com"
                assert error.headers == {"Retry-After": "30"}
        ```
    """

    def __init__(
        self,
        transport: httpx.BaseTransport | None = None,
        *,
        group: Group | None = None,
        **policy: Unpack[HostPolicy],
    ) -> None:
        """Wraps a transport.

        Args:
            transport: What sends; by default an `httpx.HTTPTransport()`.
            group: Where the circuits are: a `CircuitBreakerGroup`, or a
                `switchgear.redis.DistributedCircuitBreakerGroup` to share them with other processes. By default a
                group of this transport's own. Its `is_failure_result` and `timeout_ms` are not asked.
            **policy: The options of its own group, `name` and `max_keys` (default 1024 hosts) among them. `is_failure`
                and `ignore` are asked about errors, and about a `httpx.HTTPStatusError` for a status that counts.
                `slow_call_ms` is about the time until the body has been read.

        Raises:
            ConfigError: An option that is none or out of range; `is_failure_result` and `timeout_ms`, which fit no
                transport; any option beside `group`.
            TypeError: The transport or the group is of the wrong kind.
        """
        if transport is not None and not isinstance(transport, httpx.BaseTransport):
            raise TypeError(_wrong_kind("BreakerTransport", "httpx.BaseTransport", transport))
        self._circuits = circuits_of(group, policy, "BreakerTransport", awaited=False)
        self._transport = httpx.HTTPTransport() if transport is None else transport

    @property
    def group(self) -> Group:
        """The circuits: `transport.group.for_key("https://api.example.com")` is that of a host."""
        return cast("Group", self._circuits.group)

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request if the circuit of its host lets it through.

        Raises:
            CircuitOpenError: It did not.
            StoreUnavailableError: The store did not say, under `on_store_failure="fail-closed"`.
        """
        key = _key(request.url)
        if key is None:
            return self._transport.handle_request(request)
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
                response = self._transport.handle_request(request)
        except BaseException as error:
            call.end(error, counts=not upload.broke and _counts(error))
            raise
        try:
            if status_counts(response.status_code):
                call.fail(_status_error(request, response))
            elif response.is_closed or has_no_body(request.method, response.status_code, response.headers):
                call.succeed()
            else:
                response.stream = _Body(cast("httpx.SyncByteStream", response.stream), call)
        except BaseException:
            # Interrupted while a store is told: nobody gets the answer, and so nobody else gives its connection back.
            response.close()
            raise
        return response

    def close(self) -> None:
        """Closes the wrapped transport."""
        self._transport.close()

    def __enter__(self) -> Self:
        self._transport.__enter__()
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        self._transport.__exit__(exc_type, exc_value, traceback)


class AsyncBreakerTransport(httpx.AsyncBaseTransport):
    """The same for an `httpx.AsyncClient`: see `BreakerTransport`.

    With a local group it runs wherever httpx does; with a shared one on asyncio.

    Example:
        ```python
        import asyncio

        import httpx

        from switchgear.httpx import AsyncBreakerTransport, CircuitOpenError


        async def main() -> None:
            down = httpx.MockTransport(lambda request: httpx.Response(503))
            async with httpx.AsyncClient(transport=AsyncBreakerTransport(down, failure_threshold=1)) as client:
                assert (await client.get("https://api.example.com/")).status_code == 503
                try:
                    await client.get("https://api.example.com/")
                except CircuitOpenError as error:
                    assert error.circuit == "https://api.example.com"


        asyncio.run(main())
        ```
    """

    def __init__(
        self,
        transport: httpx.AsyncBaseTransport | None = None,
        *,
        group: AsyncGroup | None = None,
        **policy: Unpack[HostPolicy],
    ) -> None:
        """Wraps a transport.

        Args:
            transport: What sends; by default an `httpx.AsyncHTTPTransport()`.
            group: Where the circuits are: a `CircuitBreakerGroup`, or a `DistributedCircuitBreakerGroup` of
                `switchgear.redis.asyncio` to share them with other processes. By default a group of this transport's
                own.
            **policy: As for `BreakerTransport`.

        Raises:
            ConfigError: As for `BreakerTransport`.
            TypeError: The transport or the group is of the wrong kind.
        """
        if transport is not None and not isinstance(transport, httpx.AsyncBaseTransport):
            raise TypeError(_wrong_kind("AsyncBreakerTransport", "httpx.AsyncBaseTransport", transport))
        self._circuits = circuits_of(group, policy, "AsyncBreakerTransport", awaited=True)
        self._transport = httpx.AsyncHTTPTransport() if transport is None else transport

    @property
    def group(self) -> AsyncGroup:
        """The circuits: `transport.group.for_key("https://api.example.com")` is that of a host."""
        return cast("AsyncGroup", self._circuits.group)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Sends a request if the circuit of its host lets it through.

        Raises:
            CircuitOpenError: It did not.
            StoreUnavailableError: The store did not say, under `on_store_failure="fail-closed"`.
        """
        key = _key(request.url)
        if key is None:
            return await self._transport.handle_async_request(request)
        for lost in self._circuits.lost():
            await _settled(lost.drop())
        try:
            asked = self._circuits.acquire(key)
            permit = await (await asked).__aenter__() if inspect.isawaitable(asked) else asked.__enter__()
        except switchgear.Refusal as refusal:
            raise _refused(refusal, request) from refusal.__cause__
        call = self._circuits.call(permit)
        upload = _Upload(request)
        try:
            with upload:
                response = await self._transport.handle_async_request(request)
        except BaseException as error:
            await _settled(call.end(error, counts=not upload.broke and _counts(error)))
            raise
        try:
            if status_counts(response.status_code):
                await _settled(call.fail(_status_error(request, response)))
            elif response.is_closed or has_no_body(request.method, response.status_code, response.headers):
                await _settled(call.succeed())
            else:
                response.stream = _AsyncBody(cast("httpx.AsyncByteStream", response.stream), call)
        except BaseException:
            # Cancelled while a store is told: as above.
            await response.aclose()
            raise
        return response

    async def aclose(self) -> None:
        """Closes the wrapped transport."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self._transport.__aexit__(exc_type, exc_value, traceback)


class _Body(httpx.SyncByteStream):
    """The body of an answer, whose end settles the call.

    It is its own iterator and no generator: what a generator does when it is thrown away, the garbage collector runs.
    """

    def __init__(self, stream: httpx.SyncByteStream, call: Call) -> None:
        self._call = call
        self._stream = stream
        self._chunks: Iterator[bytes] | None = None

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        try:
            if self._chunks is None:
                self._chunks = iter(self._stream)
            return next(self._chunks)
        except StopIteration:
            self._call.succeed()
            raise
        except BaseException as error:
            self._call.end(error, counts=_counts(error))
            raise

    def close(self) -> None:
        try:
            self._stream.close()
        finally:
            self._call.drop()

    def __del__(self) -> None:
        self._call.lose()


class _AsyncBody(httpx.AsyncByteStream):
    """The same for asyncio."""

    def __init__(self, stream: httpx.AsyncByteStream, call: Call) -> None:
        self._call = call
        self._stream = stream
        self._chunks: AsyncIterator[bytes] | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        try:
            if self._chunks is None:
                self._chunks = self._stream.__aiter__()
            return await self._chunks.__anext__()
        except StopAsyncIteration:
            await _settled(self._call.succeed())
            raise
        except BaseException as error:
            await _settled(self._call.end(error, counts=_counts(error)))
            raise

    async def aclose(self) -> None:
        try:
            await self._stream.aclose()
        finally:
            await _settled(self._call.drop())

    def __del__(self) -> None:
        self._call.lose()


class _Upload:
    """The caller's own request body: an error from there is not the host's, whatever it looks like.

    It stands in for the body while the request is sent, unless that is bytes in memory, which cannot break.
    """

    def __init__(self, request: httpx.Request) -> None:
        self.broke = False
        self._request = request
        self._stream = request.stream
        self._stand_in: _UploadStream | None = None

    def __enter__(self) -> None:
        if not isinstance(self._stream, httpx.ByteStream):
            self._stand_in = self._request.stream = _UploadStream(self._stream, self)

    def __exit__(self, *_: object) -> None:
        # The transport may have put what it read in its place.
        if self._request.stream is self._stand_in:
            self._request.stream = self._stream


class _UploadStream(httpx.SyncByteStream, httpx.AsyncByteStream):
    def __init__(self, stream: httpx.SyncByteStream | httpx.AsyncByteStream, upload: _Upload) -> None:
        self._stream = stream
        self._upload = upload

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from cast("httpx.SyncByteStream", self._stream)
        except Exception:
            self._upload.broke = True
            raise

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            async for chunk in cast("httpx.AsyncByteStream", self._stream):
                yield chunk
        except Exception:
            self._upload.broke = True
            raise

    def close(self) -> None:
        cast("httpx.SyncByteStream", self._stream).close()

    async def aclose(self) -> None:
        await cast("httpx.AsyncByteStream", self._stream).aclose()


def _key(url: httpx.URL) -> str | None:
    return origin(url.scheme, url.netloc.decode("ascii"))


def _counts(error: BaseException) -> bool:
    """Whether an error says that the host failed."""
    if isinstance(error, httpx.TransportError):
        return not isinstance(error, _NEUTRAL)
    return is_network_error(error)


# A refusal is one of a breaker further down: the host was not asked.
_NEUTRAL = (
    httpx.UnsupportedProtocol,
    httpx.LocalProtocolError,
    httpx.PoolTimeout,
    switchgear.CircuitOpenError,
    switchgear.StoreUnavailableError,
)


def _status_error(request: httpx.Request, response: httpx.Response) -> httpx.HTTPStatusError:
    return httpx.HTTPStatusError(f"HTTP {response.status_code}", request=request, response=response)


def _refused(refusal: switchgear.Refusal, request: httpx.Request) -> CircuitOpenError | StoreUnavailableError:
    kind = CircuitOpenError if isinstance(refusal, switchgear.CircuitOpenError) else StoreUnavailableError
    refused = kind(*refusal.args)
    refused.request = request
    return refused


def _wrong_kind(adapter: str, wanted: str, transport: object) -> str:
    return f"`transport` of {adapter} must be an {wanted}, got {_native.describe(transport)}"


async def _settled(outcome: object) -> None:
    """Waits for what a permit of a shared circuit gave, which goes on also if this is cancelled."""
    if inspect.isawaitable(outcome):
        with suppress(switchgear.SwitchgearError):
            await outcome
