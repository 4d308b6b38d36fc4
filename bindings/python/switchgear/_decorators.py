"""What `guard` gives when it is called with options: decorators that keep signature and kind."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, ParamSpec, Protocol, TypeVar, overload

P = ParamSpec("P")
T = TypeVar("T")
F_co = TypeVar("F_co", covariant=True)
Fn = TypeVar("Fn", bound=Callable[..., Any])
ClassMethod = TypeVar("ClassMethod", bound="classmethod[Any, ..., Any]")


class Guarding(Protocol):
    """A decorator that changes nothing of a function's type."""

    @overload
    def __call__(self, fn: Fn, /) -> Fn: ...
    @overload
    def __call__(self, fn: ClassMethod, /) -> ClassMethod: ...


class Recovering(Protocol[F_co]):
    """A decorator whose functions may also give what a fallback gives."""

    @overload
    def __call__(self, fn: Callable[P, AsyncGenerator[T, Any]], /) -> Callable[P, AsyncGenerator[T, Any]]: ...
    @overload
    def __call__(self, fn: Callable[P, Generator[T, Any, Any]], /) -> Callable[P, Generator[T, Any, Any]]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, T]], /) -> Callable[P, Coroutine[Any, Any, T | F_co]]: ...
    @overload
    def __call__(self, fn: Callable[P, T], /) -> Callable[P, T | F_co]: ...


class RecoveringAsync(Protocol[F_co]):
    """The same with a fallback that has to be awaited: for coroutine functions alone."""

    @overload
    def __call__(self, fn: Callable[P, AsyncGenerator[T, Any]], /) -> Callable[P, AsyncGenerator[T, Any]]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, T]], /) -> Callable[P, Coroutine[Any, Any, T | F_co]]: ...
