"""All surfaces take the same decisions for the same outcomes.

Random timelines, each told through every surface, on a breaker of its own, and on the bare state machine as the model:
calls one after the other, and calls that overlap, so that outcomes come late and out of order.
"""

from __future__ import annotations

import asyncio
import io
import os
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import httpx
import pytest
import requests
import requests.adapters
import switchgear.httpx
import switchgear.requests
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.clock import ManualClock
from support.held import AsyncBody, Begin, Body, CountsError, End, IgnoredError, Outcome, in_task, in_thread, raise_for
from switchgear import CircuitBreaker, CircuitBreakerGroup, CircuitBreakerState, CircuitOpenError, Permit, Snapshot

Policy: TypeAlias = "dict[str, Any]"
Loop: TypeAlias = asyncio.AbstractEventLoop

KEY = "http://dependency.test"
URL = f"{KEY}/"

# The suite runs often; SWITCHGEAR_EXAMPLES=1000 looks further.
EXAMPLES = int(os.environ.get("SWITCHGEAR_EXAMPLES", "15"))


@dataclass(frozen=True)
class Step:
    """What happens at a time that may stand still or step back.

    `call` runs to its end at once; `begin` leaves a call in flight, `end` ends one of those; the rest is for operators.
    """

    advance_ms: int
    what: str
    outcome: Outcome
    which: int


@dataclass(frozen=True)
class Surface:
    """One way to make calls: the breaker that it asks, and how a call begins."""

    breaker: CircuitBreaker
    begin: Begin


@dataclass(frozen=True)
class Way:
    """A surface to be made. Without permits of its own it may only make one call after the other."""

    make: Callable[[Policy, Loop], Surface]
    overlaps: bool = True


def threaded(call: Callable[[CircuitBreaker, Body], object]) -> Way:
    """A surface whose call returns when the body ends."""

    def make(policy: Policy, _: Loop) -> Surface:
        breaker = CircuitBreaker("c", **policy)
        return Surface(breaker, in_thread(partial(call, breaker), CircuitOpenError))

    return Way(make)


def awaited(call: Callable[[CircuitBreaker, AsyncBody], Any]) -> Way:
    """A surface whose call is awaited."""

    def make(policy: Policy, loop: Loop) -> Surface:
        breaker = CircuitBreaker("c", **policy)
        return Surface(breaker, in_task(loop, partial(call, breaker), CircuitOpenError))

    return Way(make)


def stepwise(begin: Callable[[CircuitBreaker], End], *, overlaps: bool = True) -> Way:
    """A surface whose call is begun and ended by calls of its own."""

    def make(policy: Policy, _: Loop) -> Surface:
        breaker = CircuitBreaker("c", **policy)

        def begin_or_none() -> End | None:
            try:
                return begin(breaker)
            except CircuitOpenError:
                return None

        return Surface(breaker, begin_or_none)

    return Way(make, overlaps)


# Sync calls.


def with_block(breaker: CircuitBreaker, body: Body) -> None:
    with breaker:
        body()


def with_block_and_permit(breaker: CircuitBreaker, body: Body) -> None:
    with breaker as permit:
        try:
            body()
        except CountsError:
            permit.record_failure()
        except IgnoredError:
            permit.release()
        else:
            permit.record_success()


def with_acquired(breaker: CircuitBreaker, body: Body) -> None:
    with breaker.acquire():
        body()


def with_block_in_a_generator(breaker: CircuitBreaker) -> End:
    """Many such blocks are open in one thread, and end in any order."""

    def block() -> Generator[None, Outcome, None]:
        with breaker:
            raise_for((yield))

    generator = block()
    next(generator)

    def end(outcome: Outcome) -> None:
        with suppress(StopIteration, CountsError, IgnoredError):
            generator.send(outcome)

    return end


def decorated_method(breaker: CircuitBreaker, body: Body) -> None:
    class Client:
        @breaker
        def fetch(self) -> None:
            body()

    Client().fetch()


def interrupted(breaker: CircuitBreaker, body: Body) -> None:
    """What is no `Exception` is neutral by itself."""

    def interrupted_body() -> None:
        try:
            body()
        except IgnoredError:
            raise KeyboardInterrupt from None

    with suppress(KeyboardInterrupt):
        breaker.execute(interrupted_body)


# Permits and the triad.


def settle(permit: Permit, outcome: Outcome) -> None:
    if outcome == "success":
        permit.record_success()
    elif outcome == "failure":
        permit.record_failure()
    else:
        permit.release()


def acquire(breaker: CircuitBreaker) -> End:
    return partial(settle, breaker.acquire())


def acquire_and_classify(breaker: CircuitBreaker) -> End:
    permit = breaker.acquire()

    def end(outcome: Outcome) -> None:
        if outcome == "success":
            permit.record_success()
        else:
            permit.record_failure(CountsError() if outcome == "failure" else IgnoredError())

    return end


def triad(breaker: CircuitBreaker) -> End:
    if not breaker.can_execute():
        raise CircuitOpenError(breaker.name, "open")

    def end(outcome: Outcome) -> None:
        if outcome == "success":
            breaker.record_success()
        elif outcome == "failure":
            breaker.record_failure(CountsError())
        else:
            breaker.release()

    return end


# Generators.


def generator_of(make: Callable[[CircuitBreaker, Callable[[], Generator[int, Outcome, str]]], Any]) -> Way:
    def begin(breaker: CircuitBreaker) -> End:
        def steps() -> Generator[int, Outcome, str]:
            raise_for((yield 1))
            return "done"

        generator = make(breaker, steps)
        assert next(generator) == 1

        def end(outcome: Outcome) -> None:
            try:
                generator.send(outcome)
            except StopIteration as stop:
                assert stop.value == "done"  # noqa: PT017 - that it is raised at all is what happens on success
            except (CountsError, IgnoredError):
                pass

        return end

    return stepwise(begin)


def closed_generator(breaker: CircuitBreaker) -> End:
    """IgnoredError by being closed, a failure by an exception thrown in from outside."""

    @breaker
    def steps() -> Generator[int, None, None]:
        yield 1

    generator = steps()
    next(generator)

    def end(outcome: Outcome) -> None:
        if outcome == "neutral":
            generator.close()
            return
        try:
            if outcome == "failure":
                generator.throw(CountsError())
            else:
                next(generator)
        except (StopIteration, CountsError):
            pass

    return end


async def async_generator(breaker: CircuitBreaker, body: AsyncBody) -> None:
    @breaker
    async def steps() -> AsyncGenerator[int, None]:
        yield 1
        await body()

    async for number in steps():
        assert number == 1


async def closed_async_generator(breaker: CircuitBreaker, body: AsyncBody) -> None:
    """IgnoredError by being closed."""

    @breaker
    async def steps() -> AsyncGenerator[int, None]:
        try:
            await body()
        except IgnoredError:
            yield 1

    generator = steps()
    async for _ in generator:
        await generator.aclose()
        raise IgnoredError


# asyncio.


async def async_with_block(breaker: CircuitBreaker, body: AsyncBody) -> None:
    async with breaker:
        await body()


async def cancelled(breaker: CircuitBreaker, body: AsyncBody) -> None:
    """A cancelled call is neutral by itself."""

    async def cancelled_body() -> None:
        try:
            await body()
        except IgnoredError:
            raise asyncio.CancelledError from None

    with suppress(asyncio.CancelledError):
        await breaker.execute_async(cancelled_body)


# HTTP.


def answered(outcome: Outcome) -> int:
    """The status of an answer, or an error as the client raises it."""
    if outcome == "neutral":
        raise httpx.UnsupportedProtocol("not ours")
    return 503 if outcome == "failure" else 200


def httpx_transport(policy: Policy, _: Loop) -> Surface:
    def call(body: Body) -> None:
        def handle(request: httpx.Request) -> httpx.Response:
            return httpx.Response(answered(outcome_of(body)), stream=httpx.ByteStream(b"answer"))

        transport = switchgear.httpx.BreakerTransport(httpx.MockTransport(handle), group=group)
        with httpx.Client(transport=transport) as client, suppress(httpx.UnsupportedProtocol):
            client.get(URL)

    group = CircuitBreakerGroup(**policy)
    return Surface(group.for_key(KEY), in_thread(call, CircuitOpenError))


def async_httpx_transport(policy: Policy, loop: Loop) -> Surface:
    async def call(body: AsyncBody) -> None:
        async def handle(request: httpx.Request) -> httpx.Response:
            return httpx.Response(answered(await outcome_of_async(body)), stream=httpx.ByteStream(b"answer"))

        transport = switchgear.httpx.AsyncBreakerTransport(httpx.MockTransport(handle), group=group)
        async with httpx.AsyncClient(transport=transport) as client:
            with suppress(httpx.UnsupportedProtocol):
                await client.get(URL)

    group = CircuitBreakerGroup(**policy)
    return Surface(group.for_key(KEY), in_task(loop, call, CircuitOpenError))


def requests_adapter(policy: Policy, _: Loop) -> Surface:
    class Answering(requests.adapters.BaseAdapter):
        def __init__(self, body: Body) -> None:
            super().__init__()
            self.body = body

        def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
            outcome = outcome_of(self.body)
            if outcome == "neutral":
                raise requests.exceptions.InvalidURL("not ours")
            response = requests.Response()
            response.status_code = answered(outcome)
            response.raw = io.BytesIO(b"answer")
            response.url = URL
            response.request = request
            return response

        def close(self) -> None: ...

    def call(body: Body) -> None:
        with requests.Session() as session:
            session.mount("http://", switchgear.requests.BreakerAdapter(Answering(body), group=group))
            with suppress(requests.exceptions.InvalidURL):
                session.get(URL)

    group = CircuitBreakerGroup(**policy)
    return Surface(group.for_key(KEY), in_thread(call, CircuitOpenError))


def outcome_of(body: Body) -> Outcome:
    try:
        body()
    except CountsError:
        return "failure"
    except IgnoredError:
        return "neutral"
    return "success"


async def outcome_of_async(body: AsyncBody) -> Outcome:
    try:
        await body()
    except CountsError:
        return "failure"
    except IgnoredError:
        return "neutral"
    return "success"


WAYS: dict[str, Way] = {
    "execute": threaded(lambda breaker, body: breaker.execute(body)),
    "execute of what is interrupted": threaded(interrupted),
    "decorator": threaded(lambda breaker, body: breaker(body)()),
    "decorator of a method": threaded(decorated_method),
    "guard": threaded(lambda breaker, body: breaker.guard(fallback_on="refusal")(body)()),
    "with": threaded(with_block),
    "with and its permit": threaded(with_block_and_permit),
    "with in a generator": stepwise(with_block_in_a_generator),
    "with acquire()": threaded(with_acquired),
    "acquire": stepwise(acquire),
    "acquire, classified": stepwise(acquire_and_classify),
    "triad": stepwise(triad, overlaps=False),
    "generator": generator_of(lambda breaker, steps: breaker(steps)()),
    "generator returned from execute": generator_of(lambda breaker, steps: breaker.execute(steps)),
    "generator, closed": stepwise(closed_generator),
    "execute_async": awaited(lambda breaker, body: breaker.execute_async(body)),
    "execute_async with a timeout": awaited(lambda breaker, body: breaker.execute_async(body, timeout_ms=60_000)),
    "execute_async of what is cancelled": awaited(cancelled),
    "decorator of a coroutine function": awaited(lambda breaker, body: breaker(body)()),
    "async with": awaited(async_with_block),
    "async generator": awaited(async_generator),
    "async generator, closed": awaited(closed_async_generator),
    "httpx transport": Way(httpx_transport),
    "async httpx transport": Way(async_httpx_transport),
    "requests adapter": Way(requests_adapter),
}

POLICIES = st.builds(
    lambda common, own: {**common, **own},
    st.fixed_dictionaries(
        {
            "open_duration_ms": st.sampled_from([1, 5, 20]),
            "open_backoff": st.sampled_from([1, 1.5, 2]),
            "half_open_max_calls": st.integers(1, 3),
            "success_threshold": st.integers(1, 3),
            "probe_timeout_ms": st.sampled_from([1, 10, 1000]),
        }
    ),
    st.one_of(
        st.fixed_dictionaries({"failure_threshold": st.integers(1, 4), "window_ms": st.sampled_from([1, 10, 100])}),
        st.fixed_dictionaries({"trip_on": st.just("consecutive"), "failure_threshold": st.integers(1, 4)}),
        st.fixed_dictionaries(
            {
                "trip_on": st.just("rate"),
                "failure_rate": st.sampled_from([0.1, 0.5, 1]),
                "minimum_calls": st.integers(1, 5),
                "window_ms": st.sampled_from([7, 100]),
            }
        ),
    ),
)

CONTROLS = ("reset", "trip", "force_open", "disable")


def timelines(*calls: str) -> st.SearchStrategy[list[Step]]:
    step = st.builds(
        Step,
        advance_ms=st.one_of(*[st.integers(0, 12)] * 8, st.integers(-5, 200)),
        # Mostly calls; and what was forced is over soon, for it decides alone.
        what=st.sampled_from([*calls * (48 // len(calls)), *CONTROLS, "reset", "reset"]),
        outcome=st.sampled_from(["success", "failure", "failure", "neutral"]),
        which=st.integers(0, 100),
    )
    # As long as this, for half as long tells of nothing: Hypothesis draws short lists unless it is told not to.
    return st.lists(step, min_size=12, max_size=40)


Seen: TypeAlias = "list[tuple[bool | None, Snapshot]]"
"""Of each step whether a call was let through, if it began one, and the snapshot after it."""


def told(
    clock: ManualClock,
    begin: Begin,
    control: Callable[[str], object],
    snapshot: Callable[[], Snapshot],
    timeline: list[Step],
) -> Seen:
    """Tells a timeline, and ends what is still in flight after it."""
    seen: Seen = []
    in_flight: list[End] = []
    for step in timeline:
        clock.now += step.advance_ms
        let_through: bool | None = None
        if step.what in {"call", "begin"}:
            end = begin()
            let_through = end is not None
            if end is not None:
                in_flight.append(end)
        elif step.what in CONTROLS:
            control(step.what)
        if step.what == "call" and let_through:
            in_flight.pop()(step.outcome)
        if step.what == "end" and in_flight:
            in_flight.pop(step.which % len(in_flight))(step.outcome)
        seen.append((let_through, snapshot()))
    for end in in_flight:
        end("neutral")
    return seen


def told_to(way: Way, loop: Loop, policy: Policy, heard: bool, timeline: list[Step]) -> Seen:
    clock = ManualClock(1000)
    surface = way.make({**policy, "ignore": IgnoredError, "clock": clock}, loop)
    if heard:
        # Somebody who listens to every call takes a breaker off its shortest way.
        surface.breaker.on("success", lambda _: None)

    def control(name: str) -> None:
        getattr(surface.breaker, name)()

    return told(clock, surface.begin, control, surface.breaker.get_snapshot, timeline)


def told_to_the_model(policy: Policy, timeline: list[Step]) -> Seen:
    """What the bare machine says, asked for everything at every step."""
    clock = ManualClock(1000)
    state = CircuitBreakerState(**policy)
    settlements = {"success": "record_success", "failure": "record_failure", "neutral": "release"}

    def begin() -> End | None:
        permit = state.acquire(clock.now)
        return None if permit is None else lambda outcome: getattr(permit, settlements[outcome])(clock.now)

    def control(name: str) -> None:
        getattr(state, name)(clock.now)

    return told(clock, begin, control, lambda: state.snapshot(clock.now), timeline)


def check(ways: dict[str, Way], policy: Policy, heard: bool, timeline: list[Step]) -> None:
    expected = told_to_the_model(policy, timeline)
    loop = asyncio.new_event_loop()
    try:
        for name, way in ways.items():
            assert told_to(way, loop, policy, heard, timeline) == expected, name
    finally:
        loop.close()


# A call that was let through unasked, for its success would have changed nothing, ends when it does: it ends the row.
FAILED_MEANWHILE = [
    Step(0, "begin", "neutral", 0),
    Step(0, "begin", "neutral", 0),
    Step(0, "end", "failure", 0),
    Step(0, "end", "success", 0),
]


@pytest.mark.thread_unsafe(reason="each call has a thread or a task of its own already")
@settings(max_examples=EXAMPLES, deadline=None)
@given(POLICIES, st.booleans(), timelines("call"))
def test_every_surface_decides_as_the_bare_machine_does(policy: Policy, heard: bool, timeline: list[Step]) -> None:
    check(WAYS, policy, heard, timeline)


@pytest.mark.thread_unsafe(reason="each call has a thread or a task of its own already")
@settings(max_examples=2 * EXAMPLES, deadline=None)
@given(POLICIES, st.booleans(), timelines("begin", "end", "end", "begin"))
@example({"trip_on": "consecutive", "failure_threshold": 3}, False, FAILED_MEANWHILE)
def test_so_it_does_for_calls_that_overlap(policy: Policy, heard: bool, timeline: list[Step]) -> None:
    check({name: way for name, way in WAYS.items() if way.overlaps}, policy, heard, timeline)
