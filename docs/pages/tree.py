"""The tree of `src/safelight` in a page: names come from the disk, order and wording from its writer.

A name that is new gets the first sentence of its module's docstring, and stands last in its folder.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "safelight"
BLOCK = re.compile(r"(```text\nsrc/safelight/[^\n]*\n)(.*?)(```)", re.DOTALL)
LINE = re.compile(r"^(?P<lead>[│ ]*)[├└]── (?P<name>\S+)(?: {2,}(?P<says>.*))?$")
UNSAID = frozenset({"__pycache__", "py.typed"})
COLUMN = 28
OPEN_ROOMS = frozenset({"domain", "db", "lifecycle", "jobs"})
"""The rooms that tell the story; the others are one line, so that the page stays a page."""
LONG = 72


@dataclass
class Node:
    """A file or folder as the page shows it."""

    name: str
    says: str = ""
    children: dict[str, Node] = field(default_factory=dict)


def refresh(page: str, *, depth: int) -> str:
    """The page with its tree made true, `depth` levels deep; a page without a tree stays as it is."""
    found = BLOCK.search(page)
    if not found:
        return page
    lines = _render(_merge(_parse(found[2]), PACKAGE, depth))
    body = "".join(f"{line}\n" for line in lines)
    return page[: found.start(2)] + body + page[found.end(2) :]


def _parse(block: str) -> dict[str, Node]:
    top: dict[str, Node] = {}
    open_folders = [top]
    for line in block.splitlines():
        found = LINE.match(line)
        if found:
            level = len(found["lead"]) // 4
            node = Node(found["name"], found["says"] or "")
            open_folders[level][node.name] = node
            open_folders[level + 1 :] = [node.children]
    return top


def _merge(written: dict[str, Node], folder: Path, depth: int) -> dict[str, Node]:
    real = _entries(folder, is_top=folder == PACKAGE)
    names = [name for name in written if name in real] + [name for name in real if name not in written]
    merged: dict[str, Node] = {}
    for name in names:
        node = written.get(name) or Node(name, _role(real[name]))
        inner = real[name]
        children = _merge(node.children, inner, depth - 1) if depth > 1 and _is_shown_open(inner) else {}
        merged[name] = Node(name, node.says, children)
    return merged


def _entries(folder: Path, *, is_top: bool) -> dict[str, Path]:
    """What a folder shows: files, then folders, each by name; a room needs no line for its `__init__.py`."""
    hidden = UNSAID if is_top else UNSAID | {"__init__.py"}
    there = sorted(folder.iterdir(), key=lambda path: (path.is_dir(), path.name))
    return {
        path.name + "/" * path.is_dir(): path
        for path in there
        if path.name not in hidden and not path.name.startswith(".") and (path.is_file() or _has_files(path))
    }


def _has_files(folder: Path) -> bool:
    return any(path.is_file() and path.parent.name not in UNSAID for path in folder.rglob("*"))


def _is_shown_open(path: Path) -> bool:
    return path.is_dir() and path.parent == PACKAGE and path.name in OPEN_ROOMS


def _role(path: Path) -> str:
    module = path / "__init__.py" if path.is_dir() else path
    if module.suffix != ".py" or not module.exists():
        return ""
    said = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    sentence = said.split("\n\n")[0].replace("\n", " ").split(". ")[0].rstrip(".")
    return sentence if len(sentence) <= LONG else re.split(r"[:;] ", sentence)[0]


def _render(nodes: dict[str, Node], lead: str = "") -> list[str]:
    lines = []
    last = list(nodes)[-1:]
    for name, node in nodes.items():
        is_last = [name] == last
        drawn = f"{lead}{'└' if is_last else '├'}── {name}"
        lines.append(f"{drawn:<{COLUMN}}  {node.says}".rstrip() if node.says else drawn)
        lines.extend(_render(node.children, lead + ("    " if is_last else "│   ")))
    return lines
