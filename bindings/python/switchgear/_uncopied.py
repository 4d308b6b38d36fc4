"""Objects that there is one of."""

from __future__ import annotations

from typing import NoReturn, SupportsIndex


class Uncopied:
    """Refuses to be copied and pickled: two objects of one circuit would go separate ways."""

    __slots__ = ()

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        name = type(self).__name__
        raise TypeError(f"a {name} can be neither copied nor pickled: make one in each process that needs one")
