"""Each of the users' scenarios that concerns Python is told by a test that names its number."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

# All of calls and their circuits; of shared ones: lifetimes, names, replies, clients, extras.
CONCERN_PYTHON = {*range(1, 45), 51, *range(53, 57)}


def numbers_of_tests() -> Iterator[int]:
    for file in Path(__file__).parent.glob("test_*.py"):
        text = file.read_text(encoding="utf-8")
        yield from (int(number) for number in re.findall(r"^(?:async )?def test_scenario_(\d+)_", text, re.MULTILINE))


def test_each_scenario_is_named_by_a_test() -> None:
    assert sorted(CONCERN_PYTHON - set(numbers_of_tests())) == []
