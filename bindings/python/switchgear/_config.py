"""Reads policies. The core checks its own fields; nothing else knows their names, ranges or defaults."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from switchgear import _native
from switchgear._error import ConfigError, InvalidNameError

C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class HostPolicy:
    """The options of a policy that are the host's: everything else is the core's."""

    is_failure: Callable[[Exception], object] | None
    ignore: tuple[type[BaseException], ...]
    is_failure_result: Callable[[Any], object] | None
    slow_call_ms: int | None
    timeout_ms: int | None
    observe: bool
    clock: Callable[[], int] | None

    @property
    def is_plain(self) -> bool:
        """Whether nothing but its error says how a call ended, and nothing ends it: then it need not be watched."""
        return self.slow_call_ms is None and self.timeout_ms is None and self.is_failure_result is None


@dataclass(frozen=True, slots=True)
class ReadPolicy(Generic[C]):
    """A policy that was read: the core's part as one checked value, the host's part checked here."""

    config: C
    host: HostPolicy
    extra: Mapping[str, object]
    """The further host options that were given, unchecked."""


@dataclass(frozen=True, slots=True)
class PolicyKind(Generic[C]):
    """What a constructor takes beside a breaker's policy."""

    build: Callable[[Sequence[Mapping[str, object]]], C]
    """Hands the core its part."""
    core: tuple[str, ...] = ()
    """Options that the core checks together with the policy."""
    host: tuple[str, ...] = ()
    """Options of the host."""
    own: tuple[str, ...] = ()
    """What the constructor takes out before: only named where it is said what there is."""


BREAKER_POLICY = PolicyKind(_native.Config)
"""A local breaker's policy and nothing else."""

GROUP_POLICY = PolicyKind(_native.Config, own=("name", "max_keys"))
"""The policy of a group of local breakers."""


def read_policy(layers: Sequence[Mapping[str, object]], kind: PolicyKind[C]) -> ReadPolicy[C]:
    """Reads a policy given in layers, the outermost (module, group) first: each overrides those before it.

    Args:
        layers: The options as the user gave them; `None` is left out.
        kind: What else the constructor at hand takes.

    Raises:
        ConfigError: Names the field, the value and what is valid.
    """
    host_options = (*_HOST_OPTIONS, *kind.host)
    given: dict[str, object] = {}
    fields: list[dict[str, object]] = []
    for layer in layers:
        core: dict[str, object] = {}
        for name, value in layer.items():
            if name in host_options:
                if value is not None:
                    given[name] = value
            elif name in _CORE_NAMES or name in kind.core:
                if value is not None:
                    core[name] = value
            else:
                raise _unknown_option(name, (*_CORE_FIELDS, *kind.core, *host_options, *kind.own))
        fields.append(core)
    host = _read_host(given)
    extra = {name: given[name] for name in kind.host if name in given}
    return ReadPolicy(kind.build(fields), host, extra)


def checked_number(name: str, value: object) -> int:
    """One of the core's host options (`timeout_ms`, `slow_call_ms`, `max_keys`, `idle_ttl_ms`), checked by the core.

    Raises:
        ConfigError: It is out of range, or no integer.
    """
    return _native.check_option(name, value)


def checked_callable(name: str, value: object) -> Callable[..., Any]:
    """A callback.

    Raises:
        ConfigError: It cannot be called.
    """
    if not callable(value):
        raise out_of_range(name, "callable", value)
    return value


def checked_bool(name: str, value: object) -> bool:
    """Yes or no.

    Raises:
        ConfigError: It is neither.
    """
    if not isinstance(value, bool):
        raise out_of_range(name, "True or False", value)
    return value


def checked_word(name: str, value: object, words: Sequence[str]) -> str:
    """One of a few words.

    Raises:
        ConfigError: It is none of them.
    """
    if not isinstance(value, str) or value not in words:
        raise out_of_range(name, " or ".join(f"'{word}'" for word in words), value)
    return value


def checked_name(name: object) -> str:
    """A circuit's name, checked by the core: 1 to 512 bytes of UTF-8 without control characters.

    Raises:
        InvalidNameError: It cannot name a circuit.
    """
    _native.check_name(name)
    return _text("name", name)


def checked_key(key: object) -> str:
    """The key of a group's member; together with the group's name it is checked as a circuit's name.

    Raises:
        InvalidNameError: It is no text.
    """
    return _text("key", key)


def out_of_range(field: str, valid: str, value: object) -> ConfigError:
    """The error of a value that an option cannot have, in the core's words."""
    shown = _native.describe(value)
    return ConfigError(f"`{field}` must be {valid}, got `{shown}`", field, shown)


_HOST_OPTIONS = ("is_failure", "ignore", "is_failure_result", "slow_call_ms", "timeout_ms", "observe", "clock")

_CORE_FIELDS = tuple(name if other is None else f"{name} (or {other})" for name, other, _ in _native.fields())
_CORE_NAMES = frozenset(name for field in _native.fields() for name in field[:2] if name is not None)


def _read_host(given: Mapping[str, object]) -> HostPolicy:
    def read(name: str, check: Callable[[str, object], C]) -> C | None:
        return check(name, given[name]) if name in given else None

    return HostPolicy(
        is_failure=read("is_failure", _checked_predicate),
        ignore=read("ignore", _checked_types) or (),
        is_failure_result=read("is_failure_result", checked_callable),
        slow_call_ms=read("slow_call_ms", checked_number),
        timeout_ms=read("timeout_ms", checked_number),
        observe=read("observe", checked_bool) or False,
        clock=read("clock", checked_callable),
    )


def _checked_predicate(name: str, value: object) -> Callable[..., Any]:
    # A class can be called, too; but what it makes of an error is an object, and so never `False`.
    if not callable(value) or (isinstance(value, type) and issubclass(value, BaseException)):
        raise out_of_range(name, "a predicate, which gets an error (for exception types there is `ignore`)", value)
    return value


def _checked_types(name: str, value: object) -> tuple[type[BaseException], ...]:
    types: list[type[BaseException]] = []
    # As an `except` clause takes them, and `isinstance`: tuples may be nested.
    for part in value if isinstance(value, tuple) else (value,):
        if isinstance(part, tuple):
            types.extend(_checked_types(name, part))
        elif isinstance(part, type) and issubclass(part, BaseException):
            types.append(part)
        else:
            raise out_of_range(name, "an exception type or a tuple of them", part)
    return tuple(types)


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidNameError(f"`{what}` must be a string, got `{_native.describe(value)}`")
    return value


def _unknown_option(name: str, valid: Sequence[str]) -> ConfigError:
    shown = f"{name[:64]}..." if len(name) > 64 else name
    return ConfigError(f"`{shown}` is not an option; valid are {', '.join(valid)}", shown)
