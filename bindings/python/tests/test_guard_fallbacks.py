"""A fallback must be able to take the error and the arguments of the function that it is for."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import MagicMock

import pytest
from switchgear import CircuitBreaker

BREAKER = CircuitBreaker("c")


def plain(a: int) -> None: ...
def two(a: int, b: int = 0) -> None: ...
def none() -> None: ...
def named(*, key: int) -> None: ...
def anything(*args: int, **kwargs: int) -> None: ...
def first(a: int, /) -> None: ...
async def awaited(a: int) -> None: ...
def steps(a: int) -> Iterator[int]:
    yield a


@functools.wraps(two)
def wrapped(*args: int) -> None:
    two(1, *args)


FITS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (plain, lambda error, a: None),
    (plain, lambda error, other: None),
    (plain, lambda error, *args: None),
    (plain, lambda *args: None),
    (plain, lambda error, *, a: None),
    (plain, lambda error, **named: None),
    (plain, lambda error, a, more=1: None),
    (plain, functools.partial(lambda x, error, a: None, 1)),
    (plain, MagicMock()),
    (two, lambda error, a: None),
    (two, lambda error, a, b: None),
    (two, lambda error, *, a, b: None),
    (none, lambda error: None),
    (none, str),
    (named, lambda error, key: None),
    (anything, lambda error: None),
    (anything, lambda error, a, b, *, c: None),
    (wrapped, lambda error: None),
    (first, lambda error, x: None),
    (awaited, lambda error, a: None),
    (steps, lambda error, a: []),
    (MagicMock(), lambda error: None),
    (functools.partial(two, 1), lambda error: None),
]
MISFITS: list[tuple[Callable[..., Any], Callable[..., Any]]] = [
    (plain, lambda error: None),
    (plain, lambda: None),
    (plain, lambda error, *, b: None),
    (plain, lambda error, a, b: None),
    (two, lambda error: None),
    (two, lambda error, a, b, c: None),
    (none, lambda: None),
    (none, lambda error, a: None),
    (named, lambda error: None),
    (named, lambda error, other: None),
    (anything, lambda: None),
    (first, lambda error: None),
    (first, lambda error, *, a: None),
    (awaited, lambda error: None),
    (steps, lambda error: []),
]


@pytest.mark.parametrize(("fn", "fallback"), FITS, ids=map(str, range(len(FITS))))
def test_a_fallback_that_may_take_what_it_gets_is_taken(fn: Callable[..., Any], fallback: Callable[..., Any]) -> None:
    assert callable(CircuitBreaker("c").guard(fallback=fallback)(fn))


@pytest.mark.parametrize(("fn", "fallback"), MISFITS, ids=map(str, range(len(MISFITS))))
def test_a_fallback_that_can_never_take_what_it_gets_is_found_out_at_decoration(
    fn: Callable[..., Any], fallback: Callable[..., Any]
) -> None:
    with pytest.raises(TypeError, match=r"must take the error, then the function's own arguments: \(error"):
        CircuitBreaker("c").guard(fallback=fallback)(fn)


def test_the_arguments_of_a_method_begin_with_its_object() -> None:
    class Search:
        @BREAKER.guard(fallback=lambda error, self, term: term)
        def find(self, term: str) -> str:
            return term.upper()

        @classmethod
        @BREAKER.guard(fallback=lambda error, cls, term: term)
        def look(cls, term: str) -> str:
            return term.upper()

    assert Search().find("a") + Search.look("b") == "AB"
    assert BREAKER.guard(fallback=lambda error, term: term)(Search().find)("c") == "C"
    with pytest.raises(TypeError, match=r"the fallback of `find` .*\(error, self, term\)"):
        BREAKER.guard(fallback=lambda error, term: term)(Search.__dict__["find"].__wrapped__)
