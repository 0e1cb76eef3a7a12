"""The dialects: one file an upstream, found by name; `speech/dialect.py` tells how to write one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules

from safelight.lab.speech.dialect import Dialect, Workshop

_NO_DIALECTS = {"keys"}


def dialect_names() -> list[str]:
    """The names of all dialects, in the order of the alphabet; `luma-agents` lies in `luma_agents`."""
    modules = {module.name for module in iter_modules(__path__)} - _NO_DIALECTS
    return sorted(name.replace("_", "-") for name in modules)


def load_dialect(name: str) -> type[Dialect]:
    """The class of one dialect; its module is read only now."""
    dialect: type[Dialect] = import_module(f"{__name__}.{name.replace('-', '_')}").DIALECT
    return dialect


class Dialects(Mapping[str, Dialect]):
    """The dialects of a running lab by name, each made when it is first spoken."""

    def __init__(self, workshop: Workshop) -> None:
        self._workshop = workshop
        self._names = dialect_names()
        self._made: dict[str, Dialect] = {}

    def __getitem__(self, name: str) -> Dialect:
        """The dialect; KeyError if there is none of that name."""
        if name not in self._made:
            if name not in self._names:
                raise KeyError(name)
            self._made[name] = load_dialect(name)(self._workshop)
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._names)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._names)

    def __contains__(self, name: object) -> bool:
        """Whether there is one, without reading it."""
        return name in self._names
