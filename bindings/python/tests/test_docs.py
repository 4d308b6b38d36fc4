"""Every Python example a reader sees is type-checked strictly and run, with a real Redis and a real HTTP server.

Each is a script of its own, in documents as in docstrings; what it says it prints, `# prints ...`, is compared.
"""

import doctest
import importlib
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

import pytest
import switchgear
from support.child import TIMEOUT_S, child_environment
from support.examples import Example, examples_in
from support.servers import Server, start_server
from support.web import WebServer

pytestmark = [
    pytest.mark.once(reason="each example is a process of its own, and what it shows has suites of its own"),
    pytest.mark.thread_unsafe(reason="each example is a process of its own: four at once prove no more"),
]

ROOT = Path(__file__).parents[3]


def documents() -> list[str]:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True)
    return [document for document in listed.stdout.splitlines() if (ROOT / document).exists()]


def modules() -> Iterator[ModuleType]:
    yield switchgear
    for found in pkgutil.walk_packages(switchgear.__path__, "switchgear."):
        if found.name != "switchgear._native":
            yield importlib.import_module(found.name)


#: What the readers of docstrings are assumed to have.
ASSUMED = 'import os\nREDIS_URL = os.environ["REDIS_URL"]\nBASE_URL = os.environ["BILLING_URL"]\n'


def docstrings() -> dict[str, str]:
    """Each docstring by where it stands: once, also if a private module defines what another one makes public."""
    found = {
        test.docstring: f"{module.__name__}: {test.name}"
        for module in modules()
        for test in doctest.DocTestFinder().find(module, globs={})
        if test.docstring
    }
    return {name: docstring for docstring, name in found.items()}


EXAMPLES = {
    f"{document}:{example.line}": example
    for document in documents()
    for example in examples_in((ROOT / document).read_text())
} | {
    f"{name}:{example.line}": replace(example, setup=ASSUMED)
    for name, docstring in docstrings().items()
    for example in examples_in(docstring)
}

#: Examples that must be found out: they raise, do not type-check, or print something else than they say.
BROKEN = {
    "raises": Example("", "raise ValueError('no')\n", 1),
    "types": Example("", "from switchgear import CircuitBreaker\n\nn: int = CircuitBreaker('a').name\n", 1),
    "prints": Example("", "print(1)  # prints 2\n", 1),
    "warns": Example("", "import warnings\n\nwarnings.warn('old', DeprecationWarning)\n", 1),
}


@pytest.fixture(scope="module")
def redis() -> Iterator[Server]:
    with start_server() as server:
        yield server


@pytest.fixture(scope="module")
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


@pytest.fixture
def env(redis: Server, web: WebServer) -> dict[str, str]:
    """What an example is run in; its circuits are new."""
    redis.cli("flushall")
    return {
        **child_environment(),
        "REDIS_URL": redis.url,
        "BILLING_URL": web.url,
        "SWITCHGEAR_COMPONENT": str(ROOT / "bindings/component/dist/switchgear.wasm"),
    }


@pytest.fixture(scope="module")
def type_errors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What mypy says of each example, all of them in one run."""
    folder = tmp_path_factory.mktemp("examples")
    files = {name: folder / f"example_{i}.py" for i, name in enumerate(EXAMPLES | BROKEN)}
    for name, file in files.items():
        file.write_text((EXAMPLES | BROKEN)[name].script)
    strictly = [
        "--strict",
        "--allow-untyped-decorators",
        "--config-file=",
        f"--cache-dir={ROOT / '.cache/mypy-examples'}",
    ]
    package = str(Path(switchgear.__file__).parents[1])
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", *strictly, "--disable-error-code=import-untyped", *map(str, files.values())],
        cwd=folder,
        env={**os.environ, "MYPYPATH": package},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode in (0, 1), checked.stdout + checked.stderr
    said = checked.stdout.splitlines()
    return {name: [line for line in said if line.startswith(f"{file.name}:")] for name, file in files.items()}


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str, env: dict[str, str]) -> None:
    run(EXAMPLES[name], env)


@pytest.mark.parametrize("name", EXAMPLES)
def test_types_of_example(name: str, type_errors: dict[str, list[str]]) -> None:
    assert type_errors[name] == []


@pytest.mark.parametrize("name", ["raises", "prints", "warns"])
def test_a_broken_example_is_found_out(name: str, env: dict[str, str]) -> None:
    with pytest.raises(AssertionError):
        run(BROKEN[name], env)


def test_an_example_with_wrong_types_is_found_out(type_errors: dict[str, list[str]]) -> None:
    (error,) = type_errors["types"]
    assert "Incompatible types in assignment" in error


def test_the_documents_have_the_examples_they_are_read_for() -> None:
    assert sum(name.startswith("README.md:") for name in EXAMPLES) >= 3
    assert sum(name.startswith("docs/python.md:") for name in EXAMPLES) >= 12
    assert sum(name.startswith("docs/component.md:") for name in EXAMPLES) == 2
    assert sum(name.startswith("switchgear") for name in EXAMPLES) >= 5


def test_each_example_is_written_so_that_it_is_run() -> None:
    for document in documents():
        others = re.findall(r"^ *```(?:py|python3|pycon)$", (ROOT / document).read_text(), re.MULTILINE)
        assert others == [], f"{document}: write ```python"
    for name, docstring in docstrings().items():
        assert ">>>" not in docstring, f"{name}: write ```python"


def test_examples_and_promised_output_are_read_as_they_are_meant() -> None:
    text = "a\n<!-- setup\nx = 1\n-->\n```python\nprint(x)  # prints 1\n```\n```ts\nf();\n```\n"
    (example,) = examples_in(text)
    assert example == Example("x = 1\n", "print(x)  # prints 1\n", 5)
    assert example.promised == ["1"]


#: Ahead of an example: where it leaves the deadline of its store at its default, a machine that is busy may miss that.
PATIENTLY = """
from switchgear import _native
_native.defaults = lambda known=_native.defaults(): (*known[:2], 20_000)
"""


def run(example: Example, env: dict[str, str]) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder, "example.py")
        file.write_text(PATIENTLY + example.script)
        command = [sys.executable, "-W", "error", str(file)]
        ran = subprocess.run(
            command, cwd=folder, env=env, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
        )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    if example.promised:
        assert ran.stdout.splitlines() == example.promised
