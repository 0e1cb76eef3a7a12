"""The page of everything that a declaration may say, made from its schema in `safelight.providers`."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from docs.pages.placeholders import placeholder_table
from safelight.providers import declaration, dialect, matching, signatures
from safelight.providers.declaration import Declaration

INTRO = """\
<!-- made by `make docs` from src/safelight/providers; do not edit -->

# What a declaration may say

A declaration is a TOML file about one upstream. Which file to imitate, and what you have to judge, is in
[Adding a provider](adding-a-provider.md); this page lists every table and every key. `safelight providers check FILE`
names the place and the mend of whatever is wrong in one.

## Templates and picks

A **template** makes what goes into a call. `"{prompt}"` alone takes the value with its type, so `"{n}"` is a number;
`"id-{reference}"` mixes it with text. What has no value is left out, together with the key that holds it. Literal
braces are written twice. Three tables have a meaning of their own:

| table | what becomes of it |
|---|---|
| `{ "$each" = "{images}", "$as" = { uri = "{item.link}" } }` | a list, made of another one |
| `{ "$join" = ["{prompt}", "--ar {ratio}"], "$with" = " " }` | one text, of the parts that have a value |
| `{ "$json" = { seed = "{options.seed}" } }` | the inner table as JSON text |

A **pick** says where something is in an answer, in [JMESPath](https://jmespath.org): `data.images[0].url`. As a
condition it holds if what it picks is there and is not empty, zero or false.

Pictures have forms: `{image.url}` an address, `{image.data_url}`, `{image.link}` the address if there is one and else
the data URL, `{image.base64}`, `{image.file}` a part of a multipart body, and `{image.type}`. `{images.link}` is the
list of all of them, `{images.1.link}` the second.

## What templates may speak of

"""

NAMES: tuple[tuple[Any, str], ...] = (
    (matching.Pick, "pick"),
    (matching.Regex, "regular expression"),
    (matching.StatusRange, "status"),
    (declaration.Template, "table of templates"),
    (declaration.Path, "template"),
    (declaration.Address, "address"),
    (declaration.Name, "name"),
    (declaration.ProviderName, "name"),
    (dialect.Words, "table of states"),
    (dialect.FailureCode, "word"),
    (signatures.Part, "part"),
    (signatures.HeaderName, "header"),
)
"""What people call the types that have a name."""
PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", date: "day"}

Table = type[BaseModel]


def page() -> str:
    """The whole page."""
    places = _places()
    sections = (_section(table, places) for table in places)
    return f"{INTRO}{placeholder_table()}\n{''.join(sections)}".rstrip() + "\n"


def _places() -> dict[Table, list[str]]:
    """Every table with the headings under which it stands in a file, in the order of the page."""
    places: dict[Table, list[str]] = {Declaration: ["The file itself"]}
    _collect(Declaration, "", places, {Declaration: 0})
    return places


def _collect(holder: Table, path: str, places: dict[Table, list[str]], depths: dict[Table, int]) -> None:
    for key, hint in _keys(holder):
        inner = f"{path}.{key}".lstrip(".")
        for table in _tables_in(hint):
            is_new = table not in places
            depth = depths.setdefault(table, inner.count("."))
            # A dialect may stand in every call; the page tells it once, where it is widest.
            if inner.count(".") == depth:
                heading = f"[[{inner}]]" if _is_list(hint) and key != "auth" else f"[{inner}]"
                places.setdefault(table, []).append(heading)
            if is_new:
                _collect(table, inner, places, depths)


def _section(table: Table, places: dict[Table, list[str]]) -> str:
    wider = next((base for base in table.__mro__[1:] if base in places), None)
    own = inspect.get_annotations(table)
    keys = [(key, name) for key, name in _names(table) if wider is None or name in own]
    hints = get_type_hints(table, include_extras=True)
    rows = "".join(
        f"| `{key}` | {_type(hints[name], places)} | {_default(table.model_fields[name])} "
        f"| {_meaning(table, name)} |\n"
        for key, name in keys
    )
    also = f"\nAnd every key of [{_heading(wider, places)}](#{_anchor(wider, places)}).\n" if wider else ""
    return (
        f"## {_heading(table, places)}\n\n{_story(table)}\n\n"
        f"| key | type | default | what it is |\n|---|---|---|---|\n{rows}{also}\n"
    )


def _heading(table: Table, places: dict[Table, list[str]]) -> str:
    kinds = _kinds(table)
    kind = f" kind = {kinds[0]}" if kinds else ""
    return ", ".join(dict.fromkeys(places[table])) + kind


def _anchor(table: Table, places: dict[Table, list[str]]) -> str:
    """The heading as it is linked to: small letters, no punctuation, dashes for blanks."""
    return re.sub(r"[^a-z0-9_ -]", "", _heading(table, places).lower()).replace(" ", "-")


def _story(table: Table) -> str:
    own = inspect.cleandoc(table.__doc__ or "")
    bases = [base for base in table.__mro__[1:] if base.__name__.startswith("_") and base.__doc__]
    return "\n\n".join([own, *(inspect.cleandoc(base.__doc__ or "") for base in bases)])


def _names(table: Table) -> Iterator[tuple[str, str]]:
    """Every key as it is written, with its name in the code."""
    return ((field.alias or name, name) for name, field in table.model_fields.items())


def _keys(table: Table) -> Iterator[tuple[str, Any]]:
    hints = get_type_hints(table, include_extras=True)
    return ((key, hints[name]) for key, name in _names(table))


def _tables_in(hint: Any) -> list[Table]:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        return [hint]
    return [table for part in get_args(hint) for table in _tables_in(part)]


def _is_list(hint: Any) -> bool:
    inner = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return get_origin(inner) is tuple


def _kinds(table: Table) -> tuple[str, ...]:
    return get_args(table.model_fields["kind"].annotation) if "kind" in table.model_fields else ()


def _type(hint: Any, places: dict[Table, list[str]]) -> str:
    """What people call a type."""
    for named, word in NAMES:
        if hint == named:
            return word
    parts = [part for part in get_args(hint) if part is not type(None)]
    match get_origin(hint):
        case origin if origin is Annotated:
            return _type(parts[0], places)
        case origin if origin is Literal:
            return " · ".join(f"`{_plain(word)}`" for word in parts)
        case origin if origin in (Union, types.UnionType):
            return _choice(parts, places)
        case origin if origin is tuple:
            return f"list of {_type(parts[0], places)}"
        case origin if origin is dict:
            return f"table of {_type(parts[1], places)}"
    return _simple(hint, places)


def _choice(parts: list[Any], places: dict[Table, list[str]]) -> str:
    words = list(dict.fromkeys(_type(part, places) for part in parts))
    if all(_tables_in(part) for part in parts):
        return words[0] if len(words) == 1 else "table, by its `kind`: " + " · ".join(words)
    return " or ".join(words)


def _simple(hint: Any, places: dict[Table, list[str]]) -> str:
    if isinstance(hint, type) and issubclass(hint, BaseModel):
        kinds = _kinds(hint)
        return f"[{kinds[0] if kinds else 'table'}](#{_anchor(hint, places)})"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " · ".join(f"`{one.value}`" for one in hint)
    return PLAIN[hint]


def _meaning(table: Table, name: str) -> str:
    """The description of a key; raises ValueError for one that nobody has described."""
    meaning = table.model_fields[name].description
    if meaning is None:
        raise ValueError(f"{table.__name__}.{name} has no description=; the page of declarations needs one")
    return meaning


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**needed**"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel) or value in (None, (), {}, ""):
        return "none"
    if isinstance(value, tuple) and isinstance(value[0], BaseModel):
        return f"`{_kinds(type(value[0]))[0]}`"
    return f"`{_written(value)}`"


def _written(value: Any) -> str:
    """A value as TOML has it."""
    if isinstance(value, matching.StatusBounds):
        return f'"{value.first}-{value.last}"'
    if isinstance(value, tuple):
        return f"[{', '.join(_written(one) for one in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return f'"{_plain(value)}"' if isinstance(value, str) else str(value)


def _plain(word: Any) -> str:
    return str(word.value) if isinstance(word, Enum) else str(word)
