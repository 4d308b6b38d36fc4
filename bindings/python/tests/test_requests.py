"""switchgear.requests against a real server that fails in each of the ways in which servers fail."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import uuid4

import pytest
import redis
import redis.asyncio
import requests
import requests.adapters
import switchgear
import switchgear.redis
import switchgear.redis.asyncio
import urllib3
from support.clock import ManualClock
from support.servers import Server
from support.threads import in_threads
from support.upstream import Upstream, closed_port, upstream
from switchgear import CircuitBreakerGroup, ConfigError, Snapshot
from switchgear.requests import BreakerAdapter, CircuitOpenError, StoreUnavailableError
from urllib3.util import Retry

# What works has time also on a machine that is busy. BRIEF is for what hangs for good: there nothing can come late.
PATIENT, BRIEF = 60, (60, 0.1)


class Rig:
    """A server, a session, and the adapter between them."""

    def __init__(self, server: Upstream, session: requests.Session, adapter: BreakerAdapter) -> None:
        self.server = server
        self.session = session
        self.adapter = adapter

    def get(self, path: str, **options: Any) -> requests.Response:
        return self.session.get(self.server.url(path), **{"timeout": PATIENT, **options})

    @property
    def breaker(self) -> Any:
        return self.adapter.group.for_key(self.server.origin)

    @property
    def snapshot(self) -> Snapshot:
        seen: Snapshot = self.breaker.get_snapshot()
        return seen

    @property
    def failures(self) -> int:
        return self.snapshot.failures_in_window


def session_with(adapter: requests.adapters.BaseAdapter) -> requests.Session:
    session = requests.Session()
    session.trust_env = False
    session.mount("http://", adapter)
    session.mount("https://", adapter)
    return session


@contextmanager
def rig(adapter: requests.adapters.BaseAdapter | None = None, **policy: Any) -> Iterator[Rig]:
    breaker = BreakerAdapter(adapter, **policy)
    with upstream() as server, session_with(breaker) as session:
        yield Rig(server, session, breaker)


@contextmanager
def half_open() -> Iterator[Rig]:
    """A rig whose circuit will take its next request for a probe; there is one slot."""
    clock = ManualClock()
    with rig(clock=clock, open_duration_ms=1000, probe_timeout_ms=1_000_000) as r:
        r.breaker.trip()
        clock.now += 1000
        yield r


# What counts: DESIGN section 6, scenario 35.


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599])
def test_a_failing_status_counts_and_the_answer_comes_through(status: int) -> None:
    with rig() as r:
        response = r.get(f"status/{status}")
        assert (response.status_code, response.text) == (status, f"status {status}")
        assert r.failures == 1


@pytest.mark.parametrize("status", [200, 204, 301, 304, 400, 401, 404, 418, 499, 501])
def test_any_other_status_is_a_success(status: int) -> None:
    with rig(trip_on="rate") as r:
        assert r.get(f"status/{status}").status_code == status
        assert (r.snapshot.calls_in_window, r.failures) == (1, 0)


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("hang/", requests.ReadTimeout),
        ("reset/", requests.ConnectionError),
        ("garbage/", requests.ConnectionError),
        ("break/", requests.exceptions.ChunkedEncodingError),
        ("snap/", requests.exceptions.ChunkedEncodingError),
    ],
)
def test_what_breaks_on_the_way_counts_and_comes_through(path: str, error: type[requests.RequestException]) -> None:
    with rig() as r:
        with pytest.raises(error):
            r.get(path, timeout=BRIEF if error is requests.ReadTimeout else PATIENT)
        assert r.failures == 1


def test_a_body_that_hangs_counts_and_comes_through() -> None:
    def wait_no_longer(response: requests.Response, **_: Any) -> None:
        """The answer has come: only its body may be late."""
        connection: Any = response.raw.connection
        connection.sock.settimeout(0.1)

    with rig() as r:
        with pytest.raises(requests.ConnectionError, match="Read timed out"):
            r.get("drip/", hooks={"response": wait_no_longer})
        assert r.failures == 1


def test_nobody_listening_counts() -> None:
    with rig() as r:
        origin = f"http://127.0.0.1:{closed_port()}"
        with pytest.raises(requests.ConnectionError):
            r.session.get(origin)
        assert r.adapter.group.for_key(origin).get_snapshot().failures_in_window == 1


def test_what_cannot_be_sent_is_neutral() -> None:
    """Scenario 35: the caller's invalid request."""
    with rig(failure_threshold=1) as r:
        for url, error in [
            ("example.com", requests.exceptions.MissingSchema),
            ("gopher://example.com", requests.exceptions.InvalidSchema),
            ("http://", requests.exceptions.InvalidURL),
        ]:
            for _ in range(2):
                with pytest.raises(error):
                    r.session.get(url)
        for _ in range(2):
            with pytest.raises(requests.exceptions.InvalidHeader):
                r.get("status/200", headers={"X-Bad": "line\nbreak"})
            with pytest.raises(requests.exceptions.InvalidProxyURL):
                r.get("status/200", proxies={"http": "http:///nowhere"})
            with pytest.raises(OSError, match="certificate"):
                r.session.get(r.server.origin.replace("http", "https"), verify="/no/such/file")
        assert {breaker.get_state() for breaker in r.adapter.group} == {"closed"}
        assert r.server.hits == []


@pytest.mark.parametrize(
    ("url", "error"),
    [
        ("http://example.com:port/", requests.exceptions.InvalidURL),
        (f"http://{'a' * 300}.com/", urllib3.exceptions.HTTPError),
    ],
)
def test_a_host_that_cannot_be_is_no_circuit(url: str, error: type[Exception]) -> None:
    """An adapter may be asked for what a session would have refused."""
    request = requests.Request("GET", "http://example.com").prepare()
    request.url = url
    adapter = BreakerAdapter()
    with pytest.raises(error):
        adapter.send(request)
    assert len(adapter.group) == 0
    adapter.close()


class BrokenFile:
    """A file whose source breaks: a download that is uploaded elsewhere, say."""

    def __len__(self) -> int:
        return 100

    def read(self, size: int = -1) -> bytes:
        raise ConnectionResetError("the download")


def broken_iterator() -> Iterator[bytes]:
    yield b"x"
    raise ConnectionResetError("the download")


@pytest.mark.parametrize("body", [BrokenFile, broken_iterator])
def test_an_error_of_the_callers_own_body_is_neutral_whatever_it_is(body: Any) -> None:
    with rig(failure_threshold=1) as r:
        data = body()
        request = r.session.prepare_request(requests.Request("POST", r.server.url("status/200")))
        request.body = data
        with pytest.raises(requests.ConnectionError, match="the download"):
            r.session.send(request)
        assert request.body is data
        assert r.snapshot.state == "closed"


UPLOADS: dict[str, Callable[[], Any]] = {
    "file": lambda: io.BytesIO(b"body"),
    "text file": lambda: io.StringIO("body"),
    "iterator": lambda: iter([b"bo", b"dy"]),
    "bytes": lambda: b"body",
    "memory": lambda: memoryview(b"body"),
    "text": lambda: "body",
}


@pytest.mark.parametrize("kind", UPLOADS)
def test_uploads_arrive(kind: str) -> None:
    with rig() as r:
        assert r.session.post(r.server.url("echo/"), data=UPLOADS[kind]()).text == "body"


def test_the_retries_of_urllib3_are_one_call() -> None:
    retries = Retry(total=2, status_forcelist=[503], backoff_factor=0)
    with rig(requests.adapters.HTTPAdapter(max_retries=retries), trip_on="rate") as r:
        assert r.get("flaky/2").status_code == 200
        assert (r.snapshot.calls_in_window, r.failures) == (1, 0)
        with pytest.raises(requests.exceptions.RetryError):
            r.get("flaky/9")
        assert (r.snapshot.calls_in_window, r.failures) == (2, 1)
        assert len(r.server.hits) == 6


def test_is_failure_and_ignore_see_the_error() -> None:
    seen: list[Exception] = []

    def is_failure(error: Exception) -> bool:
        seen.append(error)
        return not (isinstance(error, requests.HTTPError) and error.response.status_code == 429)

    with rig(is_failure=is_failure, ignore=requests.Timeout) as r:
        r.get("status/429")
        with pytest.raises(requests.ReadTimeout):
            r.get("hang/", timeout=BRIEF)
        assert r.failures == 0
        r.get("status/503")
        assert r.failures == 1
        assert [str(error) for error in seen] == ["HTTP 429", "HTTP 503"]
        assert all(isinstance(error, requests.HTTPError) and error.request is not None for error in seen)


def test_each_call_emits_one_event() -> None:
    """Scenario 36."""
    with rig(failure_threshold=1) as r:
        heard: list[tuple[str, str | None]] = []
        for event in ("success", "failure", "ignored", "refused"):
            r.adapter.group.on(event, lambda told, event=event: heard.append((event, told.error and str(told.error))))
        r.get("body/3")
        r.get("drip/", stream=True).close()
        r.get("status/503")
        with pytest.raises(CircuitOpenError) as raised:
            r.get("status/200")
        assert heard == [("success", None), ("ignored", None), ("failure", "HTTP 503"), ("refused", str(raised.value))]


def test_a_slow_answer_counts_where_the_policy_says_so() -> None:
    clock = ManualClock()
    with rig(slow_call_ms=100, clock=clock) as r:
        for wait, failures in [(100, 0), (101, 1)]:
            with r.get("body/1", stream=True) as response:
                clock.now += wait
                assert len(response.content) == 1000
            assert r.failures == failures


# A probe: what frees its slot, and what decides.


def test_an_answer_that_requests_reads_is_settled_when_it_comes() -> None:
    with half_open() as r:
        assert len(r.get("body/3").content) == 3000
        assert r.snapshot.state == "closed"


def read_raw(response: requests.Response) -> int:
    return len(response.raw.read(decode_content=True))


def read_bit_by_bit(response: requests.Response) -> int:
    return sum(len(data) for data in iter(lambda: response.raw.read(1, decode_content=True), b""))


def copy_raw(response: requests.Response) -> int:
    response.raw.decode_content = True
    copied = io.BytesIO()
    shutil.copyfileobj(response.raw, copied)
    return len(copied.getvalue())


WAYS_TO_READ: dict[str, Any] = {
    "content": lambda response: len(response.content),
    "iter_content": lambda response: sum(map(len, response.iter_content(100))),
    "iter_lines": lambda response: sum(map(len, response.iter_lines())),
    "stream": lambda response: sum(map(len, response.raw.stream(100, decode_content=True))),
    "iter": lambda response: sum(map(len, response.raw)),
    "read": read_raw,
    "bit by bit": read_bit_by_bit,
    "copy": copy_raw,
}


@pytest.mark.parametrize("way", WAYS_TO_READ)
@pytest.mark.parametrize("path", ["body/1", "status/200", "gzip/"])
def test_a_body_read_to_its_end_in_any_way_is_a_success(way: str, path: str) -> None:
    with half_open() as r, r.get(path, stream=True) as response:
        assert r.snapshot.half_open_in_flight == 1
        assert WAYS_TO_READ[way](response) == {"body/1": 1000, "status/200": 10, "gzip/": 10}[path]
        assert r.snapshot.state == "closed"


@pytest.mark.parametrize(
    ("way", "error"),
    [("iter_content", requests.exceptions.ChunkedEncodingError), ("read", urllib3.exceptions.ProtocolError)],
)
@pytest.mark.parametrize("path", ["snap/", "break/"])
def test_a_body_that_breaks_is_a_failure(way: str, error: type[Exception], path: str) -> None:
    with half_open() as r, r.get(path, stream=True) as response:
        with pytest.raises(error):
            WAYS_TO_READ[way](response)
        assert r.snapshot.state == "open"


@pytest.mark.parametrize("read_first", [False, True])
def test_a_body_closed_early_is_neutral(read_first: bool) -> None:
    with half_open() as r:
        with r.get("drip/", stream=True) as response:
            if read_first:
                assert len(next(response.iter_content(1000))) == 1000
        assert (r.snapshot.state, r.snapshot.half_open_in_flight) == ("half-open", 0)
        r.server.go_on.set()
        assert r.get("status/200").status_code == 200
        assert r.snapshot.state == "closed"


@pytest.mark.parametrize("read_first", [False, True])
def test_an_answer_that_was_thrown_away_holds_no_slot(read_first: bool) -> None:
    with half_open() as r:
        response = r.get("drip/", stream=True)
        if read_first:
            assert len(next(response.iter_content(1000))) == 1000
        with pytest.raises(CircuitOpenError):
            r.get("status/200")
        del response
        gc.collect()
        assert r.get("status/200").status_code == 200
        assert r.snapshot.state == "closed"


@pytest.mark.parametrize(("path", "method"), [("empty/", "GET"), ("status/204", "GET"), ("status/200", "HEAD")])
def test_an_answer_without_a_body_is_settled_at_once(path: str, method: str) -> None:
    with half_open() as r, r.session.request(method, r.server.url(path), stream=True):
        assert r.snapshot.state == "closed"


class InMemory(requests.adapters.HTTPAdapter):
    """Answers every request with the same body, and asks nobody."""

    def __init__(self, raw: Any) -> None:
        super().__init__()
        self.raw = raw

    def send(self, request: requests.PreparedRequest, *args: Any, **options: Any) -> requests.Response:
        answer = self.build_response(request, urllib3.HTTPResponse(status=200))
        answer.raw = self.raw
        return answer


@contextmanager
def probe_of(adapter: requests.adapters.BaseAdapter) -> Iterator[tuple[Any, requests.Response]]:
    """The circuit of a host, and the answer to its only probe."""
    clock = ManualClock()
    guarded = BreakerAdapter(adapter, clock=clock)
    breaker = guarded.group.for_key("https://example.com")
    breaker.trip()
    clock.now += 30_000
    with session_with(guarded) as session, session.get("https://example.com", stream=True) as response:
        yield breaker, response


class Plain(io.BytesIO):
    """A body of no library's own, which takes what that of urllib3 takes."""

    def read(self, size: int | None = -1, decode_content: bool = False) -> bytes:
        return super().read(size)


class Hesitant(urllib3.HTTPResponse):
    """Like one of urllib3 1 whose first bytes decode to nothing yet."""

    hesitated = False

    def read(self, *args: Any, **options: Any) -> bytes:
        if self.hesitated:
            return super().read(*args, **options)
        self.hesitated = True
        return b""


def test_bodies_of_other_kinds_are_read_to_their_end_too() -> None:
    with probe_of(InMemory(io.BytesIO(b"body"))) as (breaker, response):
        assert response.raw.read(4) == b"body"
        assert response.raw.read(0) == b""
        assert breaker.get_state() == "half-open"
        assert response.raw.read(4) == b""
        assert breaker.get_state() == "closed"
    for way in ("content", "read"):
        for body in (Plain(b"body"), urllib3.HTTPResponse(io.BytesIO(b"body"), preload_content=False)):
            with probe_of(InMemory(body)) as (breaker, response):
                assert WAYS_TO_READ[way](response) == 4
                assert breaker.get_state() == "closed"
    with probe_of(InMemory(Hesitant(io.BytesIO(b"body"), preload_content=False))) as (breaker, response):
        assert response.raw.read(1) == b""
        assert breaker.get_state() == "half-open"
        assert response.raw.read(5) == b"body"


def test_an_answer_that_an_adapter_further_down_has_read_is_settled_at_once() -> None:
    class Reading(InMemory):
        def send(self, *args: Any, **options: Any) -> requests.Response:
            response = super().send(*args, **options)
            assert response.content == b"body"
            return response

    with probe_of(Reading(io.BytesIO(b"body"))) as (breaker, response):
        assert breaker.get_state() == "closed"
        assert response.content == b"body"


def test_a_failing_status_is_settled_before_its_body() -> None:
    with half_open() as r, r.get("status/503", stream=True) as response:
        assert r.snapshot.state == "open"
        assert response.content == b"status 503"


def test_the_body_passes_for_what_it_was() -> None:
    with rig() as r, r.get("body/3", stream=True) as response:
        assert isinstance(response.raw, urllib3.HTTPResponse)
        assert response.raw.headers["Transfer-Encoding"] == "chunked"
        raw: Any = response.raw
        text = io.TextIOWrapper(raw)
        assert len(text.read()) == 3000


def test_an_interrupt_is_neutral_and_comes_through() -> None:
    class Interrupted(requests.adapters.HTTPAdapter):
        def send(self, *args: Any, **options: Any) -> requests.Response:
            raise KeyboardInterrupt

    with session_with(BreakerAdapter(Interrupted(), failure_threshold=1)) as session:
        for _ in range(2):
            with pytest.raises(KeyboardInterrupt):
                session.get("https://example.com")


# Refusals.


def test_a_refused_request_never_reaches_the_server() -> None:
    with rig(failure_threshold=2, open_duration_ms=12_300, clock=ManualClock()) as r:
        for _ in range(2):
            r.get("status/503")
        with pytest.raises(requests.RequestException) as raised:
            r.get("status/200?after")
        refusal = raised.value
        assert isinstance(refusal, CircuitOpenError)
        assert isinstance(refusal, switchgear.CircuitOpenError)
        assert not isinstance(refusal, (ConnectionError, TimeoutError, requests.ConnectionError, requests.Timeout))
        assert refusal.circuit == r.server.origin
        assert (refusal.state, refusal.retry_after_ms, refusal.last_failure) == ("open", 12_300, "HTTP 503")
        assert refusal.headers == {"Retry-After": "13"}
        assert refusal.request.url == r.server.url("status/200?after")
        assert (refusal.response, refusal.errno, refusal.strerror, refusal.filename) == (None, None, None, None)
        assert str(refusal) == f"circuit `{r.server.origin}` is open, retry in 12.3 s (last failure: HTTP 503)"
        assert r.server.hits == ["/status/503"] * 2


def copies(error: Any) -> list[Any]:
    return [copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))]


def test_a_refusal_survives_pickle_and_copy_with_its_fields() -> None:
    """Scenario 44."""
    with rig(failure_threshold=1) as r:
        r.get("status/503")
        with pytest.raises(CircuitOpenError) as raised:
            r.session.post(
                r.server.url("status/200"), data=iter([b"once"]), hooks={"response": lambda response, **_: response}
            )
    refusal = raised.value
    assert refusal.request.hooks["response"]
    rebuilt = type(refusal)(*refusal.args)
    for other in [*copies(refusal), rebuilt]:
        assert type(other) is CircuitOpenError
        assert other.args == refusal.args
        assert (other.circuit, other.state) == (refusal.circuit, refusal.state)
        assert (other.retry_after_ms, other.last_failure) == (refusal.retry_after_ms, refusal.last_failure)
        assert str(other) == str(refusal)
    for other in copies(refusal):
        assert (other.request.method, other.request.url) == ("POST", refusal.request.url)
        assert other.request.body is None
        assert not other.request.hooks["response"]
    assert rebuilt.request is None


def test_a_refusal_keeps_the_data_of_its_request() -> None:
    with rig(failure_threshold=1) as r:
        r.get("status/503")
        with pytest.raises(CircuitOpenError) as raised:
            r.session.post(r.server.url("status/200"), data={"a": "form"})
    assert [other.request.body for other in copies(raised.value)] == ["a=form"] * 3


def test_a_refusal_further_down_counts_nowhere_above() -> None:
    with upstream() as server:
        outer = BreakerAdapter(BreakerAdapter(failure_threshold=1), failure_threshold=2)
        with session_with(outer) as session:
            session.get(server.url("status/503"))
            for _ in range(3):
                with pytest.raises(CircuitOpenError):
                    session.get(server.url("status/503"))
        assert outer.group.for_key(server.origin).get_state() == "closed"


# Circuits.


def test_each_hop_of_a_redirect_asks_the_circuit_of_its_own_host() -> None:
    with rig(failure_threshold=1) as r, upstream() as other:
        path = f"to/{other.url('status/503').replace('/', '%2F')}"
        assert r.get(path).status_code == 503
        assert r.snapshot.state == "closed"
        with pytest.raises(CircuitOpenError) as raised:
            r.get(path)
        assert raised.value.circuit == other.origin
        assert len(r.server.hits) == 2
        assert len(other.hits) == 1


def test_behind_a_proxy_the_host_is_the_one_that_was_asked() -> None:
    with rig(failure_threshold=1) as r:
        proxy = f"http://127.0.0.1:{closed_port()}"
        with pytest.raises(requests.exceptions.ProxyError):
            r.session.get("http://example.com", proxies={"http": proxy})
        assert r.adapter.group.for_key("http://example.com").get_state() == "open"


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
    adapter = BreakerAdapter(InMemory(None))
    with session_with(adapter) as session:
        session.get(url)
    assert [breaker.name for breaker in adapter.group] == [key]


def test_hosts_are_bounded() -> None:
    adapter = BreakerAdapter(InMemory(None), max_keys=10, name="web")
    with session_with(adapter) as session:
        for number in range(100):
            session.get(f"https://host-{number}.example.com")
    assert len(adapter.group) == 10
    assert next(iter(adapter.group)).name == "web:https://host-90.example.com"


def test_options_that_fit_no_adapter_are_refused() -> None:
    options: dict[str, Any]
    for option in ("is_failure_result", "timeout_ms"):
        options = {option: 5}
        with pytest.raises(ConfigError, match=f"`{option}` is not an option of BreakerAdapter: ") as raised:
            BreakerAdapter(**options)
        assert raised.value.field == option
    hint = r"`max_retries` is not an option of BreakerAdapter: .* BreakerAdapter\(HTTPAdapter\(max_retries=\.\.\.\)\)"
    options = {"max_retries": 3}
    with pytest.raises(ConfigError, match=hint):
        BreakerAdapter(**options)
    with pytest.raises(ConfigError, match="`failure_threshold` of BreakerAdapter goes with no `group`"):
        BreakerAdapter(group=CircuitBreakerGroup(), failure_threshold=1)
    with pytest.raises(ConfigError, match="failure_threshold"):
        BreakerAdapter(failure_threshold=0)
    with pytest.raises(TypeError, match=r"`adapter` of BreakerAdapter must be a requests\.adapters\.BaseAdapter"):
        BreakerAdapter(requests.Session())  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(TypeError, match="`group` must be a CircuitBreakerGroup"):
        BreakerAdapter(group={})  # type: ignore[arg-type]  # wrong on purpose


def test_closing_passes_through() -> None:
    closed = []

    class Closing(requests.adapters.HTTPAdapter):
        def close(self) -> None:
            closed.append(self)
            super().close()

    inner = Closing()
    adapter = BreakerAdapter(inner)
    with session_with(adapter):
        pass
    # Mounted twice.
    assert closed == [inner, inner]


def test_pickling_is_refused_clearly() -> None:
    with session_with(BreakerAdapter()) as session:
        for attempt in (
            lambda: pickle.dumps(session),
            lambda: copy.copy(session.get_adapter("http://")),
            lambda: copy.deepcopy(session),
        ):
            with pytest.raises(TypeError, match="a BreakerAdapter cannot be pickled or copied"):
                attempt()


def test_an_answer_can_be_pickled() -> None:
    with rig() as r:
        response = pickle.loads(pickle.dumps(r.get("body/3")))
        assert (response.status_code, len(response.content)) == (200, 3000)


def test_threads_share_a_session() -> None:
    with rig(failure_threshold=1_000_000, clock=ManualClock()) as r:

        def work() -> None:
            for _ in range(20):
                r.get("status/503")

        in_threads([work] * 4)
        assert r.failures == 80


# Shared circuits.


def test_processes_share_the_circuit_of_a_host(redis_server: Server) -> None:
    name = str(uuid4())
    with upstream() as server, redis.Redis(port=redis_server.port) as one, redis.Redis(port=redis_server.port) as other:
        sessions = []
        for connection in (one, other):
            store = switchgear.redis.RedisStore(connection, timeout_ms=20_000)
            group = switchgear.redis.DistributedCircuitBreakerGroup(name, store, failure_threshold=2)
            sessions.append(session_with(BreakerAdapter(group=group)))
        for session in sessions:
            session.get(server.url("status/503"))
        for session in sessions:
            with pytest.raises(CircuitOpenError) as raised:
                session.get(server.url("status/200"))
            assert raised.value.circuit == f"{name}:{server.origin}"
            session.close()
        assert len(server.hits) == 2


def test_a_group_of_the_other_kind_is_refused_with_the_name_of_the_right_one(redis_server: Server) -> None:
    store = switchgear.redis.asyncio.RedisStore(redis.asyncio.Redis(port=redis_server.port))
    awaited = switchgear.redis.asyncio.DistributedCircuitBreakerGroup("web", store)
    with pytest.raises(TypeError, match=r"BreakerAdapter takes a switchgear\.redis\.Distributed"):
        BreakerAdapter(group=awaited)  # type: ignore[arg-type]  # wrong on purpose


def test_a_store_that_does_not_answer_refuses_under_fail_closed() -> None:
    with upstream() as server, redis.Redis(port=closed_port()) as connection:
        store = switchgear.redis.RedisStore(connection)
        group = switchgear.redis.DistributedCircuitBreakerGroup("web", store, on_store_failure="fail-closed")
        with session_with(BreakerAdapter(group=group)) as session, pytest.raises(requests.RequestException) as raised:
            session.get(server.url("status/200"))
        refusal = raised.value
        assert isinstance(refusal, StoreUnavailableError)
        assert isinstance(refusal, switchgear.StoreUnavailableError)
        assert refusal.circuit == f"web:{server.origin}"
        for other in [*copies(refusal), type(refusal)(*refusal.args)]:
            assert (type(other), other.args, other.reason) == (StoreUnavailableError, refusal.args, refusal.reason)
        assert server.hits == []


class Interrupted(BaseException):
    """What comes in between, whatever the program is at."""


def test_an_interrupt_while_an_answer_is_settled_gives_its_connection_back() -> None:
    def interrupt(event: object) -> None:
        raise Interrupted

    answers: list[requests.Response] = []

    class Seen(requests.adapters.HTTPAdapter):
        def send(self, *args: Any, **kwargs: Any) -> requests.Response:
            answers.append(super().send(*args, **kwargs))
            return answers[-1]

    adapter = BreakerAdapter(Seen())
    with upstream() as server, session_with(adapter) as session:
        adapter.group.on("failure", interrupt)
        with pytest.raises(Interrupted):
            session.get(server.url("status/503"), timeout=PATIENT)
        assert answers[0].raw.closed
