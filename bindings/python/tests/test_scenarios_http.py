"""The users' scenario about HTTP, on a real server, through every way to make such calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import httpx
import pytest
import requests
from support.upstream import Upstream, closed_port, upstream
from switchgear import CircuitBreaker, CircuitBreakerGroup
from switchgear.httpx import AsyncBreakerTransport, BreakerTransport
from switchgear.requests import BreakerAdapter

Get = Callable[[str], int]
"""Asks for a URL, and gives the status of the answer; raises what the client raises."""


@pytest.fixture(scope="module")
def server() -> Iterator[Upstream]:
    with upstream() as server:
        yield server


def by_httpx(group: CircuitBreakerGroup) -> Get:
    def get(url: str) -> int:
        with httpx.Client(transport=BreakerTransport(group=group), timeout=60) as client:
            return client.get(url).status_code

    return get


def by_async_httpx(group: CircuitBreakerGroup) -> Get:
    async def get(url: str) -> int:
        async with httpx.AsyncClient(transport=AsyncBreakerTransport(group=group), timeout=60) as client:
            return (await client.get(url)).status_code

    return lambda url: asyncio.run(get(url))


def by_requests(group: CircuitBreakerGroup) -> Get:
    def get(url: str) -> int:
        with requests.Session() as session:
            session.mount("http://", BreakerAdapter(group=group))
            return session.get(url).status_code

    return get


@pytest.mark.parametrize("client", [by_httpx, by_async_httpx, by_requests])
def test_scenario_35_503_counts_404_does_not_a_malformed_url_does_not(
    server: Upstream, client: Callable[[CircuitBreakerGroup], Get]
) -> None:
    group = CircuitBreakerGroup()
    get = client(group)
    breaker = group.for_key(server.origin)
    assert get(server.url("status/404")) == 404
    with pytest.raises((httpx.InvalidURL, httpx.UnsupportedProtocol, requests.exceptions.InvalidURL)):
        get("http://")
    assert breaker.get_snapshot().failures_in_window == 0
    assert get(server.url("status/503")) == 503
    assert breaker.get_snapshot().failures_in_window == 1
    # Nobody listens there: that host's own circuit counts it.
    nobody = f"http://127.0.0.1:{closed_port()}"
    with pytest.raises((httpx.ConnectError, requests.ConnectionError)):
        get(nobody)
    assert group.for_key(nobody).get_snapshot().failures_in_window == 1
    assert breaker.get_snapshot().failures_in_window == 1


def test_scenario_35_by_hand_with_what_python_brings(server: Upstream) -> None:
    def is_failure(error: Exception) -> bool:
        return not isinstance(error, (ValueError, HTTPError)) or (isinstance(error, HTTPError) and error.code >= 500)

    breaker = CircuitBreaker("dependency", is_failure=is_failure)

    @breaker
    def get(url: str) -> int:
        with urlopen(url) as response:
            status: int = response.status
            return status

    def status_of(url: str) -> int:
        with pytest.raises(HTTPError) as raised:
            get(url)
        raised.value.close()
        return raised.value.code

    assert status_of(server.url("status/404")) == 404
    with pytest.raises(ValueError, match="unknown url type"):
        get("no URL")
    assert breaker.get_snapshot().failures_in_window == 0
    assert status_of(server.url("status/503")) == 503
    with pytest.raises(URLError):
        get(f"http://127.0.0.1:{closed_port()}")
    assert breaker.get_snapshot().failures_in_window == 2
