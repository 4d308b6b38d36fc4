"""The two sides of the package, told in one way: sync code, and asyncio on an event loop of the test's own."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import redis
import redis.asyncio
import switchgear.redis
import switchgear.redis.asyncio
from support.stores import AsyncTapped, Tapped

T = TypeVar("T")

#: What a test does with each command of ours: `None` sends it on, anything else is the reply or is raised.
Tap = Callable[[list[str]], object]


class Sync:
    """Sync code."""

    def __init__(self, port: int) -> None:
        self.client: Any = redis.Redis(port=port)

    def tapped(self, tap: Tap | None = None) -> Any:
        """A client that a test looks into."""

        def through(args: list[str], send: Any) -> Any:
            return send(args) if tap is None else _given(tap(args), lambda: send(args))

        return Tapped(self.client, through)

    def store(self, client: Any = None, **options: Any) -> Any:
        return switchgear.redis.RedisStore(self.client if client is None else client, **options)

    def breaker(self, name: str, store: Any, **policy: Any) -> Any:
        return switchgear.redis.DistributedCircuitBreaker(name, store, **policy)

    def run(self, breaker: Any, fn: Callable[[], T]) -> T:
        """Guards a call of a function."""
        answer: T = breaker.execute(fn)
        return answer

    def decorated(self, breaker: Any, fn: Callable[[], T]) -> Callable[[], T]:
        """A function that the breaker is the decorator of."""
        guarded: Callable[[], T] = breaker(fn)
        return guarded

    def do(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Calls a method."""
        return call(*args, **options)

    def at_once(self, *calls: Callable[[], Any]) -> list[Any]:
        """Does several things at one time; what each gives, or raises."""
        given: list[Any] = [None] * len(calls)

        def run(number: int) -> None:
            try:
                given[number] = calls[number]()
            except BaseException as error:
                given[number] = error

        threads = [threading.Thread(target=run, args=(number,)) for number in range(len(calls))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return given

    def until(self, is_so: Callable[[], object]) -> None:
        """Waits until it is so; that it never is fails the test."""
        if not self.comes(is_so, 60):
            raise AssertionError("it is not so after 60 s")

    def comes(self, is_so: Callable[[], object], seconds: float = 1) -> bool:
        """Whether it is so within some time."""
        give_up_at = time.monotonic() + seconds
        while not is_so():
            if time.monotonic() > give_up_at:
                return False
            self._sleep(0.005)
        return True

    def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def close(self) -> None:
        self.client.close()


class Asyncio(Sync):
    """The same for asyncio."""

    def __init__(self, port: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.client = redis.asyncio.Redis(port=port)

    def tapped(self, tap: Tap | None = None) -> Any:
        async def through(args: list[str], send: Any) -> Any:
            given = None if tap is None else tap(args)
            if asyncio.isfuture(given):
                await given
                given = None
            return await send(args) if given is None else _given(given, lambda: None)

        return AsyncTapped(self.client, through)

    def store(self, client: Any = None, **options: Any) -> Any:
        return switchgear.redis.asyncio.RedisStore(self.client if client is None else client, **options)

    def breaker(self, name: str, store: Any, **policy: Any) -> Any:
        return switchgear.redis.asyncio.DistributedCircuitBreaker(name, store, **policy)

    def run(self, breaker: Any, fn: Callable[[], T]) -> T:
        async def call() -> T:
            return fn()

        answer: T = self.loop.run_until_complete(breaker.execute(call))
        return answer

    def decorated(self, breaker: Any, fn: Callable[[], T]) -> Callable[[], T]:
        async def call() -> T:
            return fn()

        guarded: Callable[[], Awaitable[T]] = breaker(call)
        return lambda: self.loop.run_until_complete(guarded())

    def do(self, call: Callable[..., Any], *args: Any, **options: Any) -> Any:
        return self.loop.run_until_complete(call(*args, **options))

    def _sleep(self, seconds: float) -> None:
        self.loop.run_until_complete(asyncio.sleep(seconds))

    def close(self) -> None:
        self.loop.run_until_complete(self._end())
        self.loop.close()

    async def _end(self) -> None:
        """As `asyncio.run` does."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.client.aclose()


@contextmanager
def side_of(kind: str, port: int) -> Iterator[Any]:
    """One of the two, with a client of the server there."""
    side = (Sync if kind == "sync" else Asyncio)(port)
    try:
        yield side
    finally:
        side.close()


def _given(given: object, send: Callable[[], Any]) -> Any:
    if isinstance(given, BaseException):
        raise given
    return send() if given is None else given
