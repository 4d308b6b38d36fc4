"""Measures one task in a process of its own: `python process.py GROUP TASK`; each line on stdin asks for one sample.

Without arguments it prints the names of the tasks, by group, as JSON. A sample, on stdout, is the time of one call in
ns: that of a loop long enough that reading the clock costs nothing.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from inspect import isawaitable
from time import perf_counter_ns
from typing import Any

from tasks import GROUPS

LOOP_NS = 20_000_000


def loop(call: Callable[[], Any], times: int) -> int:
    numbers = range(times)
    begin = perf_counter_ns()
    for _ in numbers:
        call()
    return perf_counter_ns() - begin


async def loop_async(call: Callable[[], Any], times: int) -> int:
    numbers = range(times)
    begin = perf_counter_ns()
    for _ in numbers:
        await call()
    return perf_counter_ns() - begin


async def main(group: str, task: str) -> None:
    call = GROUPS[group][task]()
    first: Any = call()
    is_async = isawaitable(first)
    if is_async:
        await first

    async def measured(times: int) -> int:
        return await loop_async(call, times) if is_async else loop(call, times)

    times = 1000
    while await measured(times) < LOOP_NS:
        times *= 2
    for _ in sys.stdin:
        print(await measured(times) / times, flush=True)


if len(sys.argv) == 1:
    print(json.dumps({group: list(tasks) for group, tasks in GROUPS.items()}))
else:
    asyncio.run(main(*sys.argv[1:]))
