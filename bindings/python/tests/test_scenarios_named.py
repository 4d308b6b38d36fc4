"""Each of the users' scenarios that concerns Python is told by a test that names its number."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

# All of calls and their circuits; of shared ones: lifetimes, names, replies, clients, extras.
CONCERN_PYTHON = {*range(1, 45), 51, *range(53, 57)}


def numbers_of_tests() -> Iterator[int]:
    for file in Path(__file__).parent.glob("test_*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield from (int(number) for number in re.findall(r"\Atest_scenario_(\d\d)_", node.name))


def test_each_scenario_is_named_by_a_test() -> None:
    assert sorted(CONCERN_PYTHON - set(numbers_of_tests())) == []
