"""Measures one task in a process of its own: `python process.py MODULE GROUP TASK`.

Each line on stdin asks for one sample. With the module alone it prints the names of its tasks, by group, as JSON. A
sample, on stdout, is the time of one call in ns: that of a loop, of as many calls as the line says, or of so many that
reading the clock costs nothing.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from inspect import isawaitable
from time import perf_counter_ns
from typing import Any

LOOP_NS = 20_000_000

# It needs Python 3.11.
HAS_INTERLOCK = find_spec("interlock") is not None


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


async def loop_many(call: Callable[[], Any], times: int, width: int) -> int:
    """The same with `width` calls in flight: each that ends makes room for another."""
    numbers = iter(range(times))

    async def caller(numbers: Iterator[int]) -> None:
        for _ in numbers:
            await call()

    begin = perf_counter_ns()
    await asyncio.gather(*(caller(numbers) for _ in range(min(width, times))))
    return perf_counter_ns() - begin


async def main(module: str, group: str, task: str) -> None:
    tasks = import_module(module)
    made = tasks.GROUPS[group][task]()
    call = await made if isawaitable(made) else made
    width = getattr(tasks, "IN_FLIGHT", {}).get(group, 1)
    first: Any = call()
    is_async = isawaitable(first)
    if is_async:
        await first

    async def measured(times: int) -> int:
        if not is_async:
            return loop(call, times)
        return await (loop_async(call, times) if width == 1 else loop_many(call, times, width))

    enough = 0
    for line in sys.stdin:
        times = int(line.strip() or enough)
        if times == 0:
            times = 1000
            while await measured(times) < LOOP_NS:
                times *= 2
            enough = times
        print(await measured(times) / times, flush=True)


def names_of(module: str) -> dict[str, list[str]]:
    groups = import_module(module).GROUPS.items()
    return {group: [name for name in tasks if HAS_INTERLOCK or "interlock" not in name] for group, tasks in groups}


if len(sys.argv) == 2:
    print(json.dumps(names_of(sys.argv[1])))
else:
    asyncio.run(main(*sys.argv[1:]))
