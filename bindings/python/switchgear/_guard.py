"""Decorated functions: they keep their kind and their signature."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import asynccontextmanager, contextmanager
from types import FunctionType
from typing import Any, NoReturn

from switchgear._async_generator import AsyncRun, Instead, async_generator_function
from switchgear._call import AsyncWays, Ways, admitted, check_fn, enter, enter_async
from switchgear._config import out_of_range
from switchgear._deadline import check_task
from switchgear._fallback import CheckedCall, check_takes, recover_any, recover_async
from switchgear._generator import Life, guarded_steps, iterated
from switchgear._kind import Kind, kind_of


def guard_with(fn: Callable[..., Any], call: CheckedCall, ways: Ways | AsyncWays) -> Callable[..., Any]:
    """A function like the one given, each call of which goes through a breaker. `guarded_kind` has checked it.

    Raises:
        TypeError: The fallback can take the error and the function's arguments in no case.
    """
    if call.fallback is not None:
        check_takes(call.fallback, fn)
    kind = kind_of(fn)
    if kind == "coroutine function":
        return like(fn, _coroutine_function(fn, call, ways))
    if kind == "async generator function":
        return like(fn, _async_generator_function(fn, call, ways))
    if not isinstance(ways, Ways):
        raise TypeError(f"a {kind} has to wait for nothing, but its circuit has to be asked")
    return like(fn, (_generator_function if kind == "generator function" else _function)(fn, call, ways))


def guarded_kind(fn: object, timeout_ms: object = None) -> Kind:
    """The kind of what is to be guarded.

    Args:
        fn: What was given to the decorator.
        timeout_ms: What was given to it for this.

    Raises:
        TypeError: It is no function: a class, or nothing that can be called.
        ConfigError: A timeout for what cannot be interrupted.
    """
    if isinstance(fn, type):
        _refuse(f"a class ({fn.__name__}) cannot be guarded: guard a function that makes its objects")
    check_fn(fn)
    if getattr(fn, "__code__", None) in _MAKERS_OF_BLOCKS:
        _refuse("above `contextmanager` only the making of the block would be guarded: put the breaker below it")
    kind = kind_of(fn)  # type: ignore[arg-type]  # checked one line above
    if timeout_ms is not None and kind in {"function", "generator function"}:
        raise out_of_range("timeout_ms", f"left out for a {kind}, which cannot be interrupted", timeout_ms)
    return kind


def like(fn: Callable[..., Any], guarded: Callable[..., Any]) -> Callable[..., Any]:
    """Gives a guarded function the name, documentation and signature of the original."""
    # The attributes of a function go with it (pytest and web frameworks keep marks there), those of an object are its
    # own.
    updated = functools.WRAPPER_UPDATES if isinstance(fn, FunctionType) else ()
    assigned = functools.WRAPPER_ASSIGNMENTS if isinstance(fn, FunctionType) else _names_of(fn)
    return functools.update_wrapper(guarded, fn, assigned=assigned, updated=updated)


def _names_of(fn: Callable[..., Any]) -> list[str]:
    """What an object says of itself and a function may take over: proxies answer whatever they are asked."""
    said: list[str] = []
    for name in functools.WRAPPER_ASSIGNMENTS:
        try:
            fits = isinstance(getattr(fn, name, None), dict if name == "__annotations__" else str)
        except Exception:  # noqa: BLE001 - it may refuse the question in any way
            fits = False
        if fits:
            said.append(name)
    return said


# What `contextlib`'s decorators give: each of them is one function, around many.
_DECORATORS: tuple[Callable[[Any], Any], ...] = (contextmanager, asynccontextmanager)
_MAKERS_OF_BLOCKS = frozenset(decorate(id).__code__ for decorate in _DECORATORS)


def _function(fn: Callable[..., Any], call: CheckedCall, ways: Ways) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        return enter(fn, args, kwargs, call, ways)

    return guarded


def _coroutine_function(fn: Callable[..., Any], call: CheckedCall, ways: Ways | AsyncWays) -> Callable[..., Any]:
    async def guarded(*args: Any, **kwargs: Any) -> Any:
        return await enter_async(fn, args, kwargs, call, ways)

    return guarded


def _generator_function(fn: Callable[..., Any], call: CheckedCall, ways: Ways) -> Callable[..., Any]:
    def guarded(*args: Any, **kwargs: Any) -> Any:
        admission = ways.admit()
        if isinstance(admission, Exception):
            if call.fallback is None:
                try:
                    raise admission
                finally:
                    del admission
            return (yield from iterated(recover_any(call.fallback, admission, args, kwargs)))
        life = Life(call, ways.rules, admission, args, kwargs)
        return (yield from guarded_steps(lambda: fn(*args, **kwargs), life))

    return guarded


def _async_generator_function(fn: Callable[..., Any], call: CheckedCall, ways: Ways | AsyncWays) -> Callable[..., Any]:
    async def begin(args: tuple[Any, ...], kwargs: dict[str, Any]) -> AsyncRun | Instead:
        check_task(call.timeout_ms)
        admission = await admitted(ways)
        if isinstance(admission, Exception):
            if call.fallback is None:
                try:
                    raise admission
                finally:
                    del admission
            return Instead(await recover_async(call.fallback, admission, args, kwargs))
        return AsyncRun(Life(call, ways.rules, admission, args, kwargs), lambda: fn(*args, **kwargs))

    return async_generator_function(begin)


def _refuse(message: str) -> NoReturn:
    raise TypeError(message)
