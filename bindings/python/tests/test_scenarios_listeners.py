"""The users' scenarios about listeners, on local and on shared breakers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
from support.world import DownError, World, fail, refusal_of, succeed
from switchgear import CallEvent, CircuitBreaker, CircuitOpenError, StateChange

NewWorld = Callable[[], AbstractContextManager[World]]


def test_scenario_37_a_listener_may_read_execute_and_reset_and_events_come_in_order(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=2)
        told: list[str] = []
        inside: list[object] = []

        def first(change: StateChange) -> None:
            told.append(f"first: {change.from_state} -> {change.to_state}")
            if change.to_state != "open":
                return
            assert breaker.get_state() == "open"
            assert breaker.get_snapshot().trips == 1
            inside.append(refusal_of(lambda: breaker.execute(succeed)).last_failure)
            breaker.reset()
            assert breaker.get_state() == "closed"
            inside.append(breaker.execute(succeed))

        breaker.on("state_change", first)
        breaker.on("state_change", lambda change: told.append(f"second: {change.from_state} -> {change.to_state}"))
        breaker.on("refused", lambda _: told.append("refused"))
        breaker.on("failure", lambda _: told.append("failure"))
        breaker.on("success", lambda _: told.append("success"))
        for _ in range(2):
            with pytest.raises(DownError):
                breaker.execute(fail)
        assert inside == ["ECONNREFUSED", "ok"]
        assert told == [
            "failure",
            "first: closed -> open",
            "second: closed -> open",
            "refused",
            "first: open -> closed",
            "second: open -> closed",
            "success",
            "failure",
        ]


def test_scenario_37_a_listener_that_trips_and_resets_without_end_does_not_recurse() -> None:
    breaker = CircuitBreaker("c")
    changes: list[str] = []

    def again(change: StateChange) -> None:
        changes.append(change.to_state)
        if len(changes) == 100_000:
            return
        if change.to_state == "open":
            breaker.reset()
        else:
            breaker.trip()

    breaker.on("state_change", again)
    breaker.trip()
    assert changes == ["open", "closed"] * 50_000


@pytest.mark.thread_unsafe(reason="the log is the whole process's")
def test_scenario_38_a_listener_that_raises_changes_nothing_and_is_reported_once(
    new_world: NewWorld, caplog: pytest.LogCaptureFixture
) -> None:
    with new_world() as world, caplog.at_level(logging.WARNING, logger="switchgear"):
        breaker = world.breaker(failure_threshold=3)
        heard: list[str] = []

        def broken(event: str) -> Callable[[StateChange | CallEvent], None]:
            def listener(_: StateChange | CallEvent) -> None:
                raise RuntimeError(f"from {event}")

            return listener

        for event in ("state_change", "success", "failure", "refused"):
            breaker.on(event, broken(event))
            breaker.on(event, lambda _, event=event: heard.append(event))
        assert breaker.execute(succeed) == "ok"
        for _ in range(3):
            with pytest.raises(DownError):
                breaker.execute(fail)
        assert breaker.get_state() == "open"
        for _ in range(2):
            with pytest.raises(CircuitOpenError):
                breaker.execute(succeed)
        assert sorted(heard) == sorted(["success", *["failure"] * 3, "state_change", *["refused"] * 2])
        reported = [record.getMessage() for record in caplog.records if record.name == "switchgear"]
        assert len(reported) == 4
        for event in ("state_change", "success", "failure", "refused"):
            assert sum(f"`{event}`" in message and f"from {event}" in message for message in reported) == 1, reported


def test_scenario_38_nor_does_one_that_raises_what_ends_the_program_lose_events(new_world: NewWorld) -> None:
    with new_world() as world:
        breaker = world.breaker(failure_threshold=1)
        heard: list[str] = []

        def interrupted(_: StateChange) -> None:
            raise KeyboardInterrupt

        off = breaker.on("state_change", interrupted)
        breaker.on("state_change", lambda change: heard.append(change.to_state))
        with pytest.raises(KeyboardInterrupt):
            breaker.trip()
        off()
        breaker.reset()
        # The interrupt came through; what it kept from being told to the others is not told twice, nor out of order.
        assert heard in (["closed"], ["open", "closed"])
        assert breaker.get_state() == "closed"
