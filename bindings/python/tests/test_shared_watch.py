"""What sees to deadlines: whatever happens to it, and whatever meets it at whichever line, what is due is called."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from types import FrameType
from typing import Any

import pytest
import switchgear.redis._watch as watching
from support.servers import wait_until
from support.threads import no_collection
from switchgear.redis._watch import Watch

pytestmark = pytest.mark.thread_unsafe(reason="the tests trace, fork, and set what is the interpreter's")

FAR = 600.0
"""Seconds that are never over."""


@pytest.fixture(autouse=True)
def _no_collection() -> Iterator[None]:
    with no_collection():
        yield


@pytest.fixture
def watch() -> Iterator[Watch]:
    watch = Watch()
    yield watch
    watch.stop()


def begin(watch: Watch, seconds: float = 0.0) -> threading.Event:
    """Begins something that does not end; what is set when that is noticed."""
    noticed = threading.Event()
    watch.await_end(time.monotonic() + seconds, noticed.set)
    return noticed


def asleep(watch: Watch) -> None:
    """Waits until its thread waits for nothing in particular."""
    wait_until(partial(is_over, watch, begin(watch)))


def has_ended(thread: threading.Thread) -> bool:
    return not thread.is_alive()


class Hold:
    """Where a thread stops until it may go on."""

    def __init__(self) -> None:
        self._here, self._go_on = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self._here.set()
        self._go_on.wait()

    def happens_before(self, is_so: Callable[[], bool]) -> bool:
        """Waits until a thread stops here, or until something is so; whether it has stopped."""
        wait_until(lambda: self._here.is_set() or is_so())
        return self._here.is_set()

    def end(self) -> None:
        self._go_on.set()


def is_over(watch: Watch, noticed: threading.Event) -> bool:
    """Whether its thread has nothing to look for any more."""
    return noticed.is_set() and watch._looks_at == math.inf


Traced = Callable[[FrameType, str, Any], Any]


def at_line(number: int, do: Callable[[], None], *files: str) -> tuple[Traced, list[int]]:
    """A trace function that does something before a line, counted from the first one; and the lines so far.

    Of the watch, and of other files that are named.
    """
    lines = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename not in {watching.__file__, *files}:
            return None
        if event == "line":
            lines[0] += 1
            if lines[0] == number:
                do()
        return trace

    return trace, lines


def interrupt() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("is_new", [True, False])
def test_an_interrupt_at_any_line_does_not_end_it(is_new: bool) -> None:
    number = 0
    while True:
        number += 1
        watch = Watch()
        if not is_new:
            asleep(watch)
        due = time.monotonic() + 0.001
        # Not in the standard library, too: its locks do not outlive an interrupt at every line.
        trace, lines = at_line(number, interrupt)

        def run(trace: Traced = trace, watch: Watch = watch, due: float = due) -> None:
            sys.settrace(trace)
            with suppress(KeyboardInterrupt):
                watch.await_end(due, int)

        # In a thread of its own, which an exception at a line of a handler leaves with the one that was handled.
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        noticed = threading.Event()
        # Later than what the interrupted one was to look at.
        watch.await_end(due + 0.001, noticed.set)
        assert noticed.wait(60), number
        watch.stop()
        if lines[0] < number:
            break
    assert number > 5


def test_one_that_begins_while_it_looks_is_noticed() -> None:
    """At each line of its turn, one after the other."""
    number = 0
    is_held = True
    while is_held:
        number += 1
        watch, hold = Watch(), Hold()
        trace, _ = at_line(number, hold)
        threading.settrace(trace)
        try:
            # The thread that it makes is traced, from its first line on.
            first = begin(watch)
        finally:
            threading.settrace(None)
        is_held = hold.happens_before(partial(is_over, watch, first))
        second = begin(watch, 0.001)
        hold.end()
        assert first.wait(60)
        assert second.wait(60), number
        watch.stop()
    assert number > 10


def test_its_thread_is_made_later_where_none_can_be_made_at_first(watch: Watch) -> None:
    before = threading.stack_size(1 << 46)
    try:
        with pytest.raises(RuntimeError, match="can't start new thread"):
            threading.Thread(target=int).start()
        first = begin(watch, 0.001)
    finally:
        threading.stack_size(before)
    second = begin(watch, 0.001)
    assert first.wait(60)
    assert second.wait(60)


def test_what_is_called_and_raises_ends_nothing(watch: Watch) -> None:
    def fail() -> None:
        raise RuntimeError("can't start new thread")

    watch.await_end(time.monotonic(), fail)
    assert begin(watch).wait(60)


def test_one_that_is_due_before_what_it_lingers_for_is_noticed(watch: Watch) -> None:
    assert watch.end(watch.await_end(time.monotonic() + FAR, int))
    begin(watch, FAR)
    for seconds in (0.003, 0.002, 0.001, 0.0):
        assert begin(watch, seconds).wait(60)


def test_many_at_once_are_noticed_each(watch: Watch) -> None:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    missed: list[int] = []

    def run(seed: int) -> None:
        for number in range(100):
            for _ in range(number % 7):
                watch.end(watch.await_end(time.monotonic() + 0.01 * seed, int))
            if not begin(watch, 0.0005 * (number % 3)).wait(60):
                missed.append(number)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert missed == []


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_process_that_is_forked_while_it_is_roused_can_let_go_of_it(watch: Watch) -> None:
    """At each line of who rouses it, one after the other."""
    asleep(watch)
    number = 0
    is_held = True
    while is_held:
        number += 1
        hold = Hold()
        trace, _ = at_line(number, hold, threading.__file__)

        def rouse(trace: Traced = trace) -> None:
            sys.settrace(trace)
            begin(watch)

        thread = threading.Thread(target=rouse)
        thread.start()
        is_held = hold.happens_before(partial(has_ended, thread))
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(20)
            watch.stop()
            os._exit(7)
        _, status = os.waitpid(pid, 0)
        hold.end()
        thread.join()
        assert os.waitstatus_to_exitcode(status) == 7, number
        asleep(watch)
    assert number > 3
