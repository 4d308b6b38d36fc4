"""Results that have to be awaited, where nobody will."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Coroutine, Generator
from types import AsyncGeneratorType, CoroutineType, GeneratorType
from typing import Any, TypeGuard

PLAIN = frozenset({type(None), bool, int, float, str, bytes, list, dict, tuple, set})
"""Types whose objects need no second look; the others are looked at by `must_be_awaited` and `is_generator`."""


def must_be_awaited(value: object) -> bool:
    """Whether a result is no result yet."""
    # The type, as `await` does. Without the whole of `inspect.isawaitable`, for this is asked at each call.
    kind = type(value)
    return kind is CoroutineType or hasattr(kind, "__await__") or (kind is GeneratorType and inspect.isawaitable(value))


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
