"""What suites share. Fixtures give factories: several threads may run a test with the same fixtures at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import pytest
from support.servers import Server, start_server

# Here only suites that tell scenarios need the client libraries.
if TYPE_CHECKING:
    from support.async_world import AsyncWorld
    from support.world import World

NewWorld: TypeAlias = "Callable[[], AbstractContextManager[World]]"
NewAsyncWorld: TypeAlias = "Callable[[], AbstractAsyncContextManager[AsyncWorld]]"


@pytest.fixture(scope="session")
def redis_server() -> Iterator[Server]:
    """A server for tests that leave it alone: each uses circuits of its own, and none stops, pauses or flushes it."""
    with start_server() as server:
        yield server


@pytest.fixture(params=["local", "shared"])
def new_world(request: pytest.FixtureRequest) -> NewWorld:
    """Makes a world of local breakers, and one of shared breakers on a real Redis."""
    from support.world import local_world, shared_world

    if request.param == "local":
        return local_world
    return partial(shared_world, request.getfixturevalue("redis_server"))


@pytest.fixture(params=["local", "shared"])
def new_async_world(request: pytest.FixtureRequest) -> NewAsyncWorld:
    """The same for calls that are awaited."""
    from support.async_world import local_async_world, shared_async_world

    if request.param == "local":
        return local_async_world
    return partial(shared_async_world, request.getfixturevalue("redis_server"))


@pytest.fixture(params=["sync", "asyncio"])
def kind(request: pytest.FixtureRequest) -> str:
    """Which side of the package."""
    param: str = request.param
    return param


@pytest.fixture
def side(kind: str, redis_server: Server) -> Iterator[Any]:
    """One side of the package, on the server that tests leave alone."""
    from support.sides import side_of

    with side_of(kind, redis_server.port) as side:
        yield side
