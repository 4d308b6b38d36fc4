"""What `guard` gives when it is called with options: decorators that keep signature and kind."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any, ParamSpec, Protocol, TypeVar, overload

P = ParamSpec("P")
T = TypeVar("T")
F = TypeVar("F")
G = TypeVar("G")
Fn = TypeVar("Fn", bound=Callable[..., Any])
ClassMethod = TypeVar("ClassMethod", bound="classmethod[Any, ..., Any]")


class Guarding(Protocol):
    """A decorator that changes nothing of a function's type."""

    @overload
    def __call__(self, fn: Fn, /) -> Fn: ...
    @overload
    def __call__(self, fn: ClassMethod, /) -> ClassMethod: ...


class Recovering(Protocol[G]):  # type: ignore[misc]  # by turns it must be covariant, and must not
    """A decorator whose functions may also give what a fallback gives, or gives when it is awaited."""

    @overload
    def __call__(self, fn: Callable[P, AsyncGenerator[T, Any]], /) -> Callable[P, AsyncGenerator[T, Any]]: ...
    @overload
    def __call__(self, fn: Callable[P, Generator[T, Any, Any]], /) -> Callable[P, Generator[T, Any, Any]]: ...
    @overload
    def __call__(
        self: Recovering[Coroutine[Any, Any, F]], fn: Callable[P, Coroutine[Any, Any, T]], /
    ) -> Callable[P, Coroutine[Any, Any, T | F]]: ...
    @overload
    def __call__(self, fn: Callable[P, Coroutine[Any, Any, T]], /) -> Callable[P, Coroutine[Any, Any, T | G]]: ...
    @overload
    def __call__(self, fn: Callable[P, T], /) -> Callable[P, T | G]: ...
