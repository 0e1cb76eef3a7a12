"""What the package imports it declares, and what it declares it uses."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions

from tests.architecture.source import PACKAGE, ROOT, python_files, read, shown, tree_of

COMES_WITH = {"pydantic-core": "pydantic", "starlette": "fastapi", "click": "typer"}
"""Packages that are one with another in all but name: the declared one pins or re-exports them."""

USED_WITHOUT_IMPORT = {"httptools", "uvloop"}
"""uvicorn finds these by itself."""


def imported(tree: ast.AST) -> Iterator[str]:
    """The top name of every absolute import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def declared() -> set[str]:
    """Names of the declared runtime dependencies."""
    project = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]
    return {re.split(r"[^\w.-]", line)[0].lower() for line in project["dependencies"]}


def used() -> dict[str, str]:
    """Each distribution that the package imports, with one file that does."""
    owners = packages_distributions()
    found: dict[str, str] = {}
    for path in python_files(PACKAGE):
        for module in imported(tree_of(path)):
            if module not in sys.stdlib_module_names and module != "safelight":
                name = owners.get(module, [module])[0].lower().replace("_", "-")
                found[COMES_WITH.get(name, name)] = shown(path)
    return found


def test_what_is_imported_is_declared() -> None:
    assert {name: place for name, place in used().items() if name not in declared()} == {}


def test_what_is_declared_is_used() -> None:
    assert declared() - used().keys() - USED_WITHOUT_IMPORT == set()


def test_an_import_is_seen_wherever_it_stands() -> None:
    source = "import a.b\nfrom . import near\ndef late():\n    from c.d import e"
    assert list(imported(ast.parse(source))) == ["a", "c"]
