"""The users' scenarios about lifecycle, threads, processes and memory."""

from __future__ import annotations

import copy
import json
import pickle
import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest
from support.child import Ran, run_script
from support.threads import in_threads
from switchgear import (
    CallTimeoutError,
    CircuitBreaker,
    CircuitOpenError,
    ConfigError,
    InvalidNameError,
    InvalidTimeError,
    StoreError,
    StoreUnavailableError,
    SwitchgearError,
)

own_process = pytest.mark.thread_unsafe(reason="it starts a process of its own: four at once show no more")


@own_process
def test_scenario_39_ten_thousand_refusals_fresh_with_a_traceback_of_constant_length_in_flat_memory() -> None:
    ran = run_script(REFUSALS)
    assert (ran.code, ran.stderr) == (0, "")
    found = json.loads(ran.stdout)
    assert found["fresh"] == 10_000
    for how, lengths in found["lengths"].items():
        assert len(lengths) == 1, how
    for how, grown in found["grown"].items():
        assert grown < 16_384, f"{how}: {grown} bytes"


REFUSALS = """
    import asyncio, gc, json, tracemalloc
    from switchgear import CircuitBreaker, CircuitOpenError

    breaker = CircuitBreaker("billing", failure_threshold=1, open_duration_ms=3_600_000)
    breaker.record_failure(ConnectionError("ECONNREFUSED"))

    def fn():
        raise AssertionError("it ran")

    async def fn_async():
        raise AssertionError("it ran")

    def entered():
        with breaker:
            fn()

    decorated, decorated_async = breaker(fn), breaker(fn_async)
    WAYS = {
        "execute": lambda: breaker.execute(fn),
        "decorator": decorated,
        "with": entered,
        "acquire": breaker.acquire,
    }

    def refusal(call):
        try:
            call()
        except CircuitOpenError as error:
            return error

    async def refusal_async(call):
        try:
            await call()
        except CircuitOpenError as error:
            return error

    def length(error):
        count, step = 0, error.__traceback__
        while step is not None:
            count, step = count + 1, step.tb_next
        return count

    kept = [refusal(WAYS["execute"]) for _ in range(10_000)]
    fresh = len(set(map(id, kept)))
    assert all(error.__context__ is None for error in kept)
    del kept

    async def main():
        lengths, grown = {}, {}
        for how, call in WAYS.items():
            lengths[how] = sorted({length(refusal(call)) for _ in range(100)})
            grown[how] = 0
        for how, call in {"await": decorated_async, "execute_async": lambda: breaker.execute_async(fn_async)}.items():
            lengths[how] = sorted([*{length(await refusal_async(call)) for _ in range(100)}])
        gc.collect()
        tracemalloc.start()
        for how, call in WAYS.items():
            for warm in (True, False):
                gc.collect()
                before, _ = tracemalloc.get_traced_memory()
                for _ in range(10_000 if how == "execute" else 1000):
                    refusal(call)
                gc.collect()
                grown[how] = tracemalloc.get_traced_memory()[0] - before
        return lengths, grown

    lengths, grown = asyncio.run(main())
    print(json.dumps({"fresh": fresh, "lengths": lengths, "grown": grown}))
"""


@own_process
def test_scenario_39_calls_that_go_through_leave_nothing_behind() -> None:
    ran = run_script("""
        import gc, tracemalloc
        from switchgear import CircuitBreaker

        breaker = CircuitBreaker("c", failure_threshold=1_000_000, window_ms=1, half_open_max_calls=2)

        def fails():
            raise OSError("ECONNREFUSED")

        def calls():
            for _ in range(3000):
                breaker.execute(int)
                with breaker as permit:
                    permit.record_success()
                breaker.acquire().release()
                try:
                    breaker.execute(fails)
                except OSError:
                    pass

        calls()
        gc.collect()
        tracemalloc.start()
        calls()
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        calls()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        assert grown < 16_384, grown
    """)
    assert ran == Ran(0, "", "")


@own_process
@pytest.mark.once(reason="a million keys take their time, and the group is native")
def test_scenario_40_a_million_keys_through_a_group_of_ten_thousand_keep_ten_thousand() -> None:
    ran = run_script(KEYS, "1000000", "10000")
    assert ran == Ran(0, "", "")


KEYS = """
    import gc, resource, sys
    from switchgear import CircuitBreakerGroup

    keys, places = map(int, sys.argv[1:])
    group = CircuitBreakerGroup(max_keys=places, failure_threshold=1, open_duration_ms=3_600_000)
    tripped = group.for_key("tripped")
    tripped.record_failure()

    def through(numbers):
        for number in numbers:
            group.for_key(f"key {number}")

    through(range(5 * places))
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    through(range(5 * places, keys))
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert len(group) == places == len(list(group))
    # The one that is open went after none of the closed ones, and is still itself.
    assert group.for_key("tripped") is tripped
    assert tripped.get_state() == "open"
    # In KB: far less than what went would take, were it still there (more than 1 KB each).
    assert grown < keys // 100 + 2048, grown
"""


@own_process
def test_scenario_41_the_process_exits_by_itself() -> None:
    ran = run_script("""
        import asyncio, threading
        from switchgear import CircuitBreaker, CircuitBreakerGroup, CircuitOpenError

        policy = dict(failure_threshold=1, open_duration_ms=3_600_000, timeout_ms=3_600_000)
        breaker = CircuitBreaker("c", **policy)
        group = CircuitBreakerGroup(**policy)
        breaker.on("state_change", lambda change: None)

        async def main():
            await group.for_key("a").execute_async(lambda: asyncio.sleep(0))
            unfinished = asyncio.ensure_future(group.for_key("b").execute_async(asyncio.Event().wait))
            await asyncio.sleep(0)
            assert not unfinished.done()

        asyncio.run(main())

        @breaker
        def numbers():
            yield 1
            yield 2

        steps = numbers()
        next(steps)
        breaker.record_failure()
        try:
            breaker.execute(int)
        except CircuitOpenError:
            print(breaker.get_state(), threading.active_count())
    """)
    assert ran == Ran(0, "open 1\n", "")


@own_process
def test_scenario_41_a_refusal_nobody_catches_ends_the_program_with_its_text() -> None:
    ran = run_script("""
        from switchgear import CircuitBreaker

        breaker = CircuitBreaker("billing")
        breaker.force_open()
        breaker.execute(int)
    """)
    assert ran.code == 1
    assert ran.stderr.splitlines()[-1] == "switchgear.CircuitOpenError: circuit `billing` is open (forced)"


@pytest.mark.parametrize("surface", ["execute", "decorator", "with", "generator", "fallback", "is_failure_result"])
def test_scenario_42_eight_threads_are_in_the_call_at_the_same_time(surface: str) -> None:
    # All of them meet inside: were a lock held across the call, they would wait until the barrier breaks.
    together = threading.Barrier(8, timeout=60)

    def meet(_: object = None) -> bool:
        together.wait()
        return False

    breaker = CircuitBreaker("c", is_failure_result=meet if surface == "is_failure_result" else None)

    def entered() -> None:
        with breaker:
            meet()

    @breaker
    def generator() -> Iterator[int]:
        meet()
        yield 1

    calls = {
        "execute": lambda: breaker.execute(meet),
        "decorator": breaker(meet),
        "with": entered,
        "generator": lambda: list(generator()),
        "fallback": lambda: breaker.execute(int, fallback=meet),
        "is_failure_result": lambda: breaker.execute(int),
    }
    if surface == "fallback":
        breaker.force_open()
    in_threads([calls[surface]] * 8)
    assert breaker.get_snapshot().failures_in_window == 0


def test_scenario_42_listeners_are_told_in_order_whichever_thread_tells_them() -> None:
    breaker = CircuitBreaker("c", failure_threshold=1, open_duration_ms=1)
    epochs: list[int] = []
    inside = threading.Lock()

    def listen(change: object) -> None:
        # One at a time, and in the order of the transitions.
        assert inside.acquire(blocking=False)
        epochs.append(breaker.get_snapshot().epoch)
        inside.release()

    changes: list[tuple[str, str]] = []
    breaker.on("state_change", lambda change: changes.append((change.from_state, change.to_state)))
    breaker.on("state_change", listen)

    def turn() -> None:
        for _ in range(200):
            breaker.trip()
            breaker.reset()

    in_threads([turn] * 4)
    # Each begins where the one before ended.
    assert all(before[1] == after[0] for before, after in pairwise(changes))
    assert len(changes) == len(epochs)
    assert changes[-1][1] == breaker.get_state() == "closed"


@own_process
def test_scenario_42_a_fork_while_calls_are_in_flight_leaves_the_child_a_working_breaker() -> None:
    ran = run_script(
        """
        import os, sys, threading
        from switchgear import CircuitBreaker, CircuitBreakerGroup

        breaker = CircuitBreaker("c", failure_threshold=3, open_duration_ms=3_600_000)
        group = CircuitBreakerGroup(failure_threshold=3)
        heard = []
        breaker.on("state_change", lambda change: heard.append(change.to_state))
        begun, end, stop = threading.Barrier(2), threading.Event(), threading.Event()

        def long():
            begun.wait()
            end.wait()

        def fails():
            raise OSError("ECONNREFUSED")

        # One call in flight in another thread, and others that go in and out of the breaker all the time.
        threads = [threading.Thread(target=lambda: breaker.execute(long))]

        def busy():
            while not stop.is_set():
                breaker.execute(int)
                breaker.record_success()
                breaker.acquire().release()
                group.for_key("a").execute(int)

        threads += [threading.Thread(target=busy) for _ in range(2)]
        for thread in threads:
            thread.start()
        begun.wait()

        def child():
            for _ in range(3):
                try:
                    breaker.execute(fails)
                except OSError:
                    pass
            group.for_key("b").execute(int)
            assert breaker.get_state() == "open" and heard == ["open"], (breaker.get_snapshot(), heard)
            breaker.reset()
            assert breaker.execute(lambda: "ok") == "ok"

        codes = []
        for _ in range(50):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    child()
                    code = 0
                finally:
                    sys.stderr.flush()
                    os._exit(code)
            codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        stop.set()
        end.set()
        for thread in threads:
            thread.join()
        assert codes == [0] * 50, codes
        # What the children did is theirs.
        assert breaker.get_state() == "closed" and heard == []
    """,
        flags=("-W", "ignore::DeprecationWarning"),
    )
    assert ran == Ran(0, "", "")


def test_scenario_42_a_spawned_process_makes_its_own_breaker_and_a_copy_of_ours_is_refused() -> None:
    breaker = CircuitBreaker("c")
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="CircuitBreaker"):
            attempt(breaker)


@own_process
@pytest.mark.parametrize("signalled", ["between instructions", "by a timer"])
def test_a_signal_handler_may_use_the_breaker_that_it_interrupted(signalled: str) -> None:
    ran = run_script(SIGNALS, signalled)
    assert (ran.code, ran.stderr) == (0, "")
    handled = int(ran.stdout)
    assert handled > 100, f"only {handled} signals came, so nothing was shown"


SIGNALS = """
    import faulthandler, itertools, signal, sys
    from switchgear import CircuitBreaker, CircuitBreakerGroup, CircuitOpenError

    faulthandler.dump_traceback_later(120, exit=True)
    clock = itertools.count(1_000_000).__next__
    breaker = CircuitBreaker("c", failure_threshold=2, open_duration_ms=5, clock=clock)
    group = CircuitBreakerGroup(failure_threshold=2, max_keys=3)
    heard = []
    for event in ("state_change", "success", "failure", "refused"):
        breaker.on(event, lambda event: heard.append(event))

    def works():
        return "ok"

    keys = itertools.cycle("abcde")

    def fails():
        raise OSError("ECONNREFUSED")

    def use():
        for call in (lambda: breaker.execute(works), lambda: breaker.execute(fails), breaker(works), breaker.acquire):
            try:
                call()
            except (OSError, CircuitOpenError):
                pass
        try:
            with breaker as permit:
                permit.record_failure()
        except CircuitOpenError:
            pass
        breaker.on("success", heard.append)()
        breaker.get_snapshot()
        group.for_key(next(keys)).execute(int)
        group.delete("a")
        list(group)
        breaker.trip()
        breaker.reset()

    handled = inside = 0

    def handler(*_):
        global handled, inside
        handled += 1
        # A machine that needs longer for this than the timer runs would never get out again.
        if inside < 3:
            inside += 1
            use()
            inside -= 1

    signal.signal(signal.SIGALRM, handler)
    if sys.argv[1] == "by a timer":
        signal.setitimer(signal.ITIMER_REAL, 0.0003, 0.0003)
        times = 0
        while times < 3000 or handled <= 100:
            use()
            times += 1
        signal.setitimer(signal.ITIMER_REAL, 0)
    else:
        # At each instruction of the facade, one after the other.
        busy = False

        def trace(frame, event, arg):
            global busy
            if "switchgear" not in frame.f_code.co_filename:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode" and not busy:
                busy = True
                signal.raise_signal(signal.SIGALRM)
                busy = False
            return trace

        sys.settrace(trace)
        use()
        sys.settrace(None)
    breaker.reset()
    assert breaker.execute(lambda: "ok") == "ok"
    print(handled)
"""


@pytest.mark.parametrize(
    ("error", "fields"),
    [
        (
            CircuitOpenError("billing", "half-open", 12_345, "ECONNREFUSED"),
            {"circuit": "billing", "state": "half-open", "retry_after_ms": 12_345, "last_failure": "ECONNREFUSED"},
        ),
        (CircuitOpenError("billing", "open"), {"circuit": "billing", "retry_after_ms": None, "last_failure": None}),
        (CallTimeoutError("billing", 250), {"circuit": "billing", "timeout_ms": 250}),
        (ConfigError("`window_ms` must be more", "window_ms", "0"), {"field": "window_ms", "value": "0"}),
        (InvalidNameError("no name"), {"code": "name_invalid"}),
        (InvalidTimeError("no time"), {"code": "time_invalid"}),
        (StoreError("gone"), {"code": "store_error"}),
        (StoreUnavailableError("billing", "gone"), {"circuit": "billing", "reason": "gone"}),
    ],
    ids=["open", "open-unknown", "timeout", "config", "name", "time", "store", "unavailable"],
)
def test_scenario_44_errors_survive_pickle_and_copies_with_their_fields(
    error: SwitchgearError, fields: dict[str, object]
) -> None:
    vars(error)["note"] = "kept"
    pickled = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]
    for rebuilt in [*pickled, copy.copy(error), copy.deepcopy(error)]:
        assert type(rebuilt) is type(error)
        assert str(rebuilt) == str(error)
        assert (rebuilt.args, rebuilt.code, vars(rebuilt)["note"]) == (error.args, error.code, "kept")
        for field, value in fields.items():
            assert getattr(rebuilt, field) == value
    assert str(type(error)(*error.args)) == str(error)


@own_process
def test_scenario_44_the_refusal_of_a_real_circuit_crosses_processes() -> None:
    breaker = CircuitBreaker("billing", failure_threshold=1, open_duration_ms=10_000, clock=lambda: 1000)
    breaker.record_failure(ConnectionError("ECONNREFUSED"))
    with pytest.raises(CircuitOpenError) as raised:
        breaker.execute(int)
    script = """
        import pickle, sys
        error = pickle.loads(bytes.fromhex(sys.argv[1]))
        print(error, error.circuit, error.retry_after, error.last_failure, error.headers, error.status_code)
    """
    ran = run_script(script, pickle.dumps(raised.value).hex())
    text = "circuit `billing` is open, retry in 10.0 s (last failure: ECONNREFUSED)"
    assert ran == Ran(0, f"{text} billing 10.0 ECONNREFUSED {{'Retry-After': '10'}} 503\n", "")
