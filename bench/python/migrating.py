"""What docs/migrating/ says of pybreaker and circuitbreaker, tried on them: raises at what is not so."""

import asyncio
import threading
import time
from collections.abc import Callable, Iterator

import circuitbreaker
import pybreaker

#: How long circuits are open here, and how long is surely longer, in seconds.
OPEN = 0.02
LONGER = 0.2

#: For how long somebody waits for what is to come: only there to end what hangs.
PATIENT = 60


def fail(error: type[Exception] = ValueError) -> None:
    raise error("down")


def outcome(call: Callable[..., object], *args: object) -> object:
    try:
        return call(*args)
    except Exception as error:  # noqa: BLE001 - which one it is, is the outcome
        return type(error).__name__


def at_once(calls: list[Callable[[Callable[[], None]], object]], wait: float) -> int:
    """How many of so many threads, one for each call, were within at once. Each waits so long for all of them."""
    running, most, lock, all_in = 0, 0, threading.Lock(), threading.Event()

    def body() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
            if running == len(calls):
                all_in.set()
        all_in.wait(wait)
        with lock:
            running -= 1

    started = [threading.Thread(target=outcome, args=(call, body)) for call in calls]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return most


def pybreaker_counts_a_row() -> None:
    breaker = pybreaker.CircuitBreaker(fail_max=2)
    outcome(breaker.call, fail)
    breaker.call(lambda: 1)
    outcome(breaker.call, fail)
    assert breaker.current_state == "closed"


def pybreaker_hides_the_error_that_trips() -> None:
    breaker = pybreaker.CircuitBreaker(fail_max=2)
    assert [outcome(breaker.call, fail) for _ in range(2)] == ["ValueError", "CircuitBreakerError"]
    breaker = pybreaker.CircuitBreaker(fail_max=2, throw_new_error_on_trip=False)
    assert [outcome(breaker.call, fail) for _ in range(3)] == ["ValueError", "ValueError", "CircuitBreakerError"]


def pybreaker_takes_an_excluded_error_for_a_success() -> None:
    breaker = pybreaker.CircuitBreaker(fail_max=2, reset_timeout=OPEN, exclude=[KeyError])
    for error in (ValueError, KeyError, ValueError):
        outcome(breaker.call, fail, error)
    assert breaker.current_state == "closed"
    outcome(breaker.call, fail)
    assert breaker.current_state == "open"
    time.sleep(LONGER)
    assert outcome(breaker.call, fail, KeyError) == "KeyError"
    assert breaker.current_state == "closed"


def pybreaker_lets_one_thread_through_at_a_time() -> None:
    breaker = pybreaker.CircuitBreaker()
    assert at_once([breaker.call] * 4, wait=LONGER) == 1


def pybreaker_probes_once_for_each_process() -> None:
    shared = pybreaker.CircuitMemoryStorage(pybreaker.STATE_CLOSED)
    processes = [pybreaker.CircuitBreaker(fail_max=1, reset_timeout=OPEN, state_storage=shared) for _ in range(2)]
    outcome(processes[0].call, fail)
    time.sleep(LONGER)
    assert at_once([process.call for process in processes], wait=PATIENT) == 2


def pybreaker_does_not_guard_coroutines() -> None:
    breaker = pybreaker.CircuitBreaker(fail_max=1)

    @breaker
    async def call() -> None:
        fail()

    assert outcome(asyncio.run, call()) == "ValueError"
    assert breaker.current_state == "closed"


def circuitbreaker_counts_a_row() -> None:
    breaker = circuitbreaker.CircuitBreaker(failure_threshold=2)
    outcome(breaker(fail))
    breaker(lambda: 1)()
    outcome(breaker(fail))
    assert breaker.state == "closed"


def circuitbreaker_takes_other_errors_for_a_success() -> None:
    breaker = circuitbreaker.CircuitBreaker(failure_threshold=1, recovery_timeout=OPEN, expected_exception=ValueError)
    outcome(breaker(fail))
    time.sleep(LONGER)
    assert breaker.state == "half_open"
    assert outcome(breaker(lambda: fail(KeyError))) == "KeyError"
    assert breaker.state == "closed"


def circuitbreaker_lets_any_number_of_probes_through() -> None:
    breaker = circuitbreaker.CircuitBreaker(failure_threshold=1, recovery_timeout=OPEN)
    outcome(breaker(fail))
    time.sleep(LONGER)
    assert at_once([breaker(lambda body: body())] * 4, wait=PATIENT) == 4


def circuitbreaker_is_closed_by_a_success_of_before() -> None:
    breaker = circuitbreaker.CircuitBreaker(failure_threshold=1)
    begun, ended = threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        ended.wait()

    early = threading.Thread(target=breaker(slow))
    early.start()
    begun.wait()
    outcome(breaker(fail))
    assert breaker.state == "open"
    ended.set()
    early.join()
    assert breaker.state == "closed"


def circuitbreaker_refuses_no_with() -> None:
    breaker = circuitbreaker.CircuitBreaker(failure_threshold=1)
    outcome(breaker(fail))
    with breaker:
        pass
    assert breaker.state == "closed"


def circuitbreaker_falls_back_where_it_refuses() -> None:
    breaker = circuitbreaker.CircuitBreaker(failure_threshold=1, fallback_function=lambda order: f"queued {order}")
    charge = breaker(lambda order: fail())
    assert [outcome(charge, 1), outcome(charge, 2)] == ["ValueError", "queued 2"]


def both_count_a_generator_that_raises() -> None:
    def steps() -> Iterator[int]:
        yield 1
        fail()

    one = pybreaker.CircuitBreaker(fail_max=1)
    other = circuitbreaker.CircuitBreaker(failure_threshold=1)
    outcome(lambda: list(one(steps)()))
    outcome(lambda: list(other(steps)()))
    assert (one.current_state, other.state) == ("open", "open")


for name, claim in list(globals().items()):
    if name.startswith(("pybreaker_", "circuitbreaker_", "both_")):
        claim()
        print(f"so it is  {name.replace('_', ' ')}")
