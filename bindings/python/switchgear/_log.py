"""Tells the operator about a fault in code that a breaker was given: a listener, a clock, a classifier."""

from __future__ import annotations

import logging
from collections.abc import Hashable, MutableMapping
from contextlib import suppress
from typing import Any, Literal

_logger = logging.getLogger("switchgear")


def warn_once(told: MutableMapping[Any, object], key: Hashable, message: str) -> None:
    """Logs a warning, unless one of this key was told already. Raises nothing: its caller has a call to end.

    Args:
        told: What was told so far; a `dict` or a `WeakKeyDictionary`.
        key: What this is about.
        message: What to say; "(reported once)" is added.
    """
    ours = object()
    # One operation, so that of two threads only one tells.
    if told.setdefault(key, ours) is not ours:
        return
    # A logging set-up that raises is no reason to fail the call.
    with suppress(Exception):
        _logger.warning("%s (reported once)", message)


def tell_operator(level: Literal["warning", "info"], message: str) -> None:
    """Logs one line. Raises nothing: its caller has a call to end."""
    with suppress(Exception):
        (_logger.warning if level == "warning" else _logger.info)("%s", message)
