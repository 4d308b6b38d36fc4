"""Results that have to be awaited, where nobody will."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, TypeGuard

PLAIN = frozenset({type(None), bool, int, float, str, bytes, list, dict, tuple, set})
"""Types whose objects need no second look; the others are looked at by `must_be_awaited` and `is_generator`.

Whether a type is among them cannot be asked of one that has no hash; `is_plain` can.
"""


def is_plain(value: object) -> bool:
    """Whether a result needs no second look."""
    try:
        return type(value) in PLAIN
    except TypeError:
        # Its metaclass compares classes, and so has no hash.
        return False


def must_be_awaited(value: object) -> bool:
    """Whether a result is no result yet."""
    # The type, as `await` does. Without the whole of `inspect.isawaitable`, for this is asked at each call.
    kind = type(value)
    if kind is CoroutineType:
        return True
    if kind is GeneratorType:
        return inspect.isawaitable(value)
    try:
        may_be = hasattr(kind, "__await__")
    except Exception:  # noqa: BLE001 - a metaclass is foreign code
        may_be = True
    return may_be and _defines_await(kind)


def _defines_await(kind: type) -> bool:
    """Whether a class has the method, whatever its metaclass answers."""
    for base in _MRO(kind):
        members = _MEMBERS(base)
        if "__await__" in members:
            return members["__await__"] is not None
    return False


_MRO: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
_MEMBERS: Callable[[type], Mapping[str, object]] = type.__dict__["__dict__"].__get__


def is_generator(value: object) -> TypeGuard[Generator[Any, Any, Any]]:
    """Whether a result is a generator that is yet to run."""
    return type(value) is GeneratorType


def is_async_generator(value: object) -> TypeGuard[AsyncGenerator[Any, Any]]:
    """Whether a result is an async generator that is yet to run."""
    return type(value) is AsyncGeneratorType


def discard(value: object) -> None:
    """Gives up a coroutine that was never begun: not a line of it runs, and Python does not complain that none did.

    A task or a future is left alone: it is somebody's, and runs without being awaited.
    """
    if isinstance(value, (Coroutine, GeneratorType)):
        value.close()
