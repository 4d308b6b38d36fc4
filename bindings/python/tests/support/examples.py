"""Finds the Python examples in a Markdown text, as `tests/docs/examples.mjs` does for TypeScript."""

from __future__ import annotations

import re
from dataclasses import dataclass
from textwrap import dedent


@dataclass(frozen=True)
class Example:
    """A fenced block of Python."""

    #: What its reader is assumed to have, said by an HTML comment right before it: `<!-- setup`, lines of code, `-->`.
    setup: str
    code: str
    line: int

    @property
    def script(self) -> str:
        """What to run."""
        return f"{self.setup}\n{self.code}"

    @property
    def promised(self) -> list[str]:
        """What it says it prints, line by line: its comments `# prints ...`."""
        return [line.strip() for line in re.findall(r"# prints (.*)$", self.code, re.MULTILINE)]


def examples_in(text: str) -> list[Example]:
    """Each fenced block whose language is `python`."""
    return [
        Example(found["setup"] or "", dedent(found["code"]), text[: found.start("fence")].count("\n") + 1)
        for found in _FENCE.finditer(text)
        if found["language"] == "python"
    ]


_FENCE = re.compile(
    r"(?:<!-- setup\n(?P<setup>(?:(?!-->).)*?)-->\n+)?"
    r"^(?P<indent> *)(?P<fence>```)(?P<language>\S*)\n(?P<code>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
