"""The user's client, known by its class, and what a store has to know of it.

No client library is imported: each stays optional, and any version will do.
"""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol


class Commands(Protocol):
    """Anything that sends a command, routed by `key` where there is more than one server. For `switchgear.redis`.

    To list circuits, and for nothing else, it also needs a method `masters()`, which gives such an object for each
    server that takes writes, to be asked by itself, with an empty key: `[self]` where there is one. That none of them
    is missing is not checked.
    """

    def command(self, args: list[str], key: str) -> object:
        """Sends `args`, the command's name first, and returns the reply; raises the server's error reply."""


class AsyncCommands(Protocol):
    """The same for `switchgear.redis.asyncio`. Its `masters()`, if it has one, may be a coroutine function."""

    async def command(self, args: list[str], key: str) -> object:
        """Sends `args`, the command's name first, and returns the reply; raises the server's error reply."""


LIBRARIES = ("redis", "valkey")
"""The packages whose clients are known."""


class Kind(Enum):
    """How a client takes a command."""

    SINGLE = "a client of one server"
    CLUSTER = "a client of a cluster"
    COMMANDS = "an object with `command(args, key)`"


@dataclass(frozen=True)
class Client:
    """A client that was recognised."""

    kind: Kind
    given: Any
    """What was given: foreign code, of which only the kind is known."""
    reads_primary: bool
    """Whether a plain read goes to the server that takes writes. A replica, or a cache, knows less than one should."""


def recognise(client: object, *, is_async: bool) -> Client:
    """What a client is, for the stores of `asyncio` or for the others.

    Raises:
        TypeError: It is of the wrong kind; the message names the right one.
    """
    classes = list(_library_classes(client))
    names = {name for name, _ in classes}
    if not names:
        return _commands(client, is_async=is_async)
    foreign = any(of_asyncio for _, of_asyncio in classes) != is_async
    if names & _NO_CLIENTS:
        raise TypeError(_refusal(client, is_async=is_async))
    if names & _CLUSTERS:
        _check_side(client, foreign=foreign, is_async=is_async)
        return Client(Kind.CLUSTER, client, not _may_ask_replicas(client) and not _caches(client))
    if names & _SINGLES:
        _check_side(client, foreign=foreign, is_async=is_async)
        if getattr(getattr(client, "connection_pool", None), "is_master", True) is False:
            raise TypeError("`client` is a client of replicas, which take no outcome: use `sentinel.master_for(...)`")
        return Client(Kind.SINGLE, client, not _caches(client))
    raise TypeError(_refusal(client, is_async=is_async))


def client_of(cluster: Any, node: Any) -> Any:
    """A sync cluster's client of one of its nodes."""
    for library in LIBRARIES:
        client = getattr(node, f"{library}_connection", None)
        if client is not None:
            return client
    # One that was not needed yet; valkey-py has renamed it.
    make = getattr(cluster, "get_redis_connection", None)
    return cluster.get_valkey_connection(node) if make is None else make(node)


def class_of(client: object) -> str:
    """What was given, by its class alone: a client holds a password, a URL may."""
    if isinstance(client, type):
        return f"the class {client.__qualname__}"
    of = client.__class__
    return of.__qualname__ if of.__module__ == "builtins" else f"{of.__module__}.{of.__qualname__}"


_SINGLES = frozenset({"Redis", "Valkey"})
_CLUSTERS = frozenset({"RedisCluster", "ValkeyCluster"})
# These are built on the classes above, or have their method, and do something else with a command.
_NO_CLIENTS = frozenset({"Pipeline", "ClusterPipeline", "PubSub", "ClusterPubSub", "Monitor"})


def _library_classes(client: object) -> Iterator[tuple[str, bool]]:
    """The classes of the client libraries that something is of, and whether each is one for asyncio."""
    # Its `__class__`, not its type: proxies pass for what they stand for.
    for base in inspect.getmro(client.__class__):
        path = base.__module__.split(".")
        if path[0] in LIBRARIES:
            yield base.__name__, "asyncio" in path


def _commands(client: object, *, is_async: bool) -> Client:
    command = getattr(client, "command", None)
    if isinstance(client, type) or not callable(command):
        raise TypeError(_refusal(client, is_async=is_async))
    call = getattr(command, "__call__", None)  # noqa: B004 - an object's own, not whether it has one
    of_asyncio = inspect.iscoroutinefunction(command) or inspect.iscoroutinefunction(call)
    if of_asyncio and not is_async:
        raise TypeError(f"`client.command` is a coroutine function: `{_ASYNC_STORE}` takes it")
    if is_async and not of_asyncio:
        raise TypeError(f"`client.command` is no coroutine function (`async def`): `{_SYNC_STORE}` takes it")
    return Client(Kind.COMMANDS, client, reads_primary=False)


def _check_side(client: object, *, foreign: bool, is_async: bool) -> None:
    if not foreign:
        return
    given, store = ("a sync client", _SYNC_STORE) if is_async else ("a client for asyncio", _ASYNC_STORE)
    raise TypeError(f"`client` is {given} (`{class_of(client)}`): `{store}` takes it")


_SYNC_STORE = "switchgear.redis.RedisStore"
_ASYNC_STORE = "switchgear.redis.asyncio.RedisStore"


def _may_ask_replicas(client: object) -> bool:
    # What does not say so may.
    return bool(getattr(client, "read_from_replicas", True)) or bool(getattr(client, "load_balancing_strategy", None))


def _caches(client: object) -> bool:
    """Whether reads may be answered from a cache in this process."""
    get_cache = getattr(client, "get_cache", None)
    pool = getattr(client, "connection_pool", None) or getattr(client, "nodes_manager", None)
    return (get_cache() is not None if callable(get_cache) else False) or getattr(pool, "_cache", None) is not None


def _refusal(client: object, *, is_async: bool) -> str:
    module = "redis.asyncio" if is_async else "redis"
    text = (
        f"`client` must be a client of redis-py or valkey-py (`{module}.Redis`, `{module}.RedisCluster`, the "
        f"`master_for` of a `Sentinel`) or an object with `command(args, key)`, got `{class_of(client)}`"
    )
    if any(importlib.util.find_spec(library) for library in LIBRARIES):
        return text
    return f'{text}; no client library is installed: pip install "switchgear[redis]"'
