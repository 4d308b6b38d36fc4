"""The wheel works in an empty venv of each Python; the source distribution gives the same wheel."""

from __future__ import annotations

import email
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.servers import Server, start_server

ROOT = Path(__file__).parents[2]
REQUIREMENTS = ROOT / "bindings/python/requirements.txt"
(VERSION,) = re.findall(r'\[workspace\.package\]\nversion = "([^"]+)"', (ROOT / "Cargo.toml").read_text())

PIP: list[str | Path] = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]


def run(*command: str | Path, cwd: Path = ROOT, **env: str) -> str:
    """What a command says; if it fails, an error with all it said."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    ran = subprocess.run(command, cwd=cwd, env={**inherited, **env}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, f"{command}: exit {ran.returncode}\n{ran.stdout}\n{ran.stderr}"
    return ran.stdout


# The Pythons of this machine by their minor versions, oldest first.
PYTHONS: dict[str, str] = {
    version: python
    for version, _, python in (line.partition(" ") for line in run(ROOT / "scripts/pythons.sh").splitlines())
}


@dataclass(frozen=True)
class Built:
    """What was built: both distributions, and the wheels that maturin and pip make of the source distribution."""

    wheel: Path
    sdist: Path
    rebuilt: Path
    by_pip: Path


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    folder = tmp_path_factory.mktemp("dist")
    maturin = Path(sys.executable).with_name("maturin")
    target = str(ROOT / ".cache/target-python")
    run(maturin, "build", "--locked", "--out", folder / "wheel", CARGO_TARGET_DIR=target)
    run(maturin, "sdist", "--out", folder / "sdist")
    (sdist,) = (folder / "sdist").iterdir()

    # In the same target folder cargo would find that it has built that already. The times in it are old: unpacked as
    # they are, cargo would take changed files for those of its last build.
    target = str(ROOT / ".cache/target-sdist")
    (folder / "source").mkdir()
    run("tar", "--touch", "-xzf", sdist, "-C", folder / "source")
    (source,) = (folder / "source").iterdir()
    run(maturin, "build", "--out", folder / "rebuilt", cwd=source, CARGO_TARGET_DIR=target)
    # As pip does it for who installs it, but with the maturin that is here.
    path = f"{maturin.parent}{os.pathsep}{os.environ['PATH']}"
    pip = [*PIP, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir"]
    run(*pip, folder / "by-pip", sdist, cwd=folder, PATH=path, CARGO_TARGET_DIR=target)

    (wheel,), (rebuilt,), (by_pip,) = (list((folder / name).iterdir()) for name in ("wheel", "rebuilt", "by-pip"))
    return Built(wheel, sdist, rebuilt, by_pip)


@dataclass(frozen=True)
class Consumer:
    """A project that uses the package."""

    folder: Path
    python: Path

    def run(self, script: str, *args: str) -> str:
        """What a script prints. It sees the venv alone, and a warning ends it."""
        return run(self.python, "-I", "-X", "dev", "-W", "error", "-c", script, *args, cwd=self.folder).strip()


@pytest.fixture(scope="module", params=list(PYTHONS))
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def alone(built: Built, version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consumer]:
    """The package in an empty venv, with what it needs and no more."""
    yield from installed(built.wheel, "", PYTHONS[version], tmp_path_factory.mktemp("alone"))


@pytest.fixture(scope="module")
def with_redis(built: Built, version: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Consumer]:
    """The package with its extra `redis` in an empty venv."""
    yield from installed(built.wheel, "[redis]", PYTHONS[version], tmp_path_factory.mktemp("redis"))


def installed(wheel: Path, extra: str, python: str, folder: Path) -> Iterator[Consumer]:
    run(python, "-m", "venv", "--without-pip", folder / "venv")
    consumer = Consumer(folder, folder / "venv/bin/python")
    pins = folder / "constraints.txt"
    pins.write_text("\n".join(re.findall(r"^[a-zA-Z][^\\\n]*", REQUIREMENTS.read_text(), re.M)))
    pip = [*PIP, "--python", consumer.python, "install", "--only-binary", ":all:"]
    run(*pip, "--constraint", pins, f"switchgear{extra} @ {wheel.as_uri()}")
    yield consumer
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with start_server() as started:
        yield started


USE = """
import switchgear
from switchgear import CircuitBreaker, CircuitOpenError

breaker = CircuitBreaker("billing", failure_threshold=1)

@breaker
def charge():
    raise RuntimeError("down")

said = []
for _ in range(2):
    try:
        charge()
    except Exception as error:
        said.append(error)
own, refusal = said
assert str(own) == "down" and type(refusal) is CircuitOpenError, said
print(refusal.code, breaker.get_state(), switchgear.__version__)
"""


def test_it_works_alone(alone: Consumer) -> None:
    assert alone.run(USE) == f"circuit_open open {VERSION}"


def test_it_brings_nothing_along_that_python_has(alone: Consumer, version: str) -> None:
    names = "from importlib.metadata import distributions as d; print(*sorted(x.name for x in d()))"
    # asyncio.timeout came with 3.11, and async-timeout 5 needs nothing more.
    assert alone.run(names) == ("async-timeout switchgear" if version == "3.10" else "switchgear")


def test_it_says_which_version_it_is(alone: Consumer) -> None:
    assert alone.run("import importlib.metadata as m; print(m.version('switchgear'))") == VERSION


@pytest.mark.parametrize("module", ["switchgear.redis", "switchgear.redis.asyncio"])
def test_without_redis_a_store_says_which_extra_to_install(alone: Consumer, module: str) -> None:
    script = f"""
from {module} import DistributedCircuitBreaker, DistributedCircuitBreakerGroup, RedisStore
try:
    RedisStore(object())
except Exception as error:
    print(error)
"""
    assert 'pip install "switchgear[redis]"' in alone.run(script)


def test_a_shared_circuit_on_a_real_server(with_redis: Consumer, server: Server, version: str) -> None:
    script = """
import sys
import redis
from switchgear import CircuitOpenError
from switchgear.redis import DistributedCircuitBreaker, RedisStore

url, name = sys.argv[1:]

def down():
    raise RuntimeError("down")

patient = {"timeout_ms": 20_000}
with redis.Redis.from_url(url) as client, RedisStore(client, **patient) as a, RedisStore(client, **patient) as b:
    policy = {"trip_on": "consecutive", "failure_threshold": 1}
    try:
        DistributedCircuitBreaker(name, a, **policy).execute(down)
    except RuntimeError as error:
        print(error)
    try:
        DistributedCircuitBreaker(name, b, **policy).execute(down)
    except CircuitOpenError as error:
        print(error.code, error.circuit == name)
"""
    said = with_redis.run(script, server.url, f"pack-{version}")
    assert said.splitlines() == ["down", "circuit_open True"]


def test_a_shared_circuit_under_asyncio(with_redis: Consumer, server: Server, version: str) -> None:
    script = """
import asyncio, sys
import redis.asyncio
from switchgear import CircuitOpenError
from switchgear.redis.asyncio import DistributedCircuitBreaker, RedisStore

url, name = sys.argv[1:]

async def down():
    raise RuntimeError("down")

async def main():
    async with redis.asyncio.Redis.from_url(url) as client, RedisStore(client, timeout_ms=20_000) as store:
        breaker = DistributedCircuitBreaker(name, store, trip_on="consecutive", failure_threshold=1)
        for _ in range(2):
            try:
                await breaker.execute(down)
            except RuntimeError as error:
                print(error)
            except CircuitOpenError as error:
                print(error.code, error.circuit == name)

asyncio.run(main())
"""
    said = with_redis.run(script, server.url, f"pack-async-{version}")
    assert said.splitlines() == ["down", "circuit_open True"]


CONSUMER = """
from collections.abc import Callable, Coroutine
from typing import Any

from switchgear import CircuitBreaker, CircuitOpenError
from switchgear.redis import DistributedCircuitBreaker, RedisStore

breaker = CircuitBreaker("billing", trip_on="consecutive", failure_threshold=3)


@breaker
def charge(amount: int) -> str:
    return str(amount)


@breaker
async def refund(amount: int) -> str:
    return str(amount)


kept: Callable[[int], str] = charge
kept_async: Callable[[int], Coroutine[Any, Any, str]] = refund
answer: int = breaker.execute(lambda: 42, fallback=lambda error: 0)


def wait(error: CircuitOpenError) -> float | None:
    return error.retry_after


def shared(store: RedisStore) -> DistributedCircuitBreaker:
    return DistributedCircuitBreaker("billing", store)


charge("1")  # type: ignore[arg-type]  # wrong on purpose
wrong: str = breaker.execute(lambda: 42)  # type: ignore[assignment]  # wrong on purpose
CircuitBreaker("billing", failure_treshold=3)  # type: ignore[call-arg]  # wrong on purpose
"""


def test_its_types_reach_a_consumer_under_mypy_strict(with_redis: Consumer) -> None:
    (with_redis.folder / "consumer.py").write_text("from __future__ import annotations\n" + CONSUMER)
    config = with_redis.folder / "mypy.ini"
    config.write_text("[mypy]\n")
    # --strict says, too, when one of the errors that are expected is none.
    mypy: list[str | Path] = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file",
        config,
        "--python-executable",
        with_redis.python,
    ]
    run(*mypy, "consumer.py", cwd=with_redis.folder)


def names_in(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def sources() -> set[str]:
    """The files of the package that git knows, as they are named in a wheel."""
    listed = run("git", "ls-files", "--cached", "--others", "--exclude-standard", "bindings/python/switchgear")
    return {str(Path(name).relative_to("bindings/python")) for name in listed.splitlines() if (ROOT / name).exists()}


def test_the_wheel_holds_the_package_and_nothing_else(built: Built) -> None:
    info = f"switchgear-{VERSION}.dist-info"
    about = {
        f"{info}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "licenses/LICENSE-MIT", "licenses/LICENSE-APACHE")
    }
    assert "switchgear/py.typed" in sources()
    assert names_in(built.wheel) == sources() | about | {"switchgear/_native.abi3.so"}


def test_the_wheel_fits_every_python_from_the_lowest_on(built: Built) -> None:
    name, version, python, abi, platform = built.wheel.stem.split("-")
    assert (name, version, python, abi) == ("switchgear", VERSION, "cp310", "abi3")
    assert platform.startswith(("manylinux", "macosx", "win")), platform


def test_its_metadata_says_what_it_is(built: Built) -> None:
    with zipfile.ZipFile(built.wheel) as archive:
        metadata = email.message_from_bytes(archive.read(f"switchgear-{VERSION}.dist-info/METADATA"))
    assert metadata["Version"] == VERSION
    assert metadata["License-Expression"] == "MIT OR Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.10"
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert "redis" in metadata.get_all("Provides-Extra", [])


def test_the_source_distribution_gives_the_same_wheel(built: Built) -> None:
    assert built.rebuilt.name == built.wheel.name
    with zipfile.ZipFile(built.wheel) as ours, zipfile.ZipFile(built.rebuilt) as theirs:
        assert ours.namelist() == theirs.namelist()
        assert [name for name in ours.namelist() if ours.read(name) != theirs.read(name)] == []
    assert built.rebuilt.read_bytes() == built.wheel.read_bytes()


def test_pip_builds_it_from_the_source_distribution(built: Built) -> None:
    assert names_in(built.by_pip) == names_in(built.wheel)
    with zipfile.ZipFile(built.wheel) as ours, zipfile.ZipFile(built.by_pip) as theirs:
        different = [name for name in ours.namelist() if ours.read(name) != theirs.read(name)]
    # pip builds for this machine alone: WHEEL says so, and RECORD has a hash of it.
    assert {name.rpartition("/")[2] for name in different} <= {"WHEEL", "RECORD"}


def test_the_source_distribution_holds_what_the_wheel_is_made_of(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.split("/", 1)[1] for name in archive.getnames()}
    top = {
        "PKG-INFO",
        "pyproject.toml",
        "Cargo.toml",
        "Cargo.lock",
        "README.md",
        "CHANGELOG.md",
        "LICENSE-MIT",
        "LICENSE-APACHE",
    }
    crates = ("core/", "lua/", "bindings/python/")
    assert [name for name in names if name not in top and not name.startswith(crates)] == []
    assert top | {f"bindings/python/{name}" for name in sources()} <= names
    # Unit tests stand in the crates' sources. Everything else that tests, and all of Node, stays out.
    of_no_use = re.compile(r"(^|/)(tests/|test_|node_modules/|dist/|__pycache__/)|\.(js|mjs|ts|mts|json|so|pyc|node)$")
    assert [name for name in names if of_no_use.search(name) and not name.startswith(("core/src/", "lua/"))] == []
