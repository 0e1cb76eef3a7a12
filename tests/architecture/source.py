"""Finds the files of the repository that the architecture tests read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "safelight"

NOT_OURS = frozenset({".git", ".venv", "node_modules", "dist", "build", "safelight-data", "__pycache__"})
TEXT_SUFFIXES = frozenset(
    {
        "",
        ".cfg",
        ".ini",
        ".json",
        ".lock",
        ".md",
        ".py",
        ".sh",
        ".sql",
        ".toml",
        ".ts",
        ".tsx",
        ".txt",
        ".yaml",
        ".yml",
    }
)


def files(*suffixes: str, below: Path = ROOT) -> Iterator[Path]:
    """Every file of ours with one of the suffixes, in a stable order."""
    for path in sorted(below.iterdir()):
        if path.is_dir():
            is_ours = path.name not in NOT_OURS and not path.name.endswith(("_cache", ".egg-info"))
            if is_ours and path.name not in {".hypothesis", ".schemathesis"}:
                yield from files(*suffixes, below=path)
        elif path.suffix in suffixes:
            yield path


def text_files(below: Path = ROOT) -> Iterator[Path]:
    """Every file of ours that people read."""
    yield from files(*TEXT_SUFFIXES, below=below)


def python_files(below: Path = ROOT) -> Iterator[Path]:
    """Every Python file of ours."""
    yield from files(".py", below=below)


@cache
def read(path: Path) -> str:
    """A file's text; what is not UTF-8 is replaced, since it is not ours to judge."""
    return path.read_text(encoding="utf-8", errors="replace")


@cache
def tree_of(path: Path) -> ast.Module:
    """A Python file's syntax tree."""
    return ast.parse(read(path), filename=str(path))


def shown(path: Path) -> str:
    """A path as people write it: from the root of the repository."""
    return path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.as_posix()
