"""A few threads that wait for the store in the place of callers, who wait for them no longer than they want to.

What a caller does himself costs less; these are for what cannot be bounded there: making a connection, following a
cluster's redirections, clients that cannot be told how long to wait.
"""

from __future__ import annotations

import queue
import sys
import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

_T = TypeVar("_T")

#: What takes a result that came late: the result, or the error.
Late = Callable[["_T | None", "BaseException | None"], None]


class OverdueError(Exception):
    """The caller has waited long enough."""


class Carriers:
    """The threads of one store in one process. They keep no process alive, and all but one end when they are idle."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job[object] | None] = queue.SimpleQueue()
        # Reentrant, for the garbage collector may close a guarded generator anywhere, and settle its call.
        self._lock = threading.RLock()
        self._working: set[_Worker] = set()
        self._unclaimed = 0
        self._replace_at = 0.0
        self._replace_after = _STUCK_SECONDS
        self._will_look = False

    def carry(self, do: Callable[[], _T], deadline: float, over: Callable[[bool], None], late: Late[_T]) -> _T:
        """Does something in another thread, and waits for it until the deadline (`time.monotonic()`).

        Raises what it raises; `OverdueError` if it takes too long. Then `over` is called first (with whether the wait
        was interrupted by an exception, which is raised instead), and `late` with what still comes of it, in either
        thread. What has not begun by then is never done: `late` then gets `OverdueError`.
        """
        job = _Job(do)
        try:
            self._add(job)
        except BaseException:
            if not job.void():
                # Interrupted, and a thread is at it already.
                over(True)
                job.abandon(late)
            raise
        interrupted = True
        try:
            in_time = job.wait(deadline)
            interrupted = False
        finally:
            if interrupted:
                over(True)
                job.abandon(late)
        if not in_time:
            over(False)
            job.abandon(late)
            raise OverdueError
        return job.result()

    def post(self, do: Callable[[], None], *, starts: bool = True) -> None:
        """Does something in another thread, for which nobody waits, as soon as one is free.

        Args:
            do: What to do.
            starts: Whether a thread may be started for it. The garbage collector may not: it may interrupt the very
                start of another one.
        """
        job = _Job(do)
        job.abandon(_forget, begun_only=True)
        try:
            self._add(job, starts=starts)
        except BaseException:
            job.void()
            raise

    def ready(self) -> None:
        """Sees to it that there is a thread for what the garbage collector posts."""
        if not self._working:
            with self._lock:
                self._start()

    def end(self) -> None:
        """Nobody posts anything any more."""
        self._jobs.put(None)

    def _add(self, job: _Job[_T], *, starts: bool = True) -> None:
        self._jobs.put(job)  # type: ignore[arg-type]  # a queue of whatever is to be done
        with self._lock:
            self._unclaimed += 1
            if starts:
                self._staff()

    def _staff(self) -> None:
        """Sees to it that there are threads enough for what is waiting; called with the lock."""
        workers = list(self._working)
        if sum(worker.idle for worker in workers) >= self._unclaimed:
            return
        if len(workers) < _MOST or self._write_one_off():
            self._start()
        else:
            self._look_later(workers)

    def _start(self) -> None:
        worker = _Worker(self)
        self._working.add(worker)
        try:
            if sys.is_finalizing():
                # It would wait for ever for a thread that cannot begin.
                raise RuntimeError("no thread can be started, the interpreter ends")
            worker.start()
        except BaseException as error:
            self._working.discard(worker)
            # Those that there are can do it. An interrupt that comes meanwhile is the caller's.
            if not self._working or not isinstance(error, RuntimeError):
                raise

    def _write_one_off(self) -> bool:
        """Gives up a thread that is stuck, and the next one later each time.

        So neither a partition ends all carrying, nor does a client that never returns take thread after thread.
        """
        now = time.monotonic()
        if now < self._replace_at:
            return False
        stuck = next((worker for worker in list(self._working) if now - worker.since > _STUCK_SECONDS), None)
        if stuck is None:
            return False
        self._working.discard(stuck)
        self._replace_at = now + self._replace_after
        self._replace_after = min(2 * self._replace_after, _REPLACE_SECONDS_MAX)
        return True

    def _look_later(self, workers: list[_Worker]) -> None:
        """Looks again when one of them may be given up, for until then it may be that nobody adds anything."""
        if self._will_look:
            return
        since = min(worker.since for worker in workers)
        at = max(self._replace_at, since + _STUCK_SECONDS)
        # A moment later than that, or it would have to look again.
        timer = threading.Timer(max(0.0, at - time.monotonic()) + 0.01, self._look)
        timer.daemon = True
        self._will_look = True
        try:
            timer.start()
        except BaseException as error:
            self._will_look = False
            # Where no thread can be made there is none for this, either. An interrupt is the caller's.
            if not isinstance(error, RuntimeError):
                raise

    def _look(self) -> None:
        with self._lock:
            self._will_look = False
            self._staff()

    def take(self, worker: _Worker) -> _Job[object] | None:
        """The next job; none when there has been nothing to do for a while, or when the thread was written off."""
        with self._lock:
            if worker not in self._working:
                return None
            worker.idle = True
            is_last = len(self._working) == 1
        try:
            return self._claimed(worker, self._jobs.get(timeout=None if is_last else _IDLE_SECONDS))
        except queue.Empty:
            pass
        with self._lock:
            try:
                # Something may have come meanwhile, for which no other thread was made because of this one.
                return self._claimed(worker, self._jobs.get_nowait())
            except queue.Empty:
                self._working.discard(worker)
                return None

    def _claimed(self, worker: _Worker, job: _Job[object] | None) -> _Job[object] | None:
        with self._lock:
            if job is None:
                self._working.discard(worker)
                if self._working:
                    # The others want to know, too.
                    self._jobs.put(None)
                return None
            worker.idle = False
            worker.since = time.monotonic()
            self._unclaimed -= 1
        return job

    def done(self) -> None:
        """A job has ended: nobody is stuck for good."""
        self._replace_after = _STUCK_SECONDS


PATIENCE_SECONDS = 5.0
"""How long to try what nobody waits for."""

#: Threads at most, those aside that were written off.
_MOST = 8
#: Seconds without work after which a thread ends.
_IDLE_SECONDS = 5.0
#: Seconds after which a thread counts as stuck.
_STUCK_SECONDS = 5.0
#: Seconds after which another stuck thread is given up, at most.
_REPLACE_SECONDS_MAX = 300.0


class _Worker(threading.Thread):
    def __init__(self, carriers: Carriers) -> None:
        super().__init__(name="switchgear-store", daemon=True)
        self._carriers = carriers
        #: Whether it waits for work, guarded by the lock of the carriers like `since`: when it began what it is doing.
        self.idle = True
        self.since = time.monotonic()

    def run(self) -> None:
        while (job := self._carriers.take(self)) is not None:
            job.run()
            self._carriers.done()


class _Job(Generic[_T]):
    """Something to do. Whoever takes one of its two tokens first decides: whether it is done, and for whom."""

    def __init__(self, do: Callable[[], _T]) -> None:
        self._do = do
        self._begin = threading.Lock()
        self._finish = threading.Lock()
        self._ready = threading.Lock()
        self._ready.acquire()
        self._late: Late[_T] | None = None
        self._value: _T | None = None
        self._error: BaseException | None = None

    def run(self) -> None:
        if not self._begin.acquire(blocking=False):
            return
        try:
            self._value = self._do()
        except BaseException as error:  # noqa: BLE001 - it is raised where the result is asked for
            self._error = error
        if self._finish.acquire(blocking=False):
            self._ready.release()
        elif self._late is not None:
            self._tell(self._late)

    def wait(self, deadline: float) -> bool:
        """Whether it is done in time."""
        return self._ready.acquire(timeout=min(max(deadline - time.monotonic(), 0.0), threading.TIMEOUT_MAX))

    def result(self) -> _T:
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # there is a value where there is no error

    def abandon(self, late: Late[_T], *, begun_only: bool = False) -> None:
        """Nobody waits for it any more; `late` hears what comes of it."""
        self._late = late
        if not begun_only and self._begin.acquire(blocking=False):
            late(None, OverdueError())
        elif not self._finish.acquire(blocking=False):
            self._tell(late)

    def void(self) -> bool:
        """Sees to it that nobody will do it; not, if somebody has begun."""
        return self._begin.acquire(blocking=False)

    def _tell(self, late: Late[_T]) -> None:
        try:
            late(self._value, self._error)
        except Exception:  # noqa: BLE001 - nobody is left whom it would concern
            return


def _forget(value: object, error: BaseException | None) -> None:
    """Nobody wants to know."""
