"""What kind of function something is."""

from __future__ import annotations

import asyncio
import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType
from typing import Any, Literal, TypeAlias

Kind: TypeAlias = Literal["function", "coroutine function", "generator function", "async generator function"]


def kind_of(fn: Callable[..., Any]) -> Kind:
    """The kind of a callable: of the function within a partial or a bound method, of the `__call__` of an object."""
    if is_coroutine_function(fn):
        return "coroutine function"
    fn = _function_of(fn)
    if inspect.isasyncgenfunction(fn):
        return "async generator function"
    return "generator function" if inspect.isgeneratorfunction(fn) else "function"


def is_coroutine_function(fn: object) -> bool:
    """Whether calling it gives a coroutine, as far as can be known without calling."""
    function = _function_of(fn)
    if type(function) is FunctionType:
        if function.__code__.co_flags & _GIVES_COROUTINE:
            return True
        # Whoever marks a function as one does it in an attribute; most have none.
        if function is fn and not function.__dict__:
            return False
    try:
        # Also an object that is only marked as one, as `AsyncMock` is.
        return _is_marked(fn) or _is_marked(function)
    except Exception:  # noqa: BLE001 - a proxy may refuse to be asked, in any way
        return False


def gives_coroutine(fn: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine for sure. What is only marked as a coroutine function may give anything."""
    function = _function_of(fn)
    return type(function) is FunctionType and bool(function.__code__.co_flags & _GIVES_COROUTINE)


# Also a generator function that `types.coroutine` has made a coroutine function.
_GIVES_COROUTINE = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE


# What `inspect` knows of marks it learnt from asyncio, which is to lose its own function.
_is_marked: Callable[[Any], bool] = (
    inspect.iscoroutinefunction if sys.version_info >= (3, 12) else asyncio.iscoroutinefunction
)


def _function_of(fn: Any) -> Any:
    while type(fn) is not FunctionType:
        if isinstance(fn, functools.partial):
            fn = fn.func
        elif inspect.ismethod(fn):
            fn = fn.__func__
        else:
            # Of a class the call makes an object, whatever the `__call__` of that is.
            call = None if isinstance(fn, type) else getattr(type(fn), "__call__", None)  # noqa: B004 - its function
            if type(call) is not FunctionType:
                return fn
            fn = call
    return fn
