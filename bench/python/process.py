"""Measures one task in a process of its own: `python process.py MODULE GROUP TASK`.

Each line on stdin asks for one sample. With the module alone it prints the names of its tasks, by group, as JSON. A
sample, on stdout, is the time of one call in ns: of a loop of as many calls as the line says, or of so many that
reading the clock costs nothing; where one call is made at a time, the median of five loops of a fifth of them.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from inspect import isawaitable
from statistics import median
from time import perf_counter_ns
from typing import Any

LOOP_NS = 20_000_000
LOOPS = 5

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


def take_cores() -> None:
    """Keeps this process and the server that it asks on cores of their own, where there are two.

    Whether they share one the scheduler decides by chance, for each process anew; a round trip takes half as long then.
    """
    server, cores = os.environ.get("BENCH_SERVER_PID"), sorted(os.sched_getaffinity(0))
    if server is not None and len(cores) > 1:
        os.sched_setaffinity(int(server), {cores[-1]})
        os.sched_setaffinity(0, {cores[0]})


async def main(module: str, group: str, task: str) -> None:
    take_cores()
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
        loops = LOOPS if width == 1 else 1
        each = max(1, times // loops)
        print(median([await measured(each) / each for _ in range(loops)]), flush=True)


def names_of(module: str) -> dict[str, list[str]]:
    groups = import_module(module).GROUPS.items()
    return {group: [name for name in tasks if HAS_INTERLOCK or "interlock" not in name] for group, tasks in groups}


if len(sys.argv) == 2:
    print(json.dumps(names_of(sys.argv[1])))
else:
    asyncio.run(main(*sys.argv[1:]))
