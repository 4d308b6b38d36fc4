"""Shared circuit breakers by key: what those of sync code and of `asyncio` add to a group."""

from __future__ import annotations

from switchgear._keyed import B, Keyed


class SharedKeyed(Keyed[B]):
    """One shared breaker per key, of one policy. Its circuits are called `name:key`."""

    __slots__ = ()

    @property
    def name(self) -> str:
        """What the names of its circuits begin with."""
        return self._prefix[:-1]

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r} of {len(self)}>"
