"""The members of a group by key."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar, cast

from switchgear import _native
from switchgear._config import checked_key, checked_number

B = TypeVar("B")


class Members(Generic[B]):
    """At most so many: a new key takes the place of the least recently used closed one, or if none is closed of any.

    Args:
        max_keys: How many there are at most, as the user gave it; `None` for the default.
        make: The member of a new key, and a function to be called with whether it is closed, whenever that changes. One
            that raises takes nobody's place.

    Raises:
        ConfigError: `max_keys` is wrong.
    """

    __slots__ = ("_make", "_members")

    def __init__(self, max_keys: object, make: Callable[[str, Callable[[bool], None]], B]) -> None:
        capacity = _native.defaults()[0] if max_keys is None else checked_number("max_keys", max_keys)
        self._members = _native.Members(capacity)
        self._make = make

    def for_key(self, key: str) -> B:
        """The member of a key, made if there is none, and now the most recently used.

        Raises:
            InvalidNameError: It can be no key.
        """
        try:
            member = self._members.get(checked_key(key))
        except UnicodeEncodeError:
            # A lone surrogate: no key, and the core says it best.
            member = self._make(key, _Note(self._members, key))
        if member is None:
            # Two threads may both make one; one of the two is added, and is what both get.
            note = _Note(self._members, key)
            made = self._make(key, note)
            note.member = weakref.ref(made)
            member, _ = self._members.add(key, made)
        return cast("B", member)

    def delete(self, key: str) -> bool:
        """Forgets a key. Whether there was one.

        Raises:
            InvalidNameError: It is no text.
        """
        try:
            return self._members.remove(checked_key(key)) is not None
        except UnicodeEncodeError:
            return False

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[B]:
        return iter(cast("list[B]", self._members.values()))


class _Note:
    """Notes in its group whether a member is closed; one that was given up no longer has a say."""

    __slots__ = ("_key", "_members", "member")

    def __init__(self, members: _native.Members, key: str) -> None:
        self._members = members
        self._key = key
        self.member: Callable[[], object | None] = _nobody

    def __call__(self, closed: bool) -> None:
        member = self.member()
        if member is not None:
            self._members.note(self._key, member, closed)


def _nobody() -> None:
    """A member that is being made has not changed yet."""
