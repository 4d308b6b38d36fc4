"""Calls through a shared breaker of either side, and what was seen of them."""

from __future__ import annotations

from typing import Any

import pytest
from switchgear import CircuitOpenError


class BoomError(Exception):
    """What the dependency raises."""


def ok() -> str:
    return "ok"


def fail() -> str:
    raise BoomError


def failed(side: Any, breaker: Any) -> None:
    with pytest.raises(BoomError):
        side.run(breaker, fail)


def refused(side: Any, breaker: Any) -> CircuitOpenError:
    with pytest.raises(CircuitOpenError) as caught:
        side.run(breaker, ok)
    return caught.value


def names_of(client: Any) -> list[str]:
    """The commands that were sent through a tapped client since it was asked last."""
    sent = [args[0] for args in client.sent]
    client.sent.clear()
    return sent


def questions(client: Any) -> list[str]:
    """The same, without the texts of scripts that the server had not known."""
    return [sent for sent in names_of(client) if sent != "EVAL"]


def told_by(store: Any) -> list[tuple[str, str | None]]:
    """What a store says of its health from now on: the event, and the circuit that it is about."""
    told: list[tuple[str, str | None]] = []
    for event in ("degraded", "restored"):
        store.on(event, lambda said, event=event: told.append((event, said.circuit)))
    return told


def port_of(side: Any) -> int:
    port: int = side.client.connection_pool.connection_kwargs["port"]
    return port
