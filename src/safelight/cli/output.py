"""What commands print: lines, tables and JSON on standard output."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import typer

_WIDE = 200
"""Columns where there is no terminal: a pipe should not cut what a person might search for."""


def clean(text: str) -> str:
    """Text of strangers in one line, without anything that would steer the terminal."""
    return "".join(character if character.isprintable() else " " for character in text)


def print_line(text: str = "") -> None:
    """One line."""
    typer.echo(text)


def print_json(value: Any) -> None:
    """JSON for programs; times in UTC."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False, default=_plain))


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A table without lines around it; only the last column is cut where the terminal is too narrow."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for number, column in enumerate(columns, start=1):
        is_last = number == len(columns)
        table.add_column(column, no_wrap=True, overflow="ellipsis" if is_last else "fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console = Console()
    if not console.is_terminal:
        console.width = _WIDE
    console.print(table)


def time_words(moment: datetime | None) -> str:
    """A time as people read it: to the second, in UTC."""
    return moment.strftime("%Y-%m-%d %H:%M:%SZ") if moment else ""


def count_words(count: int, noun: str) -> str:
    """`1 picture`, `2 pictures`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def size_words(size: int) -> str:
    """Bytes as people read them."""
    return f"{size} B" if size < 1_000 else f"{size / 1_000:,.0f} kB"


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return time_words(value) if isinstance(value, datetime) else clean(str(value))


def _plain(value: Any) -> str:
    return value.isoformat().replace("+00:00", "Z") if isinstance(value, datetime) else str(value)
