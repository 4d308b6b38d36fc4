"""A process ends well whatever its daemon threads are at."""

from __future__ import annotations

import pytest
from support.child import run_script

PRELUDE = """
import sys, threading, time
from switchgear import CircuitBreaker

entered = threading.Event()

def slowly(answer=None):
    entered.set()
    time.sleep(0.005)
    return answer

class AtTheEnd:
    def __del__(self):
        # Takes a moment, as the end of real programs does: the thread wakes meanwhile.
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            pass

at_the_end = AtTheEnd()
"""

EPILOGUE = """
threading.Thread(target=body, daemon=True).start()
entered.wait()
"""


@pytest.mark.parametrize(
    "body",
    [
        """
def body():
    breaker = CircuitBreaker("c")
    breaker.on("success", lambda event: slowly())
    while True:
        breaker.execute(lambda: 1)
""",
        """
def body():
    breaker = CircuitBreaker("c", slow_call_ms=1, clock=lambda: slowly(5))
    while True:
        with breaker:
            pass
""",
        """
def body():
    breaker = CircuitBreaker("c")
    breaker.on("success", lambda event: slowly())
    while True:
        breaker.acquire().record_success()
""",
        """
def body():
    from switchgear.redis import DistributedCircuitBreaker, RedisStore
    class Slow:
        def command(self, args, key):
            return slowly([None] * 5)
    breaker = DistributedCircuitBreaker("c", RedisStore(Slow(), timeout_ms=60_000), on_store_failure="fail-open")
    while True:
        with breaker:
            pass
""",
    ],
    ids=["a listener", "a clock", "a permit", "a store"],
)
def test_scenario_41_a_daemon_thread_in_the_middle_of_a_call_does_not_abort_the_process(body: str) -> None:
    ran = run_script(PRELUDE + body + EPILOGUE)
    assert (ran.code, ran.stderr) == (0, "")
