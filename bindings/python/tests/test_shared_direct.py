"""What a shared breaker of asyncio leaves behind in the client's pool: after a cancellation, a deadline, a broken
connection, in another event loop. The next command on the pool always gets its own reply.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
import redis.asyncio
import valkey.asyncio
from support.clock import ManualClock
from support.servers import Server, start_server
from support.stores import PATIENT, heard, name, reason_async, set_deadline
from switchgear import CircuitOpenError, StoreUnavailableError
from switchgear.redis.asyncio import DistributedCircuitBreaker, RedisStore


class Own:
    """What knows which commands the client that it is mixed into has sent in its own way."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.own: list[str] = []

    async def parse_response(self, connection: Any, command_name: Any, **options: Any) -> Any:
        self.own.append(str(command_name))
        client: Any = super()
        return await client.parse_response(connection, command_name, **options)


class Client(Own, redis.asyncio.Redis):  # type: ignore[misc]  # its own bases disagree about a method
    pass


class ValkeyClient(Own, valkey.asyncio.Valkey):  # type: ignore[misc]  # so do those of this one
    pass


Make = Callable[..., Any]

MAKES: dict[str, Make] = {
    "RESP2": lambda **where: Client(protocol=2, **where),
    "RESP3": lambda **where: Client(protocol=3, **where),
    "decoding": lambda **where: Client(decode_responses=True, **where),
    "no-timeout": lambda **where: Client(socket_timeout=None, **where),
    "one-place": lambda **where: _pooled(redis.asyncio.ConnectionPool(max_connections=1, **where)),
    "waiting-for-one-place": lambda **where: _pooled(redis.asyncio.BlockingConnectionPool(max_connections=1, **where)),
    "valkey": ValkeyClient,
}
"""Clients of one server, by what is special about each."""


def _pooled(pool: Any) -> Client:
    client = Client(connection_pool=pool)
    client.auto_close_connection_pool = True
    return client


class Place:
    """A client, and breakers on it."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.clock = ManualClock()
        self.store = RedisStore(client, clock=self.clock, timeout_ms=PATIENT)
        self.errors = heard(self.store)

    def breaker(self, **policy: Any) -> DistributedCircuitBreaker:
        """One whose callers hear what the store said."""
        given = {"open_duration_ms": 1000, "on_store_failure": "fail-closed", **policy}
        return DistributedCircuitBreaker(name(), self.store, **given)

    async def half_open(self) -> DistributedCircuitBreaker:
        breaker = self.breaker()
        await breaker.trip()
        self.clock.now += 1000
        await (await breaker.acquire()).release()
        return breaker

    @property
    def places(self) -> tuple[int, int]:
        """How many connections of the pool are idle, and how many in use."""
        pool = self.client.connection_pool
        return len(pool._available_connections), len(pool._in_use_connections)

    async def check_pool(self) -> None:
        """Each connection goes back, and the next commands get their own replies."""
        # What nobody waits for is done first: it takes a connection, too.
        await self.store.close()
        await until(lambda: self.places[1] == 0)
        for _ in range(2):
            said = name()
            assert await self.client.echo(said) in (said, said.encode())
        assert self.places[1] == 0


@asynccontextmanager
async def place(make: Make, **where: Any) -> AsyncIterator[Place]:
    client = make(**where)
    try:
        here = Place(client)
        yield here
        await here.store.close()
    finally:
        await client.aclose()


def at(test: Callable[[Place], Awaitable[None]], make: Make = Client, **where: Any) -> None:
    """Runs a test, and sees to it that no task is left."""

    async def main() -> None:
        async with place(make, **where) as here:
            await test(here)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


async def until(is_so: Callable[[], object]) -> None:
    """Asks again until it is so; a test that this never ends is ended from outside."""
    while not is_so():  # noqa: ASYNC110 - what is asked is no event
        await asyncio.sleep(0.001)


async def until_none(breaker: DistributedCircuitBreaker) -> None:
    """Waits until no probe is in flight."""
    while (await breaker.get_snapshot()).half_open_in_flight:  # noqa: ASYNC110 - what is asked is another process
        await asyncio.sleep(0.001)


async def until_answered(breaker: DistributedCircuitBreaker) -> None:
    """Waits until the store is asked again."""
    while True:
        with suppress(StoreUnavailableError):
            await breaker.get_state()
            return
        await asyncio.sleep(0.01)


async def ok() -> str:
    return "ok"


async def turns(count: int) -> None:
    """Lets the event loop go on for so many turns."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("make", MAKES)
def test_an_answer_is_asked_for_over_an_idle_connection_which_goes_back(redis_server: Server, make: str) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker()
        # Its connection is made by the client.
        assert await breaker.execute(ok) == "ok"
        here.client.own.clear()
        for _ in range(3):
            assert await breaker.execute(ok) == "ok"
            assert await breaker.get_state() == "closed"
        await breaker.force_open()
        with pytest.raises(CircuitOpenError):
            await breaker.execute(ok)
        await breaker.reset()
        assert here.client.own == []
        assert here.places == (1, 0)
        assert here.errors == []
        await here.check_pool()

    at(test, MAKES[make], port=redis_server.port)


def test_so_it_is_over_a_unix_socket(tmp_path: Path) -> None:
    # In the server's own folder: elsewhere the name may be too long for a socket.
    with start_server(args=["--unixsocket", "redis.sock"]) as server:
        path = f"{server.cli('config', 'get', 'dir').splitlines()[1]}/redis.sock"

        async def test(here: Place) -> None:
            breaker = here.breaker()
            await breaker.get_state()
            here.client.own.clear()
            assert await breaker.execute(ok) == "ok"
            assert here.client.own == []
            await here.check_pool()

        at(test, unix_socket_path=path)


def test_what_a_clients_own_class_does_with_a_command_is_done(redis_server: Server) -> None:
    class Watched(redis.asyncio.Redis):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            self.sent: list[str] = []

        async def execute_command(self, *args: Any, **options: Any) -> Any:
            self.sent.append(args[0])
            send: Any = super().execute_command
            return await send(*args, **options)

    async def test(here: Place) -> None:
        breaker = here.breaker()
        await breaker.get_state()
        here.client.sent.clear()
        assert await breaker.execute(ok) == "ok"
        assert here.client.sent == ["HMGET"]

    at(test, Watched, port=redis_server.port)


@pytest.mark.parametrize("make", MAKES)
def test_a_call_may_be_cancelled_at_any_moment(redis_server: Server, make: str) -> None:
    async def test(here: Place) -> None:
        closed, half_open = here.breaker(), await here.half_open()
        calls: list[Callable[[], Any]] = [lambda: closed.execute(ok), half_open.acquire, half_open.get_state]
        for count in range(45):
            for call in calls:
                task = asyncio.create_task(call())
                await turns(count)
                task.cancel()
                with suppress(asyncio.CancelledError):
                    given = await task
                    if call == half_open.acquire:
                        await given.release()
                await here.check_pool()
            # A slot that was granted to nobody is free again.
            await until_none(half_open)
        assert await closed.get_state() == "closed"
        assert await half_open.get_state() == "half-open"
        assert here.errors == []

    at(test, MAKES[make], port=redis_server.port)


def test_one_of_many_may_be_cancelled_at_any_moment(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker()
        for count in range(30):
            tasks = [asyncio.create_task(breaker.execute(ok)) for _ in range(8)]
            await turns(count)
            # Whoever asks for all, and whoever has joined.
            tasks[0].cancel()
            tasks[5].cancel()
            given = await asyncio.gather(*tasks, return_exceptions=True)
            for number, answer in enumerate(given):
                assert answer == "ok" or (number in (0, 5) and isinstance(answer, asyncio.CancelledError))
            await here.check_pool()
        assert here.errors == []

    at(test, port=redis_server.port)


def test_a_cancellation_comes_through_once_and_is_its_scopes(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker()
        task = asyncio.current_task()
        assert task is not None
        await breaker.get_state()
        for count in range(20):
            with anyio.move_on_after(count / 20_000) as scope:
                while True:
                    await breaker.get_state()
            assert scope.cancelled_caught
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(breaker.get_state(), count / 20_000)
            # Nothing of it is left for what comes next.
            await asyncio.sleep(0)
            assert getattr(task, "cancelling", int)() == 0
            await here.check_pool()

        async def fails() -> None:
            await asyncio.sleep(0)
            raise LookupError("this one")

        for _ in range(20):
            with pytest.raises(BaseException) as raised:
                async with anyio.create_task_group() as group:
                    for _ in range(3):
                        group.start_soon(_for_ever, breaker)
                    group.start_soon(fails)
            assert _leaves(raised.value) == ["this one"]
            await here.check_pool()

    at(test, port=redis_server.port)


async def _for_ever(breaker: DistributedCircuitBreaker) -> None:
    while True:
        await breaker.get_state()


def _leaves(error: BaseException) -> list[str]:
    inner = getattr(error, "exceptions", None)
    return [str(error)] if inner is None else [leaf for each in inner for leaf in _leaves(each)]


@pytest.mark.parametrize("make", MAKES)
def test_a_server_that_stops_answering_keeps_nobody_longer_than_the_deadline(make: str) -> None:
    with start_server() as server:

        async def test(here: Place) -> None:
            breakers = [here.breaker() for _ in range(3)]
            for breaker in breakers:
                await breaker.get_state()
            for _ in range(2):
                set_deadline(here.store, PATIENT)
                # The store is asked again, and there is an idle connection.
                for breaker in breakers:
                    await until_answered(breaker)
                await here.check_pool()
                here.client.own.clear()
                server.pause()
                set_deadline(here.store, 50)
                assert await reason_async(breakers[0].get_state()) == "no answer within 50 ms"
                assert here.client.own == []
                # Now by connections that are to be made, and one of them is cancelled.
                waiting = asyncio.create_task(breakers[1].get_state())
                await asyncio.sleep(0.01)
                waiting.cancel()
                await asyncio.wait([waiting])
                await reason_async(breakers[2].get_state())
                server.resume()
                await here.check_pool()

        at(test, MAKES[make], port=server.port)


@pytest.mark.parametrize("make", MAKES)
def test_an_answer_that_comes_in_the_moment_of_the_deadline_leaves_no_broken_connection(make: str) -> None:
    with start_server() as server:

        async def test(here: Place) -> None:
            breaker = here.breaker()
            await breaker.get_state()

            async def asks_on() -> Any:
                with suppress(StoreUnavailableError):
                    await breaker.get_state()
                # In the same turn of the event loop.
                return await here.client.echo("mine")

            server.pause()
            set_deadline(here.store, 50)
            call = asyncio.create_task(asks_on())
            await turns(1)
            assert here.places == (0, 1)
            # The event loop stands still until both are there.
            server.resume()
            server.cli("ping")
            time.sleep(0.06)  # noqa: ASYNC251 - that is what it is about
            assert await call in ("mine", b"mine")
            await here.check_pool()

        at(test, MAKES[make], port=server.port)


def test_who_waits_for_a_place_in_the_pool_gets_that_of_a_call() -> None:
    with start_server() as server:

        async def test(here: Place) -> None:
            breaker = here.breaker()
            await breaker.get_state()
            server.pause()
            call = asyncio.create_task(breaker.execute(ok))
            await until(lambda: here.places == (0, 1))
            waiting = asyncio.create_task(here.client.echo("mine"))
            await turns(5)
            server.resume()
            assert await call == "ok"
            assert await waiting == b"mine"
            await here.check_pool()
            # So does who waits when a call is cancelled.
            server.pause()
            call = asyncio.create_task(breaker.execute(ok))
            await until(lambda: here.places == (0, 1))
            waiting = asyncio.create_task(here.client.echo("mine"))
            await turns(5)
            call.cancel()
            server.resume()
            assert await waiting == b"mine"
            with pytest.raises(asyncio.CancelledError):
                await call
            await here.check_pool()

        at(test, MAKES["waiting-for-one-place"], port=server.port)


def test_a_pool_that_is_held_gets_its_connection_back_later_and_nobody_waits_for_that() -> None:
    with start_server() as server:

        async def test(here: Place) -> None:
            breaker = here.breaker()
            await breaker.get_state()
            pool = here.client.connection_pool
            for cancelled in (False, True):
                server.pause()
                call = asyncio.create_task(breaker.execute(ok))
                await until(lambda: here.places == (0, 1))
                async with pool._lock:
                    if cancelled:
                        call.cancel()
                    server.resume()
                    await asyncio.wait([call])
                    assert here.places == (0, 1)
                assert call.cancelled() if cancelled else call.result() == "ok"
                await here.check_pool()
                await breaker.get_state()
            # One that was emptied meanwhile has no place for it any more.
            server.pause()
            call = asyncio.create_task(breaker.execute(ok))
            await until(lambda: here.places == (0, 1))
            pool.reset()
            server.resume()
            assert await call == "ok"
            assert here.places == (0, 0)
            await here.check_pool()

        at(test, port=server.port)


@pytest.mark.parametrize("make", MAKES)
@pytest.mark.parametrize("noticed", [True, False])
def test_connections_that_broke_while_they_were_idle_are_nobodys_trouble(make: str, noticed: bool) -> None:
    with start_server() as server:

        async def test(here: Place) -> None:
            breaker = here.breaker()
            assert await breaker.execute(ok) == "ok"
            for _ in range(3):
                # The event loop may not have heard of it yet.
                server.cli("client", "kill", "type", "normal", "skipme", "yes")
                if noticed:
                    connection = here.client.connection_pool._available_connections[-1]
                    await until(connection._reader.at_eof)
                assert await breaker.execute(ok) == "ok"
                assert await breaker.get_state() == "closed"
                await here.check_pool()
            assert here.errors == []

        at(test, MAKES[make], port=server.port)


def test_an_error_of_the_server_is_the_answer_and_leaves_the_connection_as_it_is(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker()
        await here.client.set(f"{{cb:{breaker.name}}}", "no hash")
        first = await reason_async(breaker.get_state())
        connection = here.client.connection_pool._available_connections[-1]
        here.client.own.clear()
        assert first is not None
        assert first.startswith("WRONGTYPE")
        assert str(await reason_async(breaker.execute(ok))).startswith("WRONGTYPE")
        assert here.client.own == []
        assert here.client.connection_pool._available_connections == [connection]
        assert connection.is_connected
        await here.check_pool()

    at(test, port=redis_server.port)


def test_the_client_is_told_to_wait_as_long_as_before(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker()
        for count in range(10):
            call = asyncio.create_task(breaker.get_state())
            await turns(count)
            call.cancel()
            await asyncio.wait([call])
            await here.check_pool()
            (connection,) = here.client.connection_pool._available_connections
            assert connection.socket_timeout == 7

    at(test, lambda **where: Client(socket_timeout=7, **where), port=redis_server.port)


def test_a_connection_with_something_to_be_read_is_left_to_the_client(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker()
        await breaker.get_state()
        (connection,) = here.client.connection_pool._available_connections
        # A reply that nobody waits for.
        await connection.send_command("ECHO", "another's")
        await until(lambda: connection._reader._buffer)
        here.client.own.clear()
        assert await breaker.get_state() == "closed"
        assert here.client.own != []
        await here.check_pool()

    at(test, MAKES["RESP2"], port=redis_server.port)


def test_another_event_loop_takes_no_connection_of_this_one(redis_server: Server) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker(on_store_failure="local")
        await breaker.get_state()
        (connection,) = here.client.connection_pool._available_connections

        async def elsewhere() -> None:
            here.client.own.clear()
            # Whatever the client makes of that, the call has its own result.
            assert await breaker.execute(ok) == "ok"

        thread = threading.Thread(target=lambda: asyncio.run(elsewhere()))
        thread.start()
        thread.join()
        assert here.client.own != []
        await connection.disconnect(nowait=True)
        await here.check_pool()
        assert await breaker.execute(ok) == "ok"

    at(test, port=redis_server.port)


def test_a_server_that_hangs_up_in_the_middle_of_a_reply_is_asked_again(redis_server: Server) -> None:
    async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"HMGET")
        writer.write(b"*5\r\n$-1\r\n")
        await writer.drain()
        writer.close()

    async def test(here: Place) -> None:
        breaker = here.breaker()
        await breaker.get_state()
        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as server:
            await turn_to(here, *server.sockets[0].getsockname())
            assert await breaker.execute(ok) == "ok"
            assert here.client.own[-1] == "HMGET"
        assert here.errors == []
        await here.check_pool()

    at(test, port=redis_server.port)


async def turn_to(here: Place, host: str, port: int) -> None:
    """Has the idle connection speak with somebody else."""
    (connection,) = here.client.connection_pool._available_connections
    await connection.disconnect()
    connection._reader, connection._writer = await asyncio.open_connection(host, port)
    connection._parser.on_connect(connection)


@pytest.mark.parametrize("make", MAKES)
def test_a_server_that_never_says_a_word_keeps_nobody_longer_than_the_deadline(redis_server: Server, make: str) -> None:
    async def test(here: Place) -> None:
        breaker = here.breaker()
        await breaker.get_state()
        with socket.create_server(("127.0.0.1", 0)) as silent:
            await turn_to(here, *silent.getsockname())
            here.client.own.clear()
            set_deadline(here.store, 50)
            assert await reason_async(breaker.get_state()) == "no answer within 50 ms"
            assert here.client.own == []
        assert here.places == (1, 0)
        await here.check_pool()

    at(test, MAKES[make], port=redis_server.port)
