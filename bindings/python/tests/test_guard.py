"""What may be decorated, and what stays as it was."""

from __future__ import annotations

import asyncio
import functools
import inspect
import pickle
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NoReturn
from unittest.mock import AsyncMock, MagicMock

import pytest
from switchgear import CallTimeoutError, CircuitBreaker, CircuitOpenError, ConfigError


class BoomError(Exception):
    """A failure of the dependency."""


MODULE_BREAKER = CircuitBreaker("module")


@MODULE_BREAKER
def charge(order: int, *, note: str = "none") -> str:
    """Charges an order."""
    return f"{order}: {note}"


charge.mark = "kept"  # type: ignore[attr-defined]  # as pytest and web frameworks do


def failures_of(breaker: CircuitBreaker) -> int:
    return breaker.get_snapshot().failures_in_window


def test_a_decorated_function_looks_like_the_original() -> None:
    assert charge.__name__ == "charge"
    assert charge.__qualname__ == "charge"
    assert charge.__module__ == __name__
    assert charge.__doc__ == "Charges an order."
    assert str(inspect.signature(charge)) == "(order: 'int', *, note: 'str' = 'none') -> 'str'"
    assert charge(1, note="x") == "1: x"
    assert inspect.unwrap(charge) is not charge


def test_a_decorated_function_of_a_module_is_pickled_by_its_name() -> None:
    assert pickle.loads(pickle.dumps(charge)) is charge


def test_attributes_of_a_function_go_with_it() -> None:
    breaker = CircuitBreaker("c")

    def marked() -> None:
        pass

    marked.mark = "kept"  # type: ignore[attr-defined]  # as pytest and web frameworks do
    assert breaker(marked).mark == "kept"  # type: ignore[attr-defined]  # as above


def plain() -> int:
    return 1


async def coroutine() -> int:
    return 1


def generator() -> Generator[int, None, None]:
    yield 1


async def async_generator() -> AsyncGenerator[int, None]:
    yield 1


KINDS: dict[str, Callable[[Any], bool]] = {
    "iscoroutinefunction": inspect.iscoroutinefunction,
    "isgeneratorfunction": inspect.isgeneratorfunction,
    "isasyncgenfunction": inspect.isasyncgenfunction,
}


@pytest.mark.parametrize("fn", [plain, coroutine, generator, async_generator])
@pytest.mark.parametrize("options", [{}, {"fallback": lambda error: 1}, {"fallback_on": "failure", "fallback": len}])
@pytest.mark.parametrize("policy", [{}, {"slow_call_ms": 60_000}, {"timeout_ms": 60_000}])
def test_kinds_are_kept(fn: Callable[[], Any], options: dict[str, Any], policy: dict[str, Any]) -> None:
    breaker = CircuitBreaker("c", **policy)

    class Callable_:  # noqa: N801 - an object like a function
        def plain(self) -> Any:
            return fn()

    for guarded in (breaker.guard(**options)(fn), breaker.guard(**options)(functools.partial(fn))):
        for name, is_of in KINDS.items():
            assert is_of(guarded) == is_of(fn), name
    if not options:
        for guarded in (breaker(fn), breaker.guard(fn)):
            for name, is_of in KINDS.items():
                assert is_of(guarded) == is_of(fn), name


class Service:
    """Everything that a class may have."""

    breaker = CircuitBreaker("service", failure_threshold=1000)

    def __init__(self, factor: int) -> None:
        self.factor = factor

    @breaker
    def method(self, n: int) -> int:
        return n * self.factor

    @breaker
    async def async_method(self, n: int) -> int:
        return n * self.factor

    @breaker
    def steps(self, n: int) -> Generator[int, None, None]:
        yield n * self.factor

    @breaker
    @classmethod
    def class_over(cls, n: int) -> str:
        return f"{cls.__name__}{n}"

    @classmethod
    @breaker
    def class_under(cls, n: int) -> str:
        return f"{cls.__name__}{n}"

    @breaker.guard(fallback=lambda refusal, n: 0)
    @staticmethod
    def static_over(n: int) -> int:
        return n

    @staticmethod
    @breaker.guard()
    def static_under(n: int) -> int:
        return n

    @property
    @breaker
    def double(self) -> int:
        return self.factor * 2

    def __call__(self, n: int) -> int:
        return n * self.factor


class Derived(Service):
    """Inherits them."""


def test_methods() -> None:
    service = Derived(3)
    assert service.method(2) == 6
    assert Derived.method(service, 2) == 6
    assert asyncio.run(service.async_method(2)) == 6
    assert list(service.steps(2)) == [6]
    assert service.class_over(1) == Derived.class_over(1) == "Derived1"
    assert Derived.class_under(1) == "Derived1"
    assert service.static_over(5) == Service.static_over(5) == 5
    assert Service.static_under(5) == 5
    assert service.double == 6
    assert str(inspect.signature(service.method)) == "(n: 'int') -> 'int'"


def test_bound_methods_callable_objects_and_partials() -> None:
    breaker = CircuitBreaker("c")
    service = Service(3)
    assert breaker(service.method)(2) == 6
    assert breaker(service)(2) == 6
    assert breaker(functools.partial(service, 2))() == 6
    assert breaker(functools.partial(functools.partial(service.method), n=2))() == 6
    assert breaker(len)("four") == 4
    assert breaker(MagicMock(return_value=7))() == 7
    assert str(inspect.signature(breaker(service))) == "(n: 'int') -> 'int'"
    assert not hasattr(breaker(service), "factor")


def test_objects_of_the_other_kinds() -> None:
    breaker = CircuitBreaker("c")

    class Async:
        async def __call__(self) -> int:
            return 1

    class Steps:
        def __call__(self) -> Generator[int, None, None]:
            yield 1

    class AsyncSteps:
        async def __call__(self) -> AsyncGenerator[int, None]:
            yield 1

    assert inspect.iscoroutinefunction(breaker(Async()))
    assert inspect.iscoroutinefunction(breaker(functools.partial(Async())))
    assert inspect.isgeneratorfunction(breaker(Steps()))
    assert inspect.isasyncgenfunction(breaker(AsyncSteps()))
    assert inspect.iscoroutinefunction(breaker(AsyncMock()))
    assert asyncio.run(breaker(Async())()) == 1
    assert asyncio.run(breaker(AsyncMock(return_value=1))()) == 1
    assert list(breaker(Steps())()) == [1]


@pytest.mark.parametrize("wrong", [Service, 5, "name", property(lambda self: 1), functools.cached_property(len)])
def test_what_cannot_be_guarded(wrong: Any) -> None:
    breaker = CircuitBreaker("c")
    for decorate in (breaker, breaker.guard(), breaker.guard(fallback=len)):
        with pytest.raises(TypeError):
            decorate(wrong)


def test_a_decorator_without_its_function() -> None:
    with pytest.raises(TypeError):
        CircuitBreaker("c")()  # type: ignore[call-overload]  # `@breaker`, not `@breaker()`


def test_a_plain_function_that_gives_an_awaitable_is_refused() -> None:
    breaker = CircuitBreaker("c")
    gives_awaitable = MagicMock(side_effect=coroutine)
    with pytest.raises(TypeError, match="execute_async"):
        breaker(gives_awaitable)()
    assert failures_of(breaker) == 0
    with pytest.raises(TypeError, match="execute_async"):
        breaker.guard(fallback=lambda refusal: None)(gives_awaitable)()


def test_outcomes_are_counted() -> None:
    breaker = CircuitBreaker("c", failure_threshold=4)

    @breaker
    def fails() -> NoReturn:
        raise BoomError

    @breaker
    async def fails_async() -> NoReturn:
        raise BoomError

    for _ in range(2):
        with pytest.raises(BoomError):
            fails()
        with pytest.raises(BoomError):
            asyncio.run(fails_async())
    with pytest.raises(CircuitOpenError):
        fails()
    with pytest.raises(CircuitOpenError):
        asyncio.run(fails_async())


def test_wrong_arguments_are_a_failure_like_any_other() -> None:
    breaker = CircuitBreaker("c")
    guarded = breaker(charge)
    with pytest.raises(TypeError):
        guarded()  # type: ignore[call-arg]  # that is what is tested
    assert failures_of(breaker) == 1


def test_the_fallback_gets_the_error_then_the_arguments() -> None:
    breaker = CircuitBreaker("c")
    breaker.force_open()
    got: list[Any] = []

    def fallback(*args: Any, **kwargs: Any) -> str:
        got.append((args, kwargs))
        return "instead"

    class Shop:
        @breaker.guard(fallback=fallback)
        def buy(self, item: str, *, count: int) -> str:
            return item

        @breaker.guard(fallback=fallback)
        async def buy_async(self, item: str, *, count: int) -> str:
            return item

    shop = Shop()
    assert shop.buy("pen", count=2) == "instead"
    assert asyncio.run(shop.buy_async("pen", count=2)) == "instead"
    for args, kwargs in got:
        assert isinstance(args[0], CircuitOpenError)
        assert args[1:] == (shop, "pen")
        assert kwargs == {"count": 2}
    assert len(got) == 2


def test_a_fallback_for_failures() -> None:
    breaker = CircuitBreaker("c")

    @breaker.guard(fallback=lambda error, n: -n, fallback_on="failure")
    def fails(n: int) -> int:
        raise BoomError

    @breaker.guard(fallback=lambda error, n: -n, fallback_on="failure", timeout_ms=1)
    async def hangs(n: int) -> int:
        await asyncio.sleep(60)
        return n

    assert fails(1) == -1
    assert asyncio.run(hangs(2)) == -2
    assert failures_of(breaker) == 2


def test_a_timeout_of_ones_own() -> None:
    breaker = CircuitBreaker("c", timeout_ms=60_000)

    @breaker.guard(timeout_ms=1)
    async def hangs() -> None:
        await asyncio.sleep(60)

    with pytest.raises(CallTimeoutError) as caught:
        asyncio.run(hangs())
    assert caught.value.timeout_ms == 1


@pytest.mark.parametrize("fn", [plain, generator])
def test_what_cannot_be_interrupted_has_no_timeout(fn: Any) -> None:
    breaker = CircuitBreaker("c")
    with pytest.raises(ConfigError) as caught:
        breaker.guard(timeout_ms=100)(fn)
    assert caught.value.field == "timeout_ms"
    # That of the policy is for coroutines alone.
    guarded = CircuitBreaker("c", timeout_ms=1)(fn)
    assert guarded() == 1 or list(guarded()) == [1]


def test_recursion() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1)

    @breaker
    def factorial(n: int) -> int:
        return 1 if n == 0 else n * factorial(n - 1)

    assert factorial(20) == 2432902008176640000


def test_two_breakers_on_one_function() -> None:
    outer, inner = CircuitBreaker("outer"), CircuitBreaker("inner")

    @outer
    @inner
    def fails() -> NoReturn:
        raise BoomError

    with pytest.raises(BoomError):
        fails()
    assert (failures_of(outer), failures_of(inner)) == (1, 1)


def test_the_arguments_of_a_function_may_have_any_name() -> None:
    breaker = CircuitBreaker("c")

    @breaker
    def odd(self: int, fn: int, args: int, kwargs: int, epoch: int) -> int:
        return self + fn + args + kwargs + epoch

    assert odd(self=1, fn=2, args=3, kwargs=4, epoch=5) == 15
    breaker.on("success", lambda event: None)
    assert odd(self=1, fn=2, args=3, kwargs=4, epoch=5) == 15


def test_an_object_that_answers_whatever_it_is_asked() -> None:
    class Proxy:
        def __getattr__(self, name: str) -> Proxy:
            return Proxy()

        def __call__(self) -> int:
            return 42

    class Shy:
        @property
        def __name__(self) -> str:
            raise RuntimeError("I do not say")

        def __call__(self) -> int:
            return 42

    assert CircuitBreaker("c")(Proxy())() == 42
    assert CircuitBreaker("c")(Shy())() == 42


@pytest.mark.parametrize("decorate", [contextmanager, asynccontextmanager])
def test_it_refuses_to_guard_the_making_of_a_block_alone(decorate: Any) -> None:
    def block() -> Any:
        yield 1

    async def async_block() -> Any:
        yield 1

    breaker = CircuitBreaker("c")
    with pytest.raises(TypeError, match="put the breaker below it"):
        breaker(decorate(block if decorate is contextmanager else async_block))


def test_below_contextmanager_it_guards_the_block() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1)

    @contextmanager
    @breaker
    def block() -> Iterator[int]:
        yield 1

    with pytest.raises(LookupError), block():
        raise LookupError
    assert breaker.get_state() == "open"
