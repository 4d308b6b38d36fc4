"""What a store takes, and what it says of everything else."""

from __future__ import annotations

import asyncio
import copy
import pickle
import sys
from collections.abc import Callable
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.asyncio.sentinel
import redis.sentinel
import switchgear.redis
import switchgear.redis.asyncio
import valkey
import valkey.asyncio
from support.child import run_script
from switchgear import ConfigError, InvalidNameError, InvalidTimeError


class Commands:
    """A client that is never used."""

    def command(self, args: list[str], key: str) -> object:
        raise AssertionError((args, key))


class AsyncCommands:
    """The same for asyncio."""

    async def command(self, args: list[str], key: str) -> object:
        raise AssertionError((args, key))


def store(client: Any = None, **options: Any) -> switchgear.redis.RedisStore:
    return switchgear.redis.RedisStore(Commands() if client is None else client, **options)


def async_store(client: Any = None, **options: Any) -> switchgear.redis.asyncio.RedisStore:
    return switchgear.redis.asyncio.RedisStore(AsyncCommands() if client is None else client, **options)


def sentinel_of(module: Any) -> Any:
    return module.Sentinel([("localhost", 1)])


def sync_client() -> Any:
    return redis.Redis()


class Memcached:
    password = "s3cret"

    def get(self) -> None: ...


WRONG: list[tuple[str, Callable[[], Any], str]] = [
    ("nothing", lambda: None, "NoneType"),
    ("a URL", lambda: "redis://user:s3cret@host", "str"),
    ("a number", lambda: 6379, "int"),
    ("options", lambda: {"host": "localhost", "password": "s3cret"}, "dict"),
    ("another client", Memcached, "Memcached"),
    ("a class", lambda: redis.Redis, "the class Redis"),
    ("a class with a command", lambda: Commands, "the class Commands"),
    ("a pipeline", lambda: redis.Redis().pipeline(), "redis.client.Pipeline"),
    ("an asyncio pipeline", lambda: redis.asyncio.Redis().pipeline(), "redis.asyncio.client.Pipeline"),
    ("a subscription", lambda: sync_client().pubsub(), "redis.client.PubSub"),
    ("a pool", redis.ConnectionPool, "redis.connection.ConnectionPool"),
    ("a sentinel", lambda: sentinel_of(redis.sentinel), "redis.sentinel.Sentinel"),
]


@pytest.mark.parametrize(("given", "shown"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
@pytest.mark.parametrize("make", [store, async_store])
def test_scenario_55_what_is_no_client_is_refused_at_construction(
    make: Callable[..., Any], given: Callable[[], Any], shown: str
) -> None:
    client = given()
    if client is None:
        make = switchgear.redis.RedisStore if make is store else switchgear.redis.asyncio.RedisStore
    with pytest.raises(TypeError) as caught:
        make(client)
    text = str(caught.value)
    assert text.startswith("`client` must be a client of redis-py or valkey-py (`redis.")
    assert text.endswith(f"{shown}`")
    assert "s3cret" not in text


ASYNC_CLIENTS: dict[str, Callable[[], Any]] = {
    "redis": redis.asyncio.Redis,
    "valkey": valkey.asyncio.Valkey,
    "cluster": lambda: redis.asyncio.RedisCluster(host="localhost"),
    "sentinel": lambda: sentinel_of(redis.asyncio.sentinel).master_for("m"),
    "commands": AsyncCommands,
}
SYNC_CLIENTS: dict[str, Callable[[], Any]] = {
    "redis": redis.Redis,
    "valkey": valkey.Valkey,
    "sentinel": lambda: sentinel_of(redis.sentinel).master_for("m"),
    "commands": Commands,
}


@pytest.mark.parametrize("kind", ASYNC_CLIENTS)
def test_scenario_55_a_client_for_asyncio_is_refused_by_the_other_store(kind: str) -> None:
    with pytest.raises(TypeError, match=r"`switchgear\.redis\.asyncio\.RedisStore` takes it"):
        store(ASYNC_CLIENTS[kind]())


@pytest.mark.parametrize("kind", SYNC_CLIENTS)
def test_scenario_55_a_sync_client_is_refused_by_the_store_for_asyncio(kind: str) -> None:
    with pytest.raises(TypeError, match=r"`switchgear\.redis\.RedisStore` takes it"):
        async_store(SYNC_CLIENTS[kind]())


def test_scenario_55_a_store_of_the_wrong_kind_is_refused_by_a_breaker_that_names_the_right_one() -> None:
    with pytest.raises(TypeError, match=r"`switchgear\.redis\.asyncio\.DistributedCircuitBreaker` takes it"):
        switchgear.redis.DistributedCircuitBreaker("b", async_store())  # type: ignore[arg-type]  # what it is about
    with pytest.raises(TypeError, match=r"`switchgear\.redis\.DistributedCircuitBreaker` takes it"):
        switchgear.redis.asyncio.DistributedCircuitBreaker("b", store())  # type: ignore[arg-type]  # what it is about
    with pytest.raises(TypeError, match=r"`switchgear\.redis\.asyncio\.DistributedCircuitBreakerGroup` takes it"):
        switchgear.redis.DistributedCircuitBreakerGroup("b", async_store())  # type: ignore[arg-type]  # what it is about
    for given in (None, redis.Redis(), "redis://u:s3cret@h", switchgear.redis.RedisStore):
        with pytest.raises(TypeError, match=r"`store` must be a RedisStore") as caught:
            switchgear.redis.DistributedCircuitBreaker("b", given)  # type: ignore[arg-type]  # what it is about
        assert "s3cret" not in str(caught.value)


def test_a_client_of_replicas_is_refused() -> None:
    with pytest.raises(TypeError, match="master_for"):
        store(sentinel_of(redis.sentinel).slave_for("m"))


def test_what_is_of_a_right_kind_is_taken_connected_or_not() -> None:
    class Mine(redis.Redis):
        pass

    class Proxy:
        def __init__(self, inner: object) -> None:
            self._inner = inner

        @property  # type: ignore[misc]  # as proxies do it
        def __class__(self) -> Any:
            return self._inner.__class__

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    for client in (redis.Redis(), Mine(), Proxy(redis.Redis()), valkey.Valkey(), Commands()):
        assert isinstance(store(client), switchgear.redis.RedisStore)
    for other in (
        redis.asyncio.Redis(),
        valkey.asyncio.Valkey(),
        redis.asyncio.RedisCluster(host="h"),
        AsyncCommands(),
    ):
        assert isinstance(async_store(other), switchgear.redis.asyncio.RedisStore)


OPTIONS: list[tuple[dict[str, Any], str, str]] = [
    ({"timeout_ms": 0}, "timeout_ms", "`timeout_ms` must be an integer from 1 to 2147483647 (milliseconds), got `0`"),
    ({"timeout_ms": "100"}, "timeout_ms", "got `'100'`"),
    ({"timeout_ms": float("nan")}, "timeout_ms", "got `NaN`"),
    ({"timeout_ms": True}, "timeout_ms", "got `True`"),
    ({"timeout_ms": 2**31}, "timeout_ms", "got `2147483648`"),
    ({"clock": "wall"}, "clock", "`clock` must be 'server', 'system' or callable, got `'wall'`"),
    ({"clock": 5}, "clock", "got `5`"),
    ({"instance": ""}, "instance", "`instance` must be a text that is not empty, got `''`"),
    ({"instance": 7}, "instance", "got `7`"),
]


@pytest.mark.parametrize(("options", "field", "message"), OPTIONS, ids=[str(case[0]) for case in OPTIONS])
@pytest.mark.parametrize("make", [store, async_store])
def test_an_option_that_is_not_valid_is_told(
    make: Callable[..., Any], options: dict[str, Any], field: str, message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        make(**options)
    assert caught.value.field == field
    assert message in str(caught.value)


@pytest.mark.parametrize("make", [store, async_store])
def test_prefixes_and_clocks_are_checked(make: Callable[..., Any]) -> None:
    for prefix in ("", "}x", "a\nb", "n" * 513, 5):
        with pytest.raises(InvalidNameError):
            make(prefix=prefix)
    with pytest.raises(InvalidTimeError):
        make(clock=lambda: -1)

    def broken() -> int:
        raise OSError("no time")

    with pytest.raises(OSError, match="no time"):
        make(clock=broken)
    reads: list[int] = []

    def read() -> int:
        reads.append(1)
        return 0

    make(clock=read)
    assert reads == [1]


@pytest.mark.parametrize("make", [store, async_store])
def test_what_is_left_out_and_none_are_the_same_and_listeners_are_checked(make: Callable[..., Any]) -> None:
    made = make(prefix=None, timeout_ms=None, clock=None, instance=None)
    assert make(clock="system").link.timeout_ms == made.link.timeout_ms == 100
    # What is left out is the server's time, which is not known before it is asked.
    assert made.link.times()[1] is make(clock="server").link.times()[1] is None
    assert make(clock="system").link.times()[1] is not None
    assert made.link.prefix == "cb:"
    with pytest.raises(
        TypeError, match="no event is called 'trouble'; there are store_error, config_mismatch, degraded, restored"
    ):
        made.on("trouble", print)
    with pytest.raises(TypeError, match="must be callable"):
        made.on("store_error", 5)
    stop = made.on("store_error", print)
    stop()
    stop()


@pytest.mark.parametrize("make", [store, async_store])
def test_a_store_is_neither_copied_nor_pickled_and_shows_no_secret(make: Callable[..., Any]) -> None:
    module: Any = redis if make is store else redis.asyncio
    made = make(module.Redis(password="s3cret"))
    assert "s3cret" not in repr(made)
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="make one in each process"):
            copied(made)


def test_closing_a_store_leaves_the_client_alone_any_number_of_times() -> None:
    class Mine(Commands):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    client = Mine()
    with store(client) as made:
        made.close()
    made.close()
    assert client.closed == 0

    async def main() -> int:
        mine = AsyncCommands()
        async with async_store(mine) as made:
            await made.close()
        await made.close()
        return 0

    asyncio.run(main())


WITHOUT_LIBRARIES = """
import sys
from importlib.machinery import PathFinder

class Hiding(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] in ("redis", "valkey") else super().find_spec(name, path, target)

sys.meta_path = [Hiding if finder is PathFinder else finder for finder in sys.meta_path]
import switchgear
import switchgear.redis
import switchgear.redis.asyncio
assert not [name for name in sys.modules if name.split(".")[0] in ("redis", "valkey")]
for module in (switchgear.redis, switchgear.redis.asyncio):
    try:
        module.RedisStore("redis://localhost")
    except TypeError as error:
        print(error)

class Own:
    def command(self, args, key):
        return [None] * 5

store = switchgear.redis.RedisStore(Own(), timeout_ms=60_000)
print(switchgear.redis.DistributedCircuitBreaker("b", store).execute(lambda: "ok"))
"""


def test_scenario_56_without_a_client_library_the_import_works_and_a_store_says_what_to_install() -> None:
    ran = run_script(WITHOUT_LIBRARIES)
    assert ran.code == 0, ran.stderr
    first, second, last = ran.stdout.splitlines()
    for line in (first, second):
        assert line.endswith('no client library is installed: pip install "switchgear[redis]"')
    assert last == "ok"


def test_importing_and_constructing_import_no_client_library() -> None:
    script = "import switchgear.redis, switchgear.redis.asyncio, sys; print([n for n in sys.modules if n == 'redis'])"
    ran = run_script(script)
    assert (ran.code, ran.stdout.strip()) == (0, "[]"), ran.stderr
    assert "redis" in sys.modules
