"""What the package logs. Several threads run the same test at once: each looks for texts with a name of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class _Collectors(logging.Handler):
    """The one handler of all tests: a logger skips one when another thread takes off the one before it."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.take: dict[object, Callable[[str], object]] = {}

    def emit(self, record: logging.LogRecord) -> None:
        for take in list(self.take.values()):
            take(record.getMessage())


_COLLECTORS = _Collectors()
logging.getLogger("switchgear").addHandler(_COLLECTORS)


@contextmanager
def logged(part: str) -> Iterator[list[str]]:
    """Collects the warnings that have a text within them, while the block runs."""
    found: list[str] = []
    us = object()
    _COLLECTORS.take[us] = lambda text: found.append(text) if part in text else None
    try:
        yield found
    finally:
        del _COLLECTORS.take[us]
