"""Turns a fault that pydantic found in a declaration into a place and a mend."""

from __future__ import annotations

import difflib
from typing import Any, get_args

from pydantic import BaseModel
from pydantic_core import ErrorDetails


def explain(details: ErrorDetails, schema: type[BaseModel]) -> str:
    """One fault as "place: what is wrong; the mend". It never repeats the value."""
    place, tables = _walk(details["loc"], schema)
    match details["type"]:
        case "extra_forbidden":
            return f"{place} is not a known key; {_spelling(str(details['loc'][-1]), tables)}"
        case "missing":
            return f"{place} is missing; add it"
        case "value_error":
            return f"{place} {details['msg'].removeprefix('Value error, ')}"
        case _:
            message = details["msg"]
            return f"{place}: {message[:1].lower()}{message[1:]}; correct it"


def _walk(loc: tuple[int | str, ...], schema: type[BaseModel]) -> tuple[str, list[type[BaseModel]]]:
    """The place as people write it, and the tables that its last key could belong to."""
    place = ""
    tables: list[type[BaseModel]] = [schema]
    holders, is_inside = tables, False
    for step in loc:
        if isinstance(step, int):
            place += f"[{step}]"
            continue
        tagged = [table for table in tables if step in _tags(table)]
        if tagged and not is_inside:
            # Pydantic puts the `kind` of a table into the place; people do not write it there.
            tables, is_inside, holders = tagged, True, tagged
            continue
        annotations = [annotation for table in tables if (annotation := _annotation(table, step)) is not None]
        place += f".{step}" if place else step
        holders = tables
        tables = [inner for annotation in annotations for inner in _tables_in(annotation)]
        is_inside = False
    return place or "the declaration", holders


def _annotation(table: type[BaseModel], key: str) -> Any:
    for name, field in table.model_fields.items():
        if key == (field.alias or name):
            return field.annotation if not field.metadata else (field.annotation, *field.metadata)
    return None


def _tables_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    inner = annotation if isinstance(annotation, tuple) else get_args(annotation)
    return [table for part in inner for table in _tables_in(part)]


def _tags(table: type[BaseModel]) -> tuple[str, ...]:
    """The values of `kind` that choose a table out of several."""
    return get_args(table.model_fields["kind"].annotation) if "kind" in table.model_fields else ()


def _spelling(key: str, tables: list[type[BaseModel]]) -> str:
    known = sorted({field.alias or name for table in tables for name, field in table.model_fields.items()})
    near = difflib.get_close_matches(key, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"remove it, or use one of {', '.join(known)}"
