"""What the package logs. Several threads run the same test at once: each looks for texts with a name of its own."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def logged(part: str) -> Iterator[list[str]]:
    """Collects the warnings that have a text within them, while the block runs."""
    found: list[str] = []

    class Collector(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if part in record.getMessage():
                found.append(record.getMessage())

    logger = logging.getLogger("switchgear")
    collector = Collector(logging.WARNING)
    logger.addHandler(collector)
    try:
        yield found
    finally:
        logger.removeHandler(collector)
