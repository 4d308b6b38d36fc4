"""Groups: who is in, who goes, who is told."""

from __future__ import annotations

import gc
import threading
import weakref
from functools import partial
from typing import Any, NoReturn

import pytest
from support.clock import ManualClock
from switchgear import CallEvent, CircuitBreaker, CircuitBreakerGroup, CircuitOpenError, InvalidNameError, StateChange


class BoomError(Exception):
    """A failure of the dependency."""


def fail() -> NoReturn:
    raise BoomError


def test_one_breaker_per_key() -> None:
    group = CircuitBreakerGroup(failure_threshold=1)
    one = group.for_key("one")
    assert isinstance(one, CircuitBreaker)
    assert group.for_key("one") is one
    assert group.for_key("two") is not one
    assert (one.name, len(group), list(group)) == ("one", 2, [one, group.for_key("two")])
    with pytest.raises(BoomError):
        one.execute(fail)
    assert (one.get_state(), group.for_key("two").get_state()) == ("open", "closed")


def test_the_name_of_a_group_comes_first() -> None:
    group = CircuitBreakerGroup(name="hosts")
    assert group.for_key("a").name == "hosts:a"
    with pytest.raises(InvalidNameError):
        group.for_key("x" * 512)
    assert len(group) == 1


def test_an_empty_group_is_a_group() -> None:
    assert CircuitBreakerGroup()
    assert list(CircuitBreakerGroup()) == []
    assert repr(CircuitBreakerGroup()) == "<CircuitBreakerGroup of 0>"


def test_the_least_recently_used_closed_one_goes_first() -> None:
    group = CircuitBreakerGroup(max_keys=3)
    a, b, c = (group.for_key(key) for key in "abc")
    a.trip()
    group.for_key("b")
    group.for_key("d")  # c goes: a is open, b was used
    assert [breaker.name for breaker in group] == ["a", "b", "d"]
    assert group.for_key("a") is a
    assert group.for_key("b") is b
    assert group.for_key("c") is not c
    for breaker in group:
        breaker.trip()
    group.for_key("e")  # none is closed: the least recently used
    assert len(group) == 3
    assert group.for_key("e").get_state() == "closed"


def test_deleting() -> None:
    group = CircuitBreakerGroup()
    breaker = group.for_key("a")
    assert group.delete("a")
    assert not group.delete("a")
    assert not group.delete("\ud800")
    assert group.for_key("a") is not breaker
    with pytest.raises(InvalidNameError):
        group.delete(5)  # type: ignore[arg-type]  # that is what is tested


def test_one_that_was_given_up_goes_on_and_no_longer_has_a_say() -> None:
    group = CircuitBreakerGroup(max_keys=1, failure_threshold=1)
    old = group.for_key("a")
    old.trip()
    group.for_key("b")
    new = group.for_key("a")
    assert old is not new
    with pytest.raises(CircuitOpenError):
        old.execute(lambda: 1)
    old.reset()
    assert new.execute(lambda: 1) == 1


def test_listeners_of_a_group_hear_all_of_it() -> None:
    group = CircuitBreakerGroup(failure_threshold=1)
    before = group.for_key("before")
    changes: list[StateChange] = []
    calls: list[CallEvent] = []
    own: list[CallEvent] = []
    off = group.on("state_change", changes.append)
    group.on("success", calls.append)
    group.on("failure", calls.append)
    after = group.for_key("after")
    after.on("failure", own.append)
    before.execute(lambda: 1)
    with pytest.raises(BoomError):
        after.execute(fail)
    assert [event.circuit for event in calls] == ["before", "after"]
    assert own == [calls[1]]
    assert [(change.circuit, change.to_state) for change in changes] == [("after", "open")]
    off()
    off()
    before.trip()
    assert len(changes) == 1


def test_the_listeners_of_one_do_not_slow_the_others() -> None:
    def hot(breaker: CircuitBreaker) -> bool:
        return breaker._machine.hot is not None

    group = CircuitBreakerGroup()
    loud, quiet = group.for_key("loud"), group.for_key("quiet")
    off = loud.on("success", lambda event: None)
    assert (hot(loud), hot(quiet)) == (False, True)
    off()
    assert hot(loud)
    off = group.on("success", lambda event: None)
    assert (hot(loud), hot(quiet)) == (False, False)
    off()
    assert (hot(loud), hot(quiet)) == (True, True)


def test_the_clock_is_tried_once_for_all() -> None:
    reads = [0]

    def clock() -> int:
        reads[0] += 1
        return 1

    group = CircuitBreakerGroup(clock=clock)
    for key in "abc":
        group.for_key(key)
    assert reads == [1]


def test_a_probe_of_one_key_is_no_business_of_another() -> None:
    clock = ManualClock()
    group = CircuitBreakerGroup(open_duration_ms=1000, clock=clock)
    for key in "ab":
        group.for_key(key).trip()
    clock.now += 1000
    with group.for_key("a"), group.for_key("b"):
        assert [breaker.get_snapshot().half_open_in_flight for breaker in group] == [1, 1]
    assert [breaker.get_state() for breaker in group] == ["closed", "closed"]


def test_threads_that_ask_for_one_key_get_one_breaker() -> None:
    for _ in range(20):
        group = CircuitBreakerGroup(max_keys=4)
        ready = threading.Barrier(4)
        got: list[CircuitBreaker] = []

        def ask(group: CircuitBreakerGroup = group, ready: threading.Barrier = ready, got: list[Any] = got) -> None:
            ready.wait(60)
            got.append(group.for_key("same"))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({id(breaker) for breaker in got}) == 1
        assert len(group) == 1


def forget(group: CircuitBreakerGroup, event: CallEvent) -> None:
    group.delete(event.circuit)


def restart(breaker: CircuitBreaker, event: CallEvent) -> None:
    breaker.reset()


@pytest.mark.thread_unsafe(reason="the collector is the whole process's")
def test_a_group_that_nobody_holds_is_collected_with_all_that_is_in_it() -> None:
    group = CircuitBreakerGroup()
    breaker = group.for_key("a")
    group.on("success", partial(forget, group))
    breaker.on("success", partial(restart, breaker))
    kept: list[weakref.ref[Any]] = [weakref.ref(group), weakref.ref(breaker)]
    breaker.execute(lambda: 1)
    del group, breaker
    gc.collect()
    assert [reference() for reference in kept] == [None, None]


@pytest.mark.parametrize("name", [None, "web"])
def test_whether_a_key_is_in_a_group_without_using_it(name: str | None) -> None:
    group = CircuitBreakerGroup(name=name, max_keys=2)
    first, second = group.for_key("a"), group.for_key("b")
    assert "a" in group
    assert first in group
    for absent in ("c", "", "web:a", "\ud800", 5, None, CircuitBreaker("a")):
        assert absent not in group
    group.for_key("c")
    assert "a" not in group
    assert second in group
    assert group.delete("b")
    assert "b" not in group
