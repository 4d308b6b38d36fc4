"""Threads of a test."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager


def in_threads(calls: Sequence[Callable[[], object]]) -> None:
    """Runs each in a thread of its own; what one raises is raised here."""
    errors: list[BaseException] = []

    def run(call: Callable[[], object]) -> None:
        try:
            call()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(call,), daemon=True) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


@contextmanager
def no_collection() -> Iterator[None]:
    """A time in which the garbage collector does not run: it would finish what other tests have left, at any line."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
