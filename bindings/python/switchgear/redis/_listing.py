"""Which circuits there are in a store, without the I/O: whom to ask what next, whatever they answer.

A SCAN says nothing of what it has missed. So whether all masters were looked through, and whether circuits changed
their place meanwhile, is asked of the masters themselves.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

from switchgear._error import ConfigError, StoreError
from switchgear._native import Listing, Survey
from switchgear._types import Snapshot
from switchgear.redis._clients import Client, Kind, class_of


@dataclass(frozen=True, slots=True)
class ListedCircuit:
    """A circuit that the store knows."""

    name: str
    """Its name."""
    snapshot: Snapshot
    """What it looked like when it was read."""


@dataclass(frozen=True, slots=True)
class Masters:
    """Whom there is to ask. The answer: a list of `Master`."""

    again: bool
    """Whether the client is to look again which there are."""


@dataclass(frozen=True, slots=True)
class Master:
    """One server that takes writes."""

    name: str | None
    """What it is called, where there are several."""
    client: Any
    """What it is asked through: foreign code."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A command that names no key, for one server. The answer: its reply, not decoded."""

    master: Master
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds to wait. The answer: nothing."""

    seconds: float


Question: TypeAlias = "Masters | Ask | Pause"

Questions: TypeAlias = "Generator[Question, Any, list[str]]"
"""Questions for whoever carries them, who throws a `StoreError` in where there is no answer; in the end the names."""


def find_names(prefix: str, *, in_cluster: bool, seconds: float) -> Questions:
    """Finds the names of all circuits under a prefix, sorted.

    Where something moves meanwhile, a second look finds it at its end: a key moves once at most.

    Args:
        prefix: The store's.
        in_cluster: Whether the servers share the circuits among them.
        seconds: How long to go on where the client does not know all masters.
    """
    listing = Listing(prefix)
    names: set[str] = set()
    masters, before = yield from _look(in_cluster=in_cluster, seconds=seconds)
    yield from _scan(masters, listing, names)
    if before is not None:
        masters, after = yield from _look(in_cluster=in_cluster, seconds=seconds)
        if after is None or not after.stood_still_since(before):
            yield from _scan(masters, listing, names)
    return sorted(names)


def check_listing(client: Client) -> None:
    """Checks that a client can name its masters.

    Raises:
        ConfigError: It cannot.
    """
    if client.kind is Kind.COMMANDS and not callable(getattr(client.given, "masters", None)):
        valid = "have `masters()`, which gives an object with `command(args, key)` for each server that takes writes"
        shown = class_of(client.given)
        raise ConfigError(f"`client` must {valid}, to list circuits, got `{shown}`", "client", shown)


@contextmanager
def named(master: Master) -> Iterator[None]:
    """What goes wrong within says where."""
    try:
        yield
    except StoreError as error:
        if master.name is None:
            raise
        raise StoreError(f"{master.name}: {error}") from error


def masters_of(given: object) -> list[Master]:
    """What an object with `command(args, key)` says its masters are."""
    if not isinstance(given, Iterable):
        raise StoreError("`masters()` gives no list")
    return [Master(None, master) for master in given]


def _look(*, in_cluster: bool, seconds: float) -> Generator[Question, Any, tuple[list[Master], Survey | None]]:
    """All masters that there are. A client may not have heard of each: then it is to look again."""
    until = time.monotonic() + seconds
    trouble: StoreError | None = None
    again = False
    while True:
        try:
            masters: list[Master] = yield Masters(again)
        except StoreError as error:
            # What made it look again says more.
            trouble = trouble or error
        else:
            if not masters:
                raise StoreError("the client knows no server that takes writes")
            if not in_cluster:
                return masters, None
            try:
                survey = yield from _survey(masters)
            except StoreError as error:
                trouble = error
            else:
                if survey.missing is None:
                    return masters, survey
                trouble = StoreError(f"the cluster has a master at {survey.missing} that the client does not know")
        if not in_cluster or (again and time.monotonic() >= until):
            raise trouble
        if again:
            yield Pause(_PAUSE_SECONDS)
        again = True


_PAUSE_SECONDS = 0.01


def _survey(masters: list[Master]) -> Generator[Question, Any, Survey]:
    replies: list[str] = []
    for master in masters:
        reply = yield Ask(master, ("CLUSTER", "NODES"))
        replies.append(reply.decode("utf-8", "replace") if isinstance(reply, bytes) else str(reply))
    survey = Survey.read(replies)
    if survey is None:
        raise StoreError("the reply is none that CLUSTER NODES gives")
    return survey


def _scan(masters: list[Master], listing: Listing, names: set[str]) -> Generator[Question, Any, None]:
    """Adds the names of the circuits at these masters."""
    for master in masters:
        cursor = "0"
        while True:
            reply = yield Ask(master, ("SCAN", cursor, "MATCH", listing.pattern, "COUNT", _PAGE))
            cursor, keys = _page(reply)
            names.update(name for key in keys if (name := listing.name_of(key)) is not None)
            if cursor == "0":
                break


#: How many keys a server looks at for one SCAN: a fraction of a millisecond, for others wait meanwhile.
_PAGE = "1000"


def _page(reply: Any) -> tuple[str, list[bytes]]:
    """What SCAN answers, whatever the client makes of it."""
    try:
        cursor, keys = reply
        # Not as `int` reads it, which takes more than a server says.
        text = cursor.decode() if isinstance(cursor, bytes) else str(cursor)
        if not (text.isascii() and text.isdigit() and isinstance(keys, (list, tuple))):
            raise ValueError(text)
        return text, [_bytes_of(key) for key in keys]
    except (TypeError, ValueError) as error:
        raise StoreError("the reply is none that SCAN gives") from error


def _bytes_of(key: object) -> bytes:
    if isinstance(key, bytes):
        return key
    try:
        return str(key).encode()
    except UnicodeEncodeError:
        # One that is no UTF-8 is no circuit's.
        return b""
