"""Scripts in a Python process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

# Only there to end what hangs.
TIMEOUT_S = 300

# Where `switchgear` is imported from, and `support`.
_PATHS = [str(Path(__file__).parents[2]), str(Path(__file__).parents[1])]


@dataclass(frozen=True)
class Ran:
    """What a script did."""

    code: int
    stdout: str
    stderr: str


def run_script(script: str, *args: str, flags: tuple[str, ...] = ()) -> Ran:
    """Runs it to its end; what hangs is killed, and fails the test."""
    ran = subprocess.run(
        [sys.executable, *flags, "-c", dedent(script), *args],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        env=child_environment(),
        check=False,
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def start_script(script: str, *args: str) -> subprocess.Popen[str]:
    """Starts it, with pipes to its stdin and stdout; what it complains about goes to ours."""
    return subprocess.Popen(
        [sys.executable, "-c", dedent(script), *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=child_environment(),
    )


def child_environment() -> dict[str, str]:
    """That of this process, with the folders that children import from."""
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([*_PATHS, *([known] if known else [])])}
