"""Connections of our own, like those of the user's client, and no part of its conversation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from switchgear._error import ConfigError
from switchgear.redis._clients import Client, Kind, class_of


def check_source(client: Client, purpose: str) -> None:
    """Checks that a client says enough to make a connection like its own.

    Raises:
        ConfigError: It does not.
    """
    if client.kind is Kind.CLUSTER or (client.kind is Kind.SINGLE and _says_how(client.given)):
        return
    shown = class_of(client.given)
    valid = f"a client of redis-py or valkey-py with a connection pool of theirs, {purpose}"
    raise ConfigError(f"`client` must be {valid}, got `{shown}`", "client", shown)


def own_connection(source: Any, *, seconds: float, waits: float | None) -> Any:
    """A connection like those of a pool, or of an asyncio cluster's node, that belongs to neither. Not yet connected.

    Args:
        source: What has the `connection_class` and the `connection_kwargs`.
        seconds: How long it may take to connect.
        waits: How long it waits for each piece of a reply, in seconds.
    """
    kwargs = {name: value for name, value in source.connection_kwargs.items() if not name.startswith(_OF_POOL)}
    kwargs.update(
        socket_timeout=waits,
        # What comes is bytes, and in one form, whatever the client is told to make of it.
        decode_responses=False,
        protocol=2,
        # Nothing but what was asked for may come over it, and it is tried again by us.
        health_check_interval=0,
        retry=None,
        retry_on_timeout=False,
        retry_on_error=[],
    )
    if "path" not in kwargs:
        own = kwargs.get("socket_connect_timeout")
        kwargs["socket_connect_timeout"] = seconds if own is None else min(own, seconds)
    return source.connection_class(**kwargs)


def _says_how(client: Any) -> bool:
    pool = getattr(client, "connection_pool", None)
    return callable(getattr(pool, "connection_class", None)) and isinstance(
        getattr(pool, "connection_kwargs", None), Mapping
    )


#: Settings by which newer versions tie a connection to its pool: to follow a server under maintenance.
_OF_POOL = ("maint_", "maintenance_", "orig_", "oss_cluster_")
