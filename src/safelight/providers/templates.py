"""Fills the bodies, paths and headers that a declaration sketches with the values of one call."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

EACH, AS, JOIN, WITH, JSON, FIRST = "$each", "$as", "$join", "$with", "$json", "$first"
"""Tables with a meaning: `{"$each", "$as"}` is a list made of another one, `{"$join", "$with"}` joins the
texts that are there, `{"$json"}` is a table written as JSON text, `{"$first"}` the first value that is there."""

_SHAPES = tuple(frozenset(words) for words in ({EACH, AS}, {JOIN}, {JOIN, WITH}, {JSON}, {FIRST}))
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
            if key != WITH:
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
    _check_shapes(template, place)
    roots = sorted(allowed)
    for leaf_place, placeholder in placeholders(template, place):
        is_item = placeholder.root == "item" and f".{AS}" in leaf_place
        if placeholder.root not in roots and not is_item:
            raise ValueError(
                f"{leaf_place} has no value for {{{placeholder.name}}}; use one of {', '.join(roots)}"
            )


def _check_shapes(template: Any, place: str) -> None:
    if isinstance(template, list | tuple):
        for index, member in enumerate(template):
            _check_shapes(member, f"{place}[{index}]")
    elif isinstance(template, Mapping):
        words = frozenset(key for key in template if key.startswith("$"))
        if words and (words not in _SHAPES or len(words) != len(template)):
            raise ValueError(
                f'{place} is not a table with a meaning; write {{"$each", "$as"}}, {{"$join", "$with"}}, '
                '{"$json"} or {"$first"} and nothing beside it'
            )
        for key, member in template.items():
            _check_shapes(member, f"{place}.{key}")


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with its values; empty members (None, "", [], {}) are left out.

    A text that is one placeholder takes the value with its type; a text that mixes both is left out as a
    whole where one of its values is absent.
    """
    if isinstance(template, str):
        return _fill_text(template, values)
    if isinstance(template, Mapping):
        return _fill_table(template, values)
    if isinstance(template, list | tuple):
        return [item for member in template for item in _items(member, values)]
    return template


def _items(member: Any, values: Mapping[str, Any]) -> list[Any]:
    """What a member of a list becomes: one item or none; of an `$each` its items, beside the others."""
    value = fill(member, values)
    if isinstance(member, Mapping) and EACH in member:
        return list(value)
    return [] if is_empty(value) else [value]


def _fill_table(template: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    if EACH in template:
        items = fill(template[EACH], values)
        rows = [fill(template[AS], {**values, "item": item}) for item in ([] if is_empty(items) else items)]
        return [row for row in rows if not is_empty(row)]
    if JOIN in template:
        words = [word for word in (fill(part, values) for part in template[JOIN]) if not is_empty(word)]
        return str(template.get(WITH, " ")).join(str(word) for word in words)
    if FIRST in template:
        return next((value for part in template[FIRST] if not is_empty(value := fill(part, values))), OMITTED)
    if JSON in template:
        return json.dumps(fill(template[JSON], values), ensure_ascii=False, allow_nan=False)
    members = {key: fill(member, values) for key, member in template.items()}
    return {key: member for key, member in members.items() if not is_empty(member)}


def fill_path(template: str, values: Mapping[str, Any]) -> str:
    """A path with its values percent-encoded; raises ValueError where one is absent."""
    return "".join(part if isinstance(part, str) else _path_piece(part, values) for part in _parts(template))


def _path_piece(placeholder: Placeholder, values: Mapping[str, Any]) -> str:
    value = _look_up(placeholder.name, values)
    if is_empty(value):
        raise ValueError(f"no value for {{{placeholder.name}}} in the path")
    # A model name comes from the declaration and may be several segments, such as "owner/name".
    is_model = placeholder.name in ("upstream_model", "model_root")
    return quote(str(value), safe="/" if is_model else "")


def _fill_text(text: str, values: Mapping[str, Any]) -> Any:
    parts = _parts(text)
    if len(parts) == 1 and isinstance(parts[0], Placeholder):
        return _look_up(parts[0].name, values)
    pieces = [part if isinstance(part, str) else _look_up(part.name, values) for part in parts]
    if any(is_empty(piece) for piece in pieces):
        return OMITTED
    return "".join(piece if isinstance(piece, str) else str(piece) for piece in pieces)


def _look_up(name: str, values: Mapping[str, Any]) -> Any:
    value: Any = values
    for step in name.split("."):
        value = _step(value, step)
        if value is OMITTED:
            break
    return value


def _step(value: Any, step: str) -> Any:
    """One step into a value: a member of a table, an item of a list by its number, or of each item."""
    if isinstance(value, Mapping):
        return value.get(step, OMITTED)
    if isinstance(value, list | tuple):
        if step.isdecimal():
            return value[int(step)] if int(step) < len(value) else OMITTED
        members = [_step(item, step) for item in value]
        return OMITTED if any(is_empty(member) for member in members) else members
    return OMITTED


def is_empty(value: Any) -> bool:
    """Whether a filled value is left out of what holds it."""
    return value is OMITTED or value is None or (isinstance(value, str | list | tuple | dict) and not value)
