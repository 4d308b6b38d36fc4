"""What comes back from a client, made into what the engine takes: integers, the words of an error."""

from __future__ import annotations

from switchgear._native import without_credentials


def integers(reply: object) -> object:
    """A reply as a list of integers, also where a client gives a tuple or leaves them as texts; else as it is."""
    if not isinstance(reply, (list, tuple)):
        return reply
    try:
        return [item if type(item) is int else _parsed(item) for item in reply]
    except (TypeError, ValueError):
        return None


def error_text(error: BaseException) -> str:
    """What a client says went wrong, without credentials; it begins with the server's code where there is one."""
    try:
        words = str(error) or type(error).__name__
        code = _code(error)
        text = words if code is None or words.startswith(code) else f"{code} {words}"
        return without_credentials(text)
    except Exception:  # noqa: BLE001 - an error may refuse to be shown in any way
        return "an error that cannot be shown"


def is_redirection(error: BaseException) -> bool:
    """Whether another node of the cluster has the slot, which only the cluster's client can follow."""
    return _code(error) in ("MOVED", "ASK")


def is_answer(error: BaseException) -> bool:
    """Whether the server said so: then the connection is in order, and another attempt would hear the same."""
    # By name, for no client library is imported.
    return any(base.__name__ == "ResponseError" for base in type(error).__mro__)


def is_broken_connection(error: BaseException) -> bool:
    """Whether it says that the connection broke, and nothing but that: wrong passwords, say, are of the same class."""
    return type(error).__name__ in ("ConnectionError", "TimeoutError") or isinstance(error, OSError)


def _code(error: BaseException) -> str | None:
    """The code that the server's error begins with: the clients cut it off, and have a class for it."""
    status = getattr(error, "status_code", None)
    if isinstance(status, str):
        return status
    return next((_CODES[base.__name__] for base in type(error).__mro__ if base.__name__ in _CODES), None)


def _parsed(item: object) -> int:
    if isinstance(item, (str, bytes)):
        return int(item)
    raise TypeError("no integer")


# Subclasses are found first: MovedError is an AskError, too.
_CODES = {
    "NoScriptError": "NOSCRIPT",
    "TryAgainError": "TRYAGAIN",
    "MovedError": "MOVED",
    "AskError": "ASK",
    "ReadOnlyError": "READONLY",
    "BusyLoadingError": "LOADING",
    "ClusterDownError": "CLUSTERDOWN",
    "MasterDownError": "MASTERDOWN",
    "OutOfMemoryError": "OOM",
    "NoPermissionError": "NOPERM",
}
