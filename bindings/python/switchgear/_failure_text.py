"""A failure in a few words."""

from __future__ import annotations

import errno
import re

from switchgear import _native


def failure_text(error: BaseException | None) -> str | None:
    """What went wrong, for `last_failure`: ECONNREFUSED and the like, else the message, else the name of its class.

    On one line, bounded, and never with the user and password of a URL.
    """
    return None if error is None else _shown(error)


def raised_text(error: BaseException) -> str:
    """What was raised, for a warning: its class and its message under the same rules. Raises nothing."""
    name, text = _name(error), _shown(error, plain=True)
    return text if text == name else f"{name}: {text}"


def _shown(error: BaseException, *, plain: bool = False) -> str:
    try:
        # A bound before anything looks at it: what a server sent back may be a whole page.
        words = str(error) if plain else _words(error)
        text = _native.without_credentials(_UNPRINTABLE.sub(" ", words[:_MAX_READ])).strip()
    except Exception:  # noqa: BLE001 - an error may refuse to be shown in any way
        return "an error that cannot be shown"
    if not text:
        return _name(error)
    return text if len(text) <= _MAX_TEXT else f"{text[:_MAX_TEXT]}..."


def _name(error: BaseException) -> str:
    try:
        return type(error).__name__
    except Exception:  # noqa: BLE001 - a metaclass may refuse that, too
        return "an error without a name"


# Line ends, control characters and what cannot be encoded: who writes a refusal to a log wants one line, and no
# terminal commands of others.
_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")

# The longest failure text that is kept: enough to recognize it, and a bound on what a breaker holds on to.
_MAX_TEXT = 200
_MAX_READ = 10_000


def _words(error: BaseException) -> str:
    # Only what came from the system has one: `OSError("text")` has none.
    code = error.errno if isinstance(error, OSError) else None
    if code is not None and code in errno.errorcode:
        return errno.errorcode[code]
    message = str(error)
    # The text of a KeyError is the key alone.
    return f"KeyError: {message}" if isinstance(error, KeyError) and message else message
