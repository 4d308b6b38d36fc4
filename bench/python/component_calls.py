"""What the component costs in wasmtime for Python, beside the Python package: the table of docs/component.md.

    .cache/venv/bin/python bench/python/component_calls.py

Medians of many rounds, each of which measures everything once, so that a slow stretch of the machine meets all alike.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter_ns

sys.path.append(str(Path(__file__).parents[2] / "bindings" / "component" / "tests"))

from component import COMPONENT, Instance, Resource
from switchgear import CircuitBreakerState
from wasmtime import Engine
from wasmtime.component import Component

ROUNDS = 15
CALLS = 300


def per_call(call: Callable[[], object]) -> float:
    """Microseconds."""
    begin = perf_counter_ns()
    for _ in range(CALLS):
        call()
    return (perf_counter_ns() - begin) / CALLS / 1000


def once(call: Callable[[], object]) -> float:
    """Milliseconds."""
    begin = perf_counter_ns()
    call()
    return (perf_counter_ns() - begin) / 1_000_000


def main() -> None:
    instance = Instance()
    closed = Resource(instance, "local", "breaker", "camel", [])
    opened = Resource(instance, "local", "breaker", "camel", [])
    opened.call("trip", 0, None)
    native = CircuitBreakerState()
    native_permit = native.acquire(0)
    assert native_permit is not None
    permit = closed.call("can-request", 0).decision.payload

    calls: dict[str, Callable[[], object]] = {
        "component: state, the least there is to call": lambda: closed.call("state"),
        "component: a request of a closed circuit": lambda: closed.call("can-request", 0),
        "component: a request of an open circuit": lambda: opened.call("can-request", 0),
        "component: a success": lambda: closed.call("settle", 0, permit, "success"),
        "component: the hints": lambda: closed.call("hints"),
        "component: a snapshot": lambda: closed.call("snapshot", 0),
        "Python package: a request of a closed circuit": lambda: native.acquire(0),
    }
    found: dict[str, list[float]] = {name: [] for name in calls}
    compiling, instantiating = [], []
    for _ in range(ROUNDS):
        for name, call in calls.items():
            found[name].append(per_call(call))
        compiling.append(once(lambda: Component.from_file(Engine(), COMPONENT)))
        instantiating.append(once(Instance))

    bytes_of = COMPONENT.read_bytes()
    print(f"{len(bytes_of) / 1000:6.0f} KB  the component")
    print(f"{len(gzip.compress(bytes_of, 9)) / 1000:6.0f} KB  the component, gzipped")
    print(f"{median(compiling):6.0f} ms  compiling it, once per process")
    print(f"{median(instantiating):6.1f} ms  an instance of it")
    for name, times in found.items():
        print(f"{median(times):6.1f} us  {name}")


if __name__ == "__main__":
    main()
