"""The component in wasmtime: what its suite and its runner of vectors call it by.

Names are those of `bindings/component/wit`. A record has attributes under its names in WIT, hyphens included, so
`getattr` reads them; an enum is a text; an option is its value or `None`.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from wasmtime import Engine, Store
from wasmtime.component import Component, Linker, Record, Variant

COMPONENT = Path(__file__).parents[1] / "dist" / "switchgear.wasm"


class ComponentError(Exception):
    """The record `error` of the component."""

    def __init__(self, error: Record) -> None:
        fields = vars(error)
        super().__init__(fields["message"])
        self.code: str = fields["code"]
        self.field: str | None = fields["field"]
        self.value: str | None = fields["value"]


class Instance:
    """One instance of the component, with a memory of its own; for one thread at a time, as a store of wasmtime is."""

    def __init__(self) -> None:
        engine, compiled = compiled_component()
        # With the version they end in.
        self._interfaces = {name.partition("/")[2].partition("@")[0]: name for name in compiled.type.exports(engine)}
        self.store = Store(engine)
        # Nothing is imported, so there is nothing to link with.
        self._instance = Linker(engine).instantiate(self.store, compiled)
        self._functions: dict[tuple[str, str], Callable[..., Any]] = {}

    def call(self, interface: str, function: str, *arguments: Any) -> Any:
        """What a function gives; its error is raised."""
        found = self._functions.get((interface, function)) or self._find(interface, function)
        return unwrapped(found(self.store, *arguments))

    def _find(self, interface: str, function: str) -> Callable[..., Any]:
        outer = self._instance.get_export_index(self.store, self._interfaces[interface])
        assert outer is not None, interface
        inner = self._instance.get_export_index(self.store, function, outer)
        assert inner is not None, function
        found = self._instance.get_func(self.store, inner)
        assert found is not None, function
        self._functions[interface, function] = found
        return found


class Resource:
    """A resource of the component, by its methods."""

    def __init__(self, instance: Instance, interface: str, name: str, *arguments: Any, by: str = "create") -> None:
        self._instance = instance
        self._interface = interface
        self._name = name
        maker = f"[static]{name}.{by}" if by == "create" else f"[constructor]{name}"
        #: What other resources take it by.
        self.handle = instance.call(interface, maker, *arguments)

    def call(self, method: str, *arguments: Any) -> Any:
        """What a method gives; its error is raised."""
        return self._instance.call(self._interface, f"[method]{self._name}.{method}", self.handle, *arguments)

    def drop(self) -> None:
        """Lets it go. The component keeps it until then."""
        self.handle.drop(self._instance.store)


def record(**fields: Any) -> Record:
    """A record of the component; `_` stands for the hyphen."""
    made = Record()
    for name, value in fields.items():
        setattr(made, name.replace("_", "-"), value)
    return made


def settings(options: dict[str, Any]) -> list[Record]:
    """A layer of options."""
    return [record(name=name, value=value_of(value)) for name, value in options.items()]


def value_of(value: object) -> Variant:
    """The value of an option."""
    if isinstance(value, bool):
        return Variant("other", "true" if value else "false")
    if isinstance(value, (int, float)):
        return Variant("number", float(value))
    if isinstance(value, str):
        return Variant("text", value)
    return Variant("other", "null" if value is None else f"a {type(value).__name__}")


def fields_of(found: Record) -> dict[str, Any]:
    """The fields of a record, under their names in WIT."""
    return dict(vars(found))


def unwrapped(result: Any) -> Any:
    """The value of a `result`; its error is raised. wasmtime leaves the wrapping off where it can tell by the class."""
    if isinstance(result, Variant) and result.tag in ("ok", "err"):
        result = result.payload
    if isinstance(result, Record) and set(vars(result)) == {"code", "message", "field", "value"}:
        raise ComponentError(result)
    return result


@cache
def compiled_component() -> tuple[Engine, Component]:
    """Compiled once for all instances."""
    engine = Engine()
    return engine, Component.from_file(engine, COMPONENT)


# What is let go of later finds wasmtime's own modules taken down already, and says so.
atexit.register(compiled_component.cache_clear)
