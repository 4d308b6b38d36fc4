"""Runs a program in a process whose wall clock is wrong from its very first call: `skewed.py <program>`.

No user could do that to one process alone; an operator does it to a host. Monotonic clocks are right there.
"""

from __future__ import annotations

import os
import runpy
import sys
import time

SKEW_NS = int(os.environ["SKEW_MS"]) * 1_000_000
right_time_ns = time.time_ns


def time_ns() -> int:
    return right_time_ns() + SKEW_NS


def seconds() -> float:
    return time_ns() / 1e9


time.time_ns = time_ns
time.time = seconds
program = sys.argv.pop(1)
runpy.run_path(program, run_name="__main__")
