"""Small habits that keep the code honest: no catch-all, no bare exemption, a sentence for each module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.source import PACKAGE, files, python_files, read, shown, text_files, tree_of

MAY_CATCH_EVERYTHING: dict[str, str] = {
    "src/safelight/api/envelope.py": "the last wall: what nobody foresaw becomes a 500 that tells nothing",
    "src/safelight/jobs/deliveries.py": "one broken delivery must not end the others; its lease brings it back",
    "src/safelight/jobs/loops.py": "one broken step must not end the loop; the row's lease brings it back",
    "src/safelight/jobs/pump.py": "one broken item must not take the others of its permit with it",
    "src/safelight/db/group.py": "whatever breaks a batch, each caller must learn its own item's fate",
}
"""Files of the package that may say `except Exception`: the job runner and shutdown, each with its reason."""

NO_ROOMS = frozenset({"utils", "helpers", "common", "misc", "core", "services", "managers", "models"})
"""Names that say nothing; a file or folder of that name collects what belongs elsewhere."""

EXEMPTION = re.compile(
    r"#\s*(?:type:\s*ignore|noqa)(?P<codes>\[[^\]]+\]|:\s*[A-Z]+[0-9]+(?:\s*,\s*[A-Z]+[0-9]+)*)?(?P<rest>.*)"
)
UNFINISHED = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")


def catch_alls(tree: ast.AST) -> Iterator[int]:
    """Lines that catch every error and do not raise again."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler):
            caught = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
            names = {one.id for one in caught if isinstance(one, ast.Name)}
            is_broad = node.type is None or bool(names & {"Exception", "BaseException"})
            if is_broad and not isinstance(node.body[-1], ast.Raise):
                yield node.lineno


def unexplained(line: str) -> bool:
    """Whether a line switches a check off without naming it and saying why."""
    found = EXEMPTION.search(line)
    if not found:
        return False
    return not found["codes"] or not re.search(r"[-–#(]\s*\w+", found["rest"])


def test_only_listed_files_catch_every_error() -> None:
    places = {shown(path) for path in python_files(PACKAGE) if any(catch_alls(tree_of(path)))}
    assert places - MAY_CATCH_EVERYTHING.keys() == set(), (
        "catch what you expect, or list the file with its reason"
    )
    assert MAY_CATCH_EVERYTHING.keys() - places == set(), "listed, but no longer needed"


@pytest.mark.parametrize("head", ["except Exception:", "except (ValueError, BaseException):", "except:"])
def test_a_catch_all_is_seen(head: str) -> None:
    assert list(catch_alls(ast.parse(f"try:\n    x()\n{head}\n    pass"))) == [3]


def test_tidying_up_and_raising_again_is_no_catch_all() -> None:
    tidy = "try:\n    x()\nexcept BaseException:\n    close()\n    raise"
    assert list(catch_alls(ast.parse(tidy))) == []


def test_every_exemption_names_its_check_and_its_reason() -> None:
    lines = (
        f"{shown(path)}:{number}"
        for path in python_files()
        if path.name != "test_habits.py"
        for number, line in enumerate(read(path).splitlines(), 1)
        if unexplained(line)
    )
    assert list(lines) == []


@pytest.mark.parametrize(
    ("line", "is_unexplained"),
    [
        ("x = 1  # noqa", True),
        ("x = 1  # noqa: S101", True),
        ("x = 1  # type: ignore", True),
        ("x = 1  # type: ignore[arg-type]", True),
        ("x = 1  # noqa: S101 - the caller has checked it", False),
        ("x = 1  # type: ignore[arg-type]  # the stub is wrong, link and date", False),
        ("x = 1  # noqa: S104 (read, not bound)", False),
        ("x = 1  # why", False),
    ],
)
def test_an_exemption_without_a_reason_is_seen(line: str, is_unexplained: bool) -> None:
    assert unexplained(line) is is_unexplained


def test_nothing_is_left_for_later() -> None:
    lines = (
        f"{shown(path)}:{number}: {line.strip()[:80]}"
        for path in text_files()
        for number, line in enumerate(read(path).splitlines(), 1)
        if UNFINISHED.search(line)
    )
    assert list(lines) == []


def test_every_module_says_its_role() -> None:
    silent = [shown(path) for path in python_files() if not ast.get_docstring(tree_of(path))]
    assert silent == []


def test_every_sql_file_says_its_role() -> None:
    silent = [shown(path) for path in files(".sql", below=PACKAGE) if not read(path).startswith("--")]
    assert silent == []


def test_no_room_has_a_name_that_says_nothing() -> None:
    named = {shown(path) for path in (*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*/")) if path.stem in NO_ROOMS}
    assert named == set()
