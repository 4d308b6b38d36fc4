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
from switchgear.redis._own import check_source
from switchgear.redis._replies import is_answer, is_broken_connection


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
    source: Any
    """What connections to it are made like, or an object with `command(args, key)`: foreign code."""


@dataclass(frozen=True, slots=True)
class Ask:
    """A command that names no key, for one server. The answer: its reply, not decoded."""

    master: Master
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pause:
    """Seconds to wait. The answer: nothing."""

    seconds: float


class LostError(StoreError):
    """The connection was lost. What is there next may be another server."""


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
    before = yield from _look_through(listing, names, in_cluster=in_cluster, seconds=seconds)
    if before is not None:
        _, after = yield from _look(in_cluster=in_cluster, seconds=seconds)
        if after is None or not after.stood_still_since(before):
            yield from _look_through(listing, names, in_cluster=in_cluster, seconds=seconds)
    return sorted(names)


def check_listing(client: Client) -> None:
    """Checks that a client can name its masters, and that they can be asked.

    Raises:
        ConfigError: It cannot, or they cannot.
    """
    if client.kind is not Kind.COMMANDS:
        check_source(client, "to list circuits")
    elif not callable(getattr(client.given, "masters", None)):
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
        raise type(error)(f"{master.name}: {error}") from error


def is_usable(error: StoreError) -> bool:
    """Whether the connection that it came over is in order."""
    return error.__cause__ is not None and is_answer(error.__cause__)


def is_lost(error: StoreError) -> bool:
    """Whether the connection was lost, or not made."""
    cause = error.__cause__
    return cause is not None and is_broken_connection(cause) and type(cause).__name__ != "TimeoutError"


def masters_of(given: object) -> list[Master]:
    """What an object with `command(args, key)` says its masters are."""
    if not isinstance(given, Iterable):
        raise StoreError("`masters()` gives no list")
    return [Master(None, master) for master in given]


def _look_through(
    listing: Listing, names: set[str], *, in_cluster: bool, seconds: float
) -> Generator[Question, Any, Survey | None]:
    """Adds the names of the circuits at all masters, and says where the slots were when that began.

    A cursor of SCAN is one server's own: another one that has taken over would go on with it, and leave circuits out
    without a word. So a connection that is lost means to begin again.
    """
    trouble: LostError | None = None
    for _ in range(_ATTEMPTS):
        masters, survey = yield from _look(in_cluster=in_cluster, seconds=seconds)
        try:
            yield from _scan(masters, listing, names)
        except LostError as error:
            trouble = error
        else:
            return survey
    raise StoreError(str(trouble)) from trouble


_ATTEMPTS = 3


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
            raise StoreError(str(trouble)) from trouble
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
