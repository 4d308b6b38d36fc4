"""Retries by Celery: the example of the guide, run by a real prefork worker with a real broker.

Each test writes the guide's example into a module, with a policy that does not make it wait half a minute, and beside
it a module `worker` that tells what the worker does through a list in Redis.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from celery import Celery
from redis import Redis
from support.child import child_environment
from support.examples import examples_in
from support.servers import start_server, wait_until
from support.web import WebServer
from switchgear import CircuitOpenError
from switchgear.redis import DistributedCircuitBreaker, RedisStore

pytestmark = [
    pytest.mark.once(reason="each test has a worker with its own processes, which take seconds to come and go"),
    pytest.mark.thread_unsafe(reason="each test has a worker with its own processes and signals"),
]

GUIDE = Path(__file__).parents[3] / "docs/python.md"
POLICY = "failure_threshold=5, open_duration_ms=30_000"
LOCAL = f'CircuitBreaker("billing", {POLICY})'
#: What makes the guide's breaker a shared one; its store may take long, for the machine may be busy with other tests.
# All of them are on one host: its clock is exact, and to be measured only as well as a busy machine allows.
STORE = "RedisStore(Redis.from_url(REDIS_URL), timeout_ms=10_000, clock='system')"
SHARED = f'DistributedCircuitBreaker("billing", {STORE}, {POLICY})'
SHARED_IMPORTS = "from redis import Redis\nfrom switchgear.redis import DistributedCircuitBreaker, RedisStore\n"

WORKER = """
import json, os, signal, threading
from celery.signals import task_retry, worker_init, worker_ready
from redis import Redis
from tasks import app, billing, charge_card

notes = Redis.from_url(os.environ["REDIS_URL"])

def note(**what):
    notes.rpush("notes", json.dumps({"pid": os.getpid(), **what}))

@worker_init.connect
def in_the_parent(**_):
    # Ahead of the pool's forks.
    said = []
    for _ in range(int(os.environ["CALLS_OF_THE_PARENT"])):
        try:
            said.append(billing.execute(lambda: charge_card("of-the-parent")))
        except ConnectionError as error:
            said.append(str(error))
    note(what="parent", said=said, state=billing.get_state())

@task_retry.connect
def on_retry(request, reason, **_):
    refusal = reason.exc
    note(what="retry", countdown=reason.when, retry_after=refusal.retry_after, state=refusal.state)

@worker_ready.connect
def on_ready(**_):
    # Nothing outlives the test: its end closes the pipe.
    def watch():
        os.read(0, 1)
        os.killpg(0, signal.SIGKILL)
    threading.Thread(target=watch, daemon=True).start()
    note(what="ready")
"""


@dataclass
class Shop:
    """A worker with its broker and the dependency it calls, and a client that sends it tasks."""

    sender: Celery
    results: Celery
    redis: Redis
    web: WebServer
    process: subprocess.Popen[bytes]

    def send(self, task: str, order: str) -> str:
        """Sends a task, and gives its id."""
        return str(self.sender.send_task(f"tasks.{task}", args=[order]).id)

    def is_done(self, task: str) -> bool:
        """Whether a task has succeeded or failed."""
        return self.results.backend.get_task_meta(task)["status"] in {"SUCCESS", "FAILURE"}

    def outcome(self, task: str) -> object:
        """What a task gave, or the error it failed with, as the result backend builds it anew from its JSON."""
        wait_until(lambda: self.is_done(task))
        return self.results.backend.get_task_meta(task)["result"]

    def note(self) -> dict[str, Any]:
        """The next thing that the worker tells."""
        while True:
            told = self.redis.blpop(["notes"], timeout=1)
            if told is not None:
                assert isinstance(told, (list, tuple))
                return json.loads(told[1])  # type: ignore[no-any-return]  # what the worker wrote
            assert self.process.poll() is None, "the worker is gone"


@pytest.fixture(scope="module")
def guide() -> str:
    (example,) = (example for example in examples_in(GUIDE.read_text()) if "from celery" in example.code)
    assert LOCAL in example.code
    return example.script


def test_a_task_waits_exactly_what_the_refusal_says_and_one_that_retries_failures_stops_at_it(guide: str) -> None:
    tasks = guide.replace(POLICY, 'failure_threshold=3, trip_on="consecutive", open_duration_ms=5_000')
    with shop(tasks, children=1, calls_of_the_parent=2, status=503) as it:
        assert it.note() | {"pid": 0} == {"pid": 0, "what": "parent", "said": ["HTTP 503"] * 2, "state": "closed"}
        assert it.note()["what"] == "ready"

        # The child goes on from the two failures its parent has counted: the third one trips.
        failed = it.outcome(it.send("charge", "first"))
        assert isinstance(failed, ConnectionError)
        assert str(failed) == "HTTP 503"
        it.web.status = 200
        waits, stops = it.send("charge", "second"), it.send("charge_or_fail", "third")
        refusal = it.outcome(stops)
        assert it.web.requests == 3
        assert it.outcome(waits) == "charged second, HTTP 200"
        assert it.web.requests == 4

        retry = it.note()
        assert retry["what"] == "retry"
        assert retry["countdown"] == retry["retry_after"]
        assert 0 < retry["retry_after"] <= 5
        assert retry["pid"] != it.process.pid
        assert it.redis.llen("notes") == 0

    # It came through the JSON of the result backend, built anew from its arguments.
    assert isinstance(refusal, CircuitOpenError)
    assert refusal.circuit == "billing"
    assert refusal.state == "open"
    assert refusal.retry_after_ms is not None
    assert 0 < refusal.retry_after_ms <= 5_000
    assert refusal.last_failure == "HTTP 503"


def test_the_children_share_a_circuit_and_its_probe_whose_parent_used_it_before(guide: str) -> None:
    policy = "failure_threshold=3, open_duration_ms=700, probe_timeout_ms=6_000"
    tasks = SHARED_IMPORTS + guide.replace(LOCAL, SHARED).replace(POLICY, policy)
    with shop(tasks, children=4, calls_of_the_parent=1, status=200) as it:
        said = "charged of-the-parent, HTTP 200"
        assert it.note() | {"pid": 0} == {"pid": 0, "what": "parent", "said": [said], "state": "closed"}
        assert it.note()["what"] == "ready"

        # Somebody else of the fleet trips it; then every child refuses, and each task waits as it is told.
        store = RedisStore(it.redis, timeout_ms=10_000, clock="system")
        operator = DistributedCircuitBreaker(
            "billing", store, failure_threshold=3, open_duration_ms=700, probe_timeout_ms=6_000
        )
        it.web.answering.clear()
        operator.trip()
        charged = [it.send("charge", str(order)) for order in range(8)]

        # One of the tasks that come back is the probe, which the dependency lets wait; the next finds its slot taken.
        retries = [it.note()]
        while retries[-1]["state"] != "half-open":
            retries.append(it.note())
        wait_until(lambda: it.web.requests >= 2)
        assert it.web.requests == 2
        assert operator.get_snapshot().half_open_in_flight == 1
        it.web.answering.set()
        assert [it.outcome(task) for task in charged] == [f"charged {order}, HTTP 200" for order in range(8)]
        assert operator.get_state() == "closed"

        for retry in retries:
            assert retry["what"] == "retry"
            assert retry["countdown"] == retry["retry_after"]
            # Rounded: each process reads the clock for itself.
            assert 0 <= round(retry["retry_after"], 1) <= (0.7 if retry["state"] == "open" else 6)


@contextmanager
def shop(tasks: str, *, children: int, calls_of_the_parent: int, status: int) -> Iterator[Shop]:
    with TemporaryDirectory() as folder, start_server() as broker, WebServer() as web:
        web.status = status
        Path(folder, "tasks.py").write_text(tasks)
        Path(folder, "worker.py").write_text(WORKER)
        env = {
            **child_environment(),
            "REDIS_URL": broker.url,
            "BILLING_URL": web.url,
            "CALLS_OF_THE_PARENT": str(calls_of_the_parent),
        }
        with (
            worker(folder, env, children) as process,
            Redis.from_url(broker.url) as redis,
            # Two clients: who sends with a result backend listens to it from then on, in the background.
            Celery("sender", broker=broker.url) as sender,
            Celery("results", backend=broker.url) as results,
        ):
            yield Shop(sender, results, redis, web, process)
            results.backend.client.close()
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0


@contextmanager
def worker(folder: str, env: dict[str, str], children: int) -> Iterator[subprocess.Popen[bytes]]:
    pool = ["--pool=prefork", f"--concurrency={children}"]
    quiet = ["--loglevel=WARNING", "--without-gossip", "--without-mingle", "--without-heartbeat"]
    with Path(folder, "log").open("wb+") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "celery", "--app=worker", "worker", *pool, *quiet],
            cwd=folder,
            env=env,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process
        except BaseException:
            log.seek(0)
            sys.stderr.write(log.read().decode())
            raise
        finally:
            assert process.stdin is not None
            process.stdin.close()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
