"""Fills the bodies, paths and headers that a declaration sketches with the values of one call."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

_TOKEN = re.compile(r"\{\{|\}\}|\{([a-z_]+(?:\.[A-Za-z0-9_-]+)*)\}|[{}]|[^{}]+")


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A value to be filled in, such as `prompt` or `options.seed`."""

    name: str

    @property
    def root(self) -> str:
        return self.name.partition(".")[0]


class _Omitted:
    """A value that is absent, so that whatever holds it leaves it out."""


OMITTED = _Omitted()


@functools.cache
def _parts(text: str) -> tuple[str | Placeholder, ...]:
    parts: list[str | Placeholder] = []
    for match in _TOKEN.finditer(text):
        token = match.group()
        if match.group(1):
            parts.append(Placeholder(match.group(1)))
        elif token in ("{{", "}}"):
            parts.append(token[0])
        elif token in ("{", "}"):
            raise ValueError(f"has a stray {token!r}; write it twice for a literal brace")
        else:
            parts.append(token)
    return tuple(parts)


def leaves(template: Any, place: str) -> Iterator[tuple[str, str]]:
    """Every string leaf of a template with its place, such as ("submit.body.input.prompt", "{prompt}")."""
    if isinstance(template, str):
        yield place, template
    elif isinstance(template, Mapping):
        for key, member in template.items():
            yield from leaves(member, f"{place}.{key}")
    elif isinstance(template, list | tuple):
        for index, member in enumerate(template):
            yield from leaves(member, f"{place}[{index}]")


def placeholders(template: Any, place: str) -> Iterator[tuple[str, Placeholder]]:
    """Every placeholder of a template with its place; raises ValueError that names the place."""
    for leaf_place, text in leaves(template, place):
        try:
            parts = _parts(text)
        except ValueError as error:
            raise ValueError(f"{leaf_place} {error}") from None
        for part in parts:
            if isinstance(part, Placeholder):
                yield leaf_place, part


def check_template(template: Any, place: str, allowed: Iterable[str]) -> None:
    """Refuse a placeholder that has no value in this place; raises ValueError that names it."""
    roots = sorted(allowed)
    for leaf_place, placeholder in placeholders(template, place):
        if placeholder.root not in roots:
            raise ValueError(
                f"{leaf_place} has no value for {{{placeholder.name}}}; use one of {', '.join(roots)}"
            )


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with its values; empty members (None, "", [], {}) are left out.

    A text that is one placeholder takes the value with its type; a text that mixes both is left out as a
    whole where one of its values is absent.
    """
    if isinstance(template, str):
        return _fill_text(template, values)
    if isinstance(template, Mapping):
        members = {key: fill(member, values) for key, member in template.items()}
        return {key: member for key, member in members.items() if not _is_empty(member)}
    if isinstance(template, list | tuple):
        items = [fill(member, values) for member in template]
        return [item for item in items if not _is_empty(item)]
    return template


def fill_path(template: str, values: Mapping[str, Any]) -> str:
    """A path with its values percent-encoded; raises ValueError where one is absent."""
    return "".join(part if isinstance(part, str) else _path_piece(part, values) for part in _parts(template))


def _path_piece(placeholder: Placeholder, values: Mapping[str, Any]) -> str:
    value = _look_up(placeholder.name, values)
    if _is_empty(value):
        raise ValueError(f"no value for {{{placeholder.name}}} in the path")
    # A model name comes from the declaration and may be several segments, such as "owner/name".
    return quote(str(value), safe="/" if placeholder.name == "upstream_model" else "")


def _fill_text(text: str, values: Mapping[str, Any]) -> Any:
    parts = _parts(text)
    if len(parts) == 1 and isinstance(parts[0], Placeholder):
        return _look_up(parts[0].name, values)
    pieces = [part if isinstance(part, str) else _look_up(part.name, values) for part in parts]
    if any(_is_empty(piece) for piece in pieces):
        return OMITTED
    return "".join(piece if isinstance(piece, str) else str(piece) for piece in pieces)


def _look_up(name: str, values: Mapping[str, Any]) -> Any:
    value: Any = values
    for step in name.split("."):
        if not isinstance(value, Mapping) or step not in value:
            return OMITTED
        value = value[step]
    return value


def _is_empty(value: Any) -> bool:
    return value is OMITTED or value is None or (isinstance(value, str | list | tuple | dict) and not value)
