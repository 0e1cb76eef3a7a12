"""The items of a batch from a file: a line or a row each, its columns as variables of the prompt."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from safelight.cli.running import USAGE, fail

MAX_ITEMS = 10_000
_VARIABLE = re.compile(r"\{\{([^{}]+)\}\}")
_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class Pattern:
    """What every item is made of: a prompt with `{{variables}}`, and fields that all have."""

    prompt: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


def read_items(path: Path, pattern: Pattern) -> list[dict[str, Any]]:
    """Tasks as the API takes them; each keeps its row in `metadata`. A file that does not fit ends with exit code 2."""
    rows = list(_rows_of(path))
    if not rows:
        fail(f"{path} has no items", code=USAGE)
    if len(rows) > MAX_ITEMS:
        fail(f"{path} has {len(rows)} items, and a batch takes {MAX_ITEMS}", code=USAGE)
    return [_item(f"{path}, {place}", row, pattern) for place, row in rows]


def fill(template: str, row: Mapping[str, Any], place: str) -> str:
    """The template with every `{{name}}` replaced by the row's value."""

    def value_of(found: re.Match[str]) -> str:
        name = found[1].strip()
        if name not in row:
            known = ", ".join(map(str, row))
            fail(f"{place}: there is no {name!r}, only {known}", code=USAGE)
        return str(row[name])

    return _VARIABLE.sub(value_of, template)


def file_name(template: str | None, row: Mapping[str, Any], position: int) -> str:
    """The beginning of an item's file names: what its row says, without anything that is no name, else its place."""
    if template is None or not row:
        return f"{position + 1:05}"
    words = _UNSAFE.sub("-", fill(template, row, f"item {position + 1}")).strip("-.")[:100]
    return words or f"{position + 1:05}"


def _item(place: str, row: Mapping[str, Any], pattern: Pattern) -> dict[str, Any]:
    if pattern.prompt is not None:
        return {**pattern.fields, "prompt": fill(pattern.prompt, row, place), "metadata": {"row": dict(row)}}
    if "prompt" not in row:
        fail(f"{place}: there is no 'prompt'; give one for all with --prompt", code=USAGE)
    return {**pattern.fields, **row}


def _rows_of(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    try:
        # The mark that spreadsheets write at the beginning is no part of the first column's name.
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        fail(f"{path} is not UTF-8", code=USAGE)
    except OSError as error:
        fail(f"{path} cannot be read: {error.strerror}", code=USAGE)
    yield from _csv_rows(path, text) if path.suffix.lower() == ".csv" else _json_rows(path, text)


def _csv_rows(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    reader = csv.DictReader(text.splitlines(keepends=True), strict=True)
    try:
        for row in reader:
            place = f"line {reader.line_num}"
            if None in row or None in row.values():
                fail(f"{path}, {place}: as many fields as columns are needed", code=USAGE)
            yield place, dict(row)
    except csv.Error as error:
        fail(f"{path}, line {reader.line_num}: {error}", code=USAGE)


def _json_rows(path: Path, text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            fail(f"{path}, line {number} is not JSON: {error}", code=USAGE)
        if not isinstance(row, dict):
            fail(f"{path}, line {number} is no object", code=USAGE)
        yield f"line {number}", row
