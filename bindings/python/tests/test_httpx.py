"""switchgear.httpx against a real server that fails in each of the ways in which servers fail."""

from __future__ import annotations

import asyncio
import copy
import gc
import pickle
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar
from uuid import uuid4

import anyio
import httpx
import pytest
import redis
import redis.asyncio
import switchgear.httpx
import switchgear.redis
import switchgear.redis.asyncio
from support.child import run_script
from support.clock import ManualClock
from support.servers import Server
from support.threads import in_threads
from support.upstream import Upstream, closed_port, upstream
from switchgear import CircuitBreakerGroup, ConfigError, Snapshot
from switchgear.httpx import AsyncBreakerTransport, BreakerTransport, CircuitOpenError, StoreUnavailableError

T = TypeVar("T")

# What works has time also on a machine that is busy. BRIEF is for what hangs for good: there nothing can come late.
PATIENT, BRIEF = httpx.Timeout(60), httpx.Timeout(60, read=0.1)

# Made once, for it takes longer than most of the tests.
TLS = httpx.create_ssl_context()


class Flavor:
    """One client with its transport, sync or async; what the tests ask of it reads the same for both."""

    def __init__(self, server: Upstream, client: Any, transport: Any, run: Callable[[Any], Any]) -> None:
        self.server = server
        self.client = client
        self.transport = transport
        self.run = run

    def get(self, path: str, timeout: httpx.Timeout = PATIENT) -> httpx.Response:
        response: httpx.Response = self.run(self.client.get(self.server.url(path), timeout=timeout))
        return response

    def open(self, path: str, method: str = "GET") -> httpx.Response:
        """An answer whose body waits to be read."""
        request = self.client.build_request(method, self.server.url(path))
        response: httpx.Response = self.run(self.client.send(request, stream=True))
        return response

    def read(self, response: httpx.Response) -> bytes:
        data: bytes = self.run(response.read() if self.is_sync else response.aread())
        return data

    def first_chunk(self, response: httpx.Response) -> bytes:
        chunks = response.iter_raw() if self.is_sync else response.aiter_raw()
        data: bytes = self.run(next(chunks) if isinstance(chunks, Iterator) else chunks.__anext__())
        return data

    def close(self, response: httpx.Response) -> None:
        end: Any = response.close if self.is_sync else response.aclose
        self.run(end())

    @property
    def is_sync(self) -> bool:
        return isinstance(self.client, httpx.Client)

    @property
    def snapshot(self) -> Snapshot:
        seen: Snapshot = self.transport.group.for_key(self.server.origin).get_snapshot()
        return seen

    @property
    def failures(self) -> int:
        return self.snapshot.failures_in_window

    def trip(self) -> None:
        self.transport.group.for_key(self.server.origin).trip()


NewFlavor = Callable[..., Any]


@contextmanager
def sync_flavor(**policy: Any) -> Iterator[Flavor]:
    transport = BreakerTransport(httpx.HTTPTransport(verify=TLS), **policy)
    with upstream() as server, httpx.Client(transport=transport, timeout=PATIENT) as client:
        yield Flavor(server, client, transport, lambda value: value)


@contextmanager
def async_flavor(**policy: Any) -> Iterator[Flavor]:
    transport = AsyncBreakerTransport(httpx.AsyncHTTPTransport(verify=TLS), **policy)
    loop = asyncio.new_event_loop()

    def run(value: Awaitable[T]) -> T:
        return loop.run_until_complete(_awaited(value))

    with upstream() as server:
        client = httpx.AsyncClient(transport=transport, timeout=PATIENT)
        try:
            yield Flavor(server, client, transport, run)
        finally:
            run(client.aclose())
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()


async def _awaited(value: Awaitable[T]) -> T:
    return await value


@pytest.fixture(params=[sync_flavor, async_flavor], ids=["sync", "async"])
def flavor(request: pytest.FixtureRequest) -> Any:
    return request.param


# What counts: DESIGN section 6, scenario 35.


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
def test_a_failing_status_counts_and_the_answer_comes_through(flavor: NewFlavor, status: int) -> None:
    with flavor() as f:
        response = f.get(f"status/{status}")
        assert (response.status_code, response.text) == (status, f"status {status}")
        assert f.failures == 1


@pytest.mark.parametrize("status", [200, 204, 301, 304, 400, 401, 404, 418, 499, 501])
def test_any_other_status_is_a_success(flavor: NewFlavor, status: int) -> None:
    with flavor(trip_on="rate") as f:
        assert f.get(f"status/{status}").status_code == status
        assert (f.snapshot.calls_in_window, f.failures) == (1, 0)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("hang/", httpx.ReadTimeout),
        ("reset/", httpx.TransportError),
        ("garbage/", httpx.RemoteProtocolError),
        ("break/", httpx.RemoteProtocolError),
        ("snap/", httpx.RemoteProtocolError),
    ],
)
def test_what_breaks_on_the_way_counts_and_comes_through(
    flavor: NewFlavor, path: str, error: type[httpx.TransportError]
) -> None:
    with flavor() as f:
        with pytest.raises(error) as raised:
            f.get(path, BRIEF if error is httpx.ReadTimeout else PATIENT)
        assert raised.value.request.url == f.server.url(path)
        assert f.failures == 1


def test_a_body_that_hangs_counts_and_comes_through(flavor: NewFlavor) -> None:
    with flavor() as f:
        response = f.open("drip/")
        # The answer has come: only its body may be late.
        response.request.extensions["timeout"]["read"] = 0.1
        with pytest.raises(httpx.ReadTimeout) as raised:
            f.read(response)
        assert raised.value.request.url == f.server.url("drip/")
        assert f.failures == 1


def test_nobody_listening_counts(flavor: NewFlavor) -> None:
    with flavor() as f:
        origin = f"http://127.0.0.1:{closed_port()}"
        with pytest.raises(httpx.ConnectError):
            f.run(f.client.get(origin))
        assert f.transport.group.for_key(origin).get_snapshot().failures_in_window == 1


def test_what_cannot_be_sent_is_neutral(flavor: NewFlavor) -> None:
    """Scenario 35: the caller's invalid request."""
    with flavor(failure_threshold=1) as f:
        for url, error in [
            ("gopher://example.com/", httpx.UnsupportedProtocol),
            ("http:///nowhere", httpx.UnsupportedProtocol),
            ("/relative", httpx.UnsupportedProtocol),
            ("http://exa mple.com:port/", httpx.InvalidURL),
        ]:
            for _ in range(2):
                with pytest.raises(error):
                    f.run(f.client.get(url))
        for _ in range(2):
            with pytest.raises(httpx.LocalProtocolError):
                f.run(f.client.get(f.server.url("status/200"), headers={"X-Bad": "line\nbreak"}))
        assert f.snapshot.state == "closed"
        assert f.server.hits == []


def test_a_host_that_cannot_be_is_no_circuit(flavor: NewFlavor) -> None:
    with flavor() as f:
        with pytest.raises(Exception) as raised:
            f.run(f.client.get(f"http://{'a.' * 200}com/"))
        assert not isinstance(raised.value, switchgear.SwitchgearError)
        assert len(f.transport.group) == 0


def test_waiting_for_the_clients_own_pool_is_neutral() -> None:
    limits = httpx.Limits(max_connections=1)
    transport = BreakerTransport(httpx.HTTPTransport(limits=limits), failure_threshold=1)
    with upstream() as server, httpx.Client(transport=transport, timeout=PATIENT) as client:
        with client.stream("GET", server.url("drip/")), pytest.raises(httpx.PoolTimeout):
            client.get(server.url("status/200"), timeout=httpx.Timeout(60, pool=0.05))
        assert client.get(server.url("status/200")).status_code == 200


def test_an_error_of_the_callers_own_body_is_neutral_whatever_it_is(flavor: NewFlavor) -> None:
    def broken() -> Iterator[bytes]:
        yield b"x"
        raise httpx.ReadError("the download this is the upload of")

    async def broken_async() -> AsyncIterator[bytes]:
        yield b"x"
        raise ConnectionResetError("the download this is the upload of")

    with flavor(failure_threshold=1) as f:
        content = broken() if f.is_sync else broken_async()
        request = f.client.build_request("POST", f.server.url("status/200"), content=content)
        body = request.stream
        with pytest.raises((httpx.ReadError, ConnectionResetError), match="the download"):
            f.run(f.client.send(request))
        assert request.stream is body
        assert f.snapshot.state == "closed"


def test_a_streamed_upload_arrives(flavor: NewFlavor) -> None:
    with flavor() as f:
        response = f.run(f.client.post(f.server.url("echo/"), files={"file": b"content"}))
        assert "content" in response.text


def test_is_failure_and_ignore_see_the_error(flavor: NewFlavor) -> None:
    seen: list[Exception] = []

    def is_failure(error: Exception) -> bool:
        seen.append(error)
        return not (isinstance(error, httpx.HTTPStatusError) and error.response.status_code == 429)

    with flavor(is_failure=is_failure, ignore=httpx.TimeoutException) as f:
        f.get("status/429")
        with pytest.raises(httpx.ReadTimeout):
            f.get("hang/", BRIEF)
        assert f.failures == 0
        f.get("status/503")
        assert f.failures == 1
        assert [str(error) for error in seen] == ["HTTP 429", "HTTP 503"]
        assert all(isinstance(error, httpx.HTTPStatusError) and str(error.request.url) for error in seen)


def test_each_call_emits_one_event(flavor: NewFlavor) -> None:
    """Scenario 36."""
    with flavor(failure_threshold=1) as f:
        heard: list[tuple[str, str | None]] = []
        for event in ("success", "failure", "ignored", "refused"):
            f.transport.group.on(event, lambda told, event=event: heard.append((event, told.error and str(told.error))))
        f.get("body/3")
        f.close(f.open("drip/"))
        f.get("status/503")
        with pytest.raises(CircuitOpenError) as raised:
            f.get("status/200")
        assert heard == [("success", None), ("ignored", None), ("failure", "HTTP 503"), ("refused", str(raised.value))]


def test_a_slow_answer_counts_where_the_policy_says_so(flavor: NewFlavor) -> None:
    clock = ManualClock()
    with flavor(slow_call_ms=100, clock=clock) as f:
        for wait, failures in [(100, 0), (101, 1)]:
            response = f.open("body/1")
            clock.now += wait
            assert len(f.read(response)) == 1000
            assert f.failures == failures


# A probe: what frees its slot, and what decides.


@pytest.fixture
def half_open(flavor: NewFlavor) -> Any:
    """A flavor whose circuit will take its next request for a probe; there is one slot."""

    @contextmanager
    def make(**policy: Any) -> Iterator[Flavor]:
        clock = ManualClock()
        with flavor(clock=clock, open_duration_ms=1000, probe_timeout_ms=1_000_000, **policy) as f:
            f.trip()
            clock.now += 1000
            yield f

    return make


def test_a_body_read_to_its_end_is_a_success(half_open: NewFlavor) -> None:
    with half_open() as f:
        response = f.open("body/3")
        assert f.snapshot.half_open_in_flight == 1
        assert len(f.read(response)) == 3000
        assert f.snapshot.state == "closed"


def test_a_body_that_breaks_is_a_failure(half_open: NewFlavor) -> None:
    with half_open() as f:
        response = f.open("snap/")
        with pytest.raises(httpx.RemoteProtocolError):
            f.read(response)
        assert f.snapshot.state == "open"


@pytest.mark.parametrize("read_first", [False, True])
def test_a_body_closed_early_is_neutral(half_open: NewFlavor, read_first: bool) -> None:
    with half_open() as f:
        response = f.open("drip/")
        if read_first:
            assert len(f.first_chunk(response)) == 1000
        f.close(response)
        assert (f.snapshot.state, f.snapshot.half_open_in_flight) == ("half-open", 0)
        f.server.go_on.set()
        assert f.get("status/200").status_code == 200
        assert f.snapshot.state == "closed"


def test_an_answer_that_was_thrown_away_holds_no_slot(half_open: NewFlavor) -> None:
    with half_open() as f:
        response = f.open("drip/")
        with pytest.raises(CircuitOpenError):
            f.get("status/200")
        del response
        gc.collect()
        f.server.go_on.set()
        assert f.get("status/200").status_code == 200
        assert f.snapshot.state == "closed"


def test_a_clock_that_breaks_hides_no_answer(flavor: NewFlavor) -> None:
    clock = ManualClock()
    with flavor(clock=clock) as f:
        closed_early, read = f.open("drip/"), f.open("body/1")
        clock.now = -1
        f.close(closed_early)
        assert len(f.read(read)) == 1000


@pytest.mark.parametrize(("path", "method"), [("empty/", "GET"), ("status/204", "GET"), ("status/200", "HEAD")])
def test_an_answer_without_a_body_is_settled_at_once(half_open: NewFlavor, path: str, method: str) -> None:
    with half_open() as f:
        response = f.open(path, method)
        assert f.snapshot.state == "closed"
        f.close(response)


def test_an_answer_that_a_transport_further_down_has_read_is_settled_at_once() -> None:
    clock = ManualClock()
    transport = BreakerTransport(httpx.MockTransport(lambda _: httpx.Response(200, text="body")), clock=clock)
    breaker = transport.group.for_key("https://example.com")
    breaker.trip()
    clock.now += 30_000
    with httpx.Client(transport=transport) as client, client.stream("GET", "https://example.com") as response:
        assert breaker.get_state() == "closed"
        assert response.read() == b"body"


def test_a_failing_status_is_settled_before_its_body(half_open: NewFlavor) -> None:
    with half_open() as f:
        response = f.open("status/503")
        assert f.snapshot.state == "open"
        assert f.read(response) == b"status 503"


async def until(condition: Callable[[], bool]) -> None:
    """Waits for what a thread does."""
    while not condition():  # noqa: ASYNC110 - nobody could set an event
        await asyncio.sleep(0.001)


async def cancel_under_way(client: httpx.AsyncClient, server: Upstream, calls: int) -> None:
    """Cancels so many requests that the server is at."""
    hits = len(server.hits) + calls
    tasks = [asyncio.create_task(client.get(server.url("hang/"))) for _ in range(calls)]
    await until(lambda: len(server.hits) == hits)
    for task in tasks:
        task.cancel()
    for result in await asyncio.gather(*tasks, return_exceptions=True):
        assert isinstance(result, asyncio.CancelledError)


def test_a_cancelled_request_counts_nowhere_and_frees_its_slot() -> None:
    """Scenarios 14 and 25."""
    clock = ManualClock()
    transport = AsyncBreakerTransport(clock=clock, open_duration_ms=1000, failure_threshold=1)

    async def main(server: Upstream) -> None:
        breaker = transport.group.for_key(server.origin)
        async with httpx.AsyncClient(transport=transport, timeout=PATIENT) as client:
            await cancel_under_way(client, server, 32)
            assert breaker.get_state() == "closed"
            breaker.trip()
            clock.now += 1000
            await cancel_under_way(client, server, 1)
            assert breaker.get_state() == "half-open"
            assert (await client.get(server.url("status/200"))).status_code == 200
            assert breaker.get_state() == "closed"

    with upstream() as server:
        asyncio.run(main(server))


def test_an_interrupt_is_neutral_and_comes_through() -> None:
    def interrupted(request: httpx.Request) -> httpx.Response:
        raise KeyboardInterrupt

    with httpx.Client(transport=BreakerTransport(httpx.MockTransport(interrupted), failure_threshold=1)) as client:
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                client.get("https://example.com")


def test_errors_of_python_that_a_transport_lets_through() -> None:
    errors: list[Exception] = [
        ConnectionResetError(),
        TimeoutError(),
        OSError(113, "no route"),
        FileNotFoundError(),
        ValueError(),
    ]

    def broken(request: httpx.Request) -> httpx.Response:
        raise errors[int(request.url.path[1:])]

    transport = BreakerTransport(httpx.MockTransport(broken))
    with httpx.Client(transport=transport) as client:
        counted = []
        for number, error in enumerate(errors):
            before = transport.group.for_key("https://example.com").get_snapshot().failures_in_window
            with pytest.raises(type(error)) as raised:
                client.get(f"https://example.com/{number}")
            assert raised.value is error
            counted.append(transport.group.for_key("https://example.com").get_snapshot().failures_in_window - before)
    assert counted == [1, 1, 1, 0, 0]


# Refusals.


def test_a_refused_request_never_reaches_the_server(flavor: NewFlavor) -> None:
    with flavor(failure_threshold=2, open_duration_ms=12_300, clock=ManualClock()) as f:
        for _ in range(2):
            f.get("status/503")
        request = f.client.build_request("GET", f.server.url("status/200?after"))
        with pytest.raises(httpx.TransportError) as raised:
            f.run(f.transport.handle_request(request) if f.is_sync else f.transport.handle_async_request(request))
        refusal = raised.value
        assert isinstance(refusal, CircuitOpenError)
        assert isinstance(refusal, switchgear.CircuitOpenError)
        assert not isinstance(refusal, (OSError, httpx.TimeoutException, httpx.NetworkError))
        assert refusal.circuit == f.server.origin
        assert (refusal.state, refusal.retry_after_ms, refusal.last_failure) == ("open", 12_300, "HTTP 503")
        assert refusal.headers == {"Retry-After": "13"}
        assert refusal.request is request
        with pytest.raises(CircuitOpenError) as raised_by_client:
            f.run(f.client.send(request))
        assert raised_by_client.value.request is request
        assert str(refusal) == f"circuit `{f.server.origin}` is open, retry in 12.3 s (last failure: HTTP 503)"
        assert f.server.hits == ["/status/503"] * 2


def _copies(error: Any) -> list[Any]:
    return [copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))]


def test_a_refusal_survives_pickle_and_copy_with_its_fields(flavor: NewFlavor) -> None:
    """Scenario 44."""
    with flavor(failure_threshold=1) as f:
        f.get("status/503")
        with pytest.raises(CircuitOpenError) as raised:
            f.run(f.client.post(f.server.url("status/200"), content=b"body"))
    refusal = raised.value
    rebuilt = type(refusal)(*refusal.args)
    for other in [*_copies(refusal), rebuilt]:
        assert type(other) is CircuitOpenError
        assert other.args == refusal.args
        assert (other.circuit, other.state) == (refusal.circuit, refusal.state)
        assert (other.retry_after_ms, other.last_failure) == (refusal.retry_after_ms, refusal.last_failure)
        assert str(other) == str(refusal)
    for other in _copies(refusal):
        assert (other.request.method, other.request.url) == ("POST", refusal.request.url)
    with pytest.raises(RuntimeError, match="request"):
        _ = rebuilt.request


def test_a_refusal_further_down_counts_nowhere_above() -> None:
    inner = BreakerTransport(httpx.MockTransport(lambda _: httpx.Response(503)), failure_threshold=1)
    outer = BreakerTransport(inner, failure_threshold=2)
    with httpx.Client(transport=outer) as client:
        client.get("https://example.com")
        for _ in range(3):
            with pytest.raises(CircuitOpenError):
                client.get("https://example.com")
    assert outer.group.for_key("https://example.com").get_state() == "closed"


def test_observing_refuses_nothing(flavor: NewFlavor) -> None:
    with flavor(failure_threshold=1, observe=True) as f:
        assert [f.get("status/503").status_code for _ in range(3)] == [503] * 3
        assert f.snapshot.state == "open"


# Circuits.


def test_each_hop_of_a_redirect_asks_the_circuit_of_its_own_host(flavor: NewFlavor) -> None:
    with flavor(failure_threshold=1) as f, upstream() as other:
        url = f.server.url(f"to/{other.url('status/503').replace('/', '%2F')}")
        response = f.run(f.client.get(url, follow_redirects=True))
        assert response.status_code == 503
        assert f.snapshot.state == "closed"
        with pytest.raises(CircuitOpenError) as raised:
            f.run(f.client.get(url, follow_redirects=True))
        assert raised.value.circuit == other.origin
        assert len(f.server.hits) == 2
        assert len(other.hits) == 1


@pytest.mark.parametrize(
    ("url", "key"),
    [
        ("https://user:secret@API.example.com:443/path?query", "https://api.example.com"),
        ("http://example.com:80", "http://example.com"),
        ("http://example.com:8080/", "http://example.com:8080"),
        ("https://example.com:80/", "https://example.com:80"),
        ("http://[::1]:8080/", "http://[::1]:8080"),
        ("https://bücher.example/", "https://xn--bcher-kva.example"),
    ],
)
def test_a_host_is_an_origin(url: str, key: str) -> None:
    transport = BreakerTransport(httpx.MockTransport(lambda _: httpx.Response(200)))
    with httpx.Client(transport=transport) as client:
        client.get(url)
    assert [breaker.name for breaker in transport.group] == [key]


def test_hosts_are_bounded() -> None:
    transport = BreakerTransport(httpx.MockTransport(lambda _: httpx.Response(200)), max_keys=10, name="web")
    with httpx.Client(transport=transport) as client:
        for number in range(100):
            client.get(f"https://host-{number}.example.com")
    assert len(transport.group) == 10
    assert next(iter(transport.group)).name == "web:https://host-90.example.com"


def test_a_group_of_ones_own_is_shared_by_transports() -> None:
    group = CircuitBreakerGroup(failure_threshold=1)
    down = BreakerTransport(httpx.MockTransport(lambda _: httpx.Response(503)), group=group)
    well = AsyncBreakerTransport(httpx.MockTransport(lambda _: httpx.Response(200)), group=group)
    assert down.group is well.group is group
    with httpx.Client(transport=down) as client:
        client.get("https://example.com")

    async def main() -> None:
        async with httpx.AsyncClient(transport=well) as client:
            with pytest.raises(CircuitOpenError):
                await client.get("https://example.com")

    asyncio.run(main())


@pytest.mark.parametrize("transport", [BreakerTransport, AsyncBreakerTransport])
def test_options_that_fit_no_transport_are_refused(transport: Any) -> None:
    name = transport.__name__
    for option in ("is_failure_result", "timeout_ms"):
        with pytest.raises(ConfigError, match=f"`{option}` is not an option of {name}: ") as raised:
            transport(**{option: 5})
        assert raised.value.field == option
        transport(**{option: None})
    with pytest.raises(ConfigError, match="failure_threshold"):
        transport(failure_threshold=0)
    with pytest.raises(ConfigError, match="treshold"):
        transport(treshold=1)
    hint = (
        rf"`verify` .* of {name}: give it to the httpx\.\w+ that it wraps, {name}\(\w*HTTPTransport\(verify=\.\.\.\)\)"
    )
    for group in (None, CircuitBreakerGroup()):
        with pytest.raises(ConfigError, match=hint):
            transport(verify=False, group=group)
    with pytest.raises(ConfigError, match=f"`failure_threshold` of {name} goes with no `group`"):
        transport(group=CircuitBreakerGroup(), failure_threshold=1)


def test_what_is_no_transport_or_no_group_is_refused() -> None:
    with pytest.raises(TypeError, match=r"`transport` of BreakerTransport must be an httpx\.BaseTransport"):
        BreakerTransport(httpx.AsyncHTTPTransport())  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(TypeError, match=r"`transport` of AsyncBreakerTransport must be an httpx\.AsyncBaseTransport"):
        AsyncBreakerTransport(httpx.HTTPTransport())  # type: ignore[arg-type]  # wrong on purpose
    groups: list[Any] = [{}, CircuitBreakerGroup]
    for group in groups:
        with pytest.raises(
            TypeError, match=r"`group` must be a CircuitBreakerGroup or a switchgear\.redis\.Distributed"
        ):
            BreakerTransport(group=group)


def test_closing_passes_through() -> None:
    class Counting(httpx.MockTransport):
        told: list[str]

        def __enter__(self) -> Any:
            self.told.append("enter")

        def __exit__(self, *raised: object) -> None:
            self.told.append("exit")

        def close(self) -> None:
            self.told.append("close")

        async def __aenter__(self) -> Any:
            self.told.append("aenter")

        async def __aexit__(self, *raised: object) -> None:
            self.told.append("aexit")

        async def aclose(self) -> None:
            self.told.append("aclose")

    inner = Counting(lambda _: httpx.Response(200))
    inner.told = []
    with httpx.Client(transport=BreakerTransport(inner)):
        pass
    httpx.Client(transport=BreakerTransport(inner)).close()

    async def main() -> None:
        async with httpx.AsyncClient(transport=AsyncBreakerTransport(inner)):
            pass
        await httpx.AsyncClient(transport=AsyncBreakerTransport(inner)).aclose()

    asyncio.run(main())
    assert inner.told == ["enter", "exit", "close", "aenter", "aexit", "aclose"]


def test_threads_share_a_client() -> None:
    with sync_flavor(failure_threshold=1_000_000, clock=ManualClock()) as f:

        def work() -> None:
            for _ in range(20):
                f.get("status/503")

        in_threads([work] * 4)
        assert f.failures == 80


def test_no_lock_is_held_while_a_request_is_under_way() -> None:
    both = threading.Barrier(2, timeout=60)

    def meet(request: httpx.Request) -> httpx.Response:
        both.wait()
        return httpx.Response(200)

    with httpx.Client(transport=BreakerTransport(httpx.MockTransport(meet))) as client:
        in_threads([lambda: client.get("https://example.com")] * 2)


# Shared circuits.


def test_processes_share_the_circuit_of_a_host(redis_server: Server) -> None:
    name = str(uuid4())
    with upstream() as server, redis.Redis(port=redis_server.port) as one, redis.Redis(port=redis_server.port) as other:
        clients = []
        for connection in (one, other):
            store = switchgear.redis.RedisStore(connection, timeout_ms=20_000)
            group = switchgear.redis.DistributedCircuitBreakerGroup(name, store, failure_threshold=2)
            clients.append(httpx.Client(transport=BreakerTransport(group=group), timeout=PATIENT))
        with clients[0], clients[1]:
            for client in clients:
                client.get(server.url("status/503"))
            for client in clients:
                with pytest.raises(CircuitOpenError) as raised:
                    client.get(server.url("status/200"))
                assert raised.value.circuit == f"{name}:{server.origin}"
        assert len(server.hits) == 2


def test_a_shared_circuit_of_asyncio(redis_server: Server) -> None:
    name = str(uuid4())
    clock = ManualClock()

    async def main(server: Upstream) -> None:
        connection = redis.asyncio.Redis(port=redis_server.port)
        store = switchgear.redis.asyncio.RedisStore(connection, timeout_ms=20_000, clock=clock)
        group = switchgear.redis.asyncio.DistributedCircuitBreakerGroup(name, store, failure_threshold=1)
        breaker = group.for_key(server.origin)
        async with httpx.AsyncClient(transport=AsyncBreakerTransport(group=group), timeout=PATIENT) as client:
            await client.get(server.url("status/503"))
            with pytest.raises(CircuitOpenError):
                await client.get(server.url("status/200"))
            clock.now += 30_000
            await cancel_under_way(client, server, 1)
            assert (await breaker.get_snapshot()).half_open_in_flight == 0
            # Whose scopes cancel again and again what is still awaited.
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(client.get, server.url("hang/"))
                await until(lambda: len(server.hits) == 3)
                tasks.cancel_scope.cancel()
            # What could not be awaited any more goes on by itself.
            while (await breaker.get_snapshot()).half_open_in_flight:
                pass
            async with client.stream("GET", server.url("drip/")):
                assert (await breaker.get_snapshot()).half_open_in_flight == 1
            assert (await breaker.get_snapshot()).half_open_in_flight == 0
            async with client.stream("GET", server.url("body/2")) as response:
                await response.aread()
            assert await breaker.get_state() == "closed"
        await connection.aclose()

    with upstream() as server:
        asyncio.run(main(server))


def test_a_group_of_the_other_kind_is_refused_with_the_name_of_the_right_one(redis_server: Server) -> None:
    with redis.Redis(port=redis_server.port) as connection:
        blocking = switchgear.redis.DistributedCircuitBreakerGroup("web", switchgear.redis.RedisStore(connection))
        with pytest.raises(TypeError, match=r"AsyncBreakerTransport takes a switchgear\.redis\.asyncio\.Distributed"):
            AsyncBreakerTransport(group=blocking)  # type: ignore[arg-type]  # wrong on purpose
    store = switchgear.redis.asyncio.RedisStore(redis.asyncio.Redis(port=redis_server.port))
    awaited = switchgear.redis.asyncio.DistributedCircuitBreakerGroup("web", store)
    with pytest.raises(TypeError, match=r"BreakerTransport takes a switchgear\.redis\.Distributed"):
        BreakerTransport(group=awaited)  # type: ignore[arg-type]  # wrong on purpose


def test_a_store_that_does_not_answer_refuses_under_fail_closed() -> None:
    with upstream() as server, redis.Redis(port=closed_port()) as connection:
        store = switchgear.redis.RedisStore(connection)
        group = switchgear.redis.DistributedCircuitBreakerGroup("web", store, on_store_failure="fail-closed")
        with (
            httpx.Client(transport=BreakerTransport(group=group)) as client,
            pytest.raises(httpx.TransportError) as raised,
        ):
            client.get(server.url("status/200"))
        refusal = raised.value
        assert isinstance(refusal, StoreUnavailableError)
        assert isinstance(refusal, switchgear.StoreUnavailableError)
        assert refusal.circuit == f"web:{server.origin}"
        assert refusal.request.url == server.url("status/200")
        for other in [*_copies(refusal), type(refusal)(*refusal.args)]:
            assert (type(other), other.args, other.reason) == (StoreUnavailableError, refusal.args, refusal.reason)
        assert server.hits == []


# Imports.


@pytest.mark.parametrize(
    ("module", "library"),
    [("switchgear.httpx", "httpx"), ("switchgear.requests", "requests"), ("switchgear.starlette", "starlette")],
)
def test_a_missing_library_is_named_and_only_where_it_is_needed(module: str, library: str) -> None:
    program = f"""
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name == {library!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Missing())
import switchgear
try:
    import {module}
except ImportError as error:
    print(error)
"""
    assert run_script(program).stdout == f"{module} needs {library}: pip install {library}\n"


def test_importing_the_package_imports_none_of_them() -> None:
    program = "import sys, switchgear; print(sorted({'httpx', 'requests', 'starlette', 'redis'} & set(sys.modules)))"
    assert run_script(program).stdout == "[]\n"


class Interrupted(BaseException):
    """What comes in between, whatever the program is at."""


def interrupt(event: object) -> None:
    raise Interrupted


def test_an_interrupt_while_an_answer_is_settled_gives_its_connection_back() -> None:
    limits = httpx.Limits(max_connections=1)
    transport = BreakerTransport(httpx.HTTPTransport(limits=limits))
    with upstream() as server, httpx.Client(transport=transport, timeout=PATIENT) as client:
        off = transport.group.on("failure", interrupt)
        with pytest.raises(Interrupted):
            client.get(server.url("status/503"))
        off()
        assert client.get(server.url("status/503")).status_code == 503


def test_so_it_does_for_asyncio() -> None:
    async def main() -> None:
        limits = httpx.Limits(max_connections=1)
        transport = AsyncBreakerTransport(httpx.AsyncHTTPTransport(limits=limits))
        with upstream() as server:
            async with httpx.AsyncClient(transport=transport, timeout=PATIENT) as client:
                off = transport.group.on("failure", interrupt)
                with pytest.raises(Interrupted):
                    await client.get(server.url("status/503"))
                off()
                assert (await client.get(server.url("status/503"))).status_code == 503

    asyncio.run(main())


def test_closing_an_answer_raises_nothing_of_a_clock_that_breaks() -> None:
    works = [True]

    def clock() -> int:
        if not works[0]:
            raise OSError("the clock is gone")
        return 1

    answer = httpx.MockTransport(lambda request: httpx.Response(200, content=iter([b"x", b"y"])))
    with (
        httpx.Client(transport=BreakerTransport(answer, clock=clock)) as client,
        client.stream("GET", "http://example.com/") as response,
    ):
        assert next(response.iter_raw()) == b"x"
        works[0] = False
