"""Time comes from one function, `clock_now()` in SQL, so that tests can move it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from tests.architecture.source import PACKAGE, files, python_files, read, shown, tree_of

OTHER_CLOCKS = re.compile(
    r"\bnow\s*\(\s*\)|\b(?:clock|statement|transaction)_timestamp\s*\("
    r"|\b(?:current_timestamp|localtimestamp|current_date|current_time|localtime)\b",
    re.IGNORECASE,
)
THE_CLOCK = re.compile(
    r"CREATE (?:OR REPLACE )?FUNCTION clock_now\(\).*?\bEND \$\$;", re.DOTALL | re.IGNORECASE
)
COMMENT = re.compile(r"--[^\n]*")
TIMELESS_ROOMS = ("domain", "lifecycle")
MAY_ASK = {"src/safelight/domain/ids.py": "an id's time only sorts it; no rule reads it"}


def other_clocks(sql: str) -> list[str]:
    """Calls of any clock but ours; the body of the clock itself and comments do not count."""
    return OTHER_CLOCKS.findall(COMMENT.sub("", THE_CLOCK.sub("", sql)))


def wall_clocks(tree: ast.AST) -> Iterator[int]:
    """Lines that ask the process for the time of day."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if re.search(r"\b(?:datetime\.(?:now|utcnow|today)|date\.today|time\.time(?:_ns)?)$", called):
                yield node.lineno


def strings(tree: ast.AST) -> Iterator[str]:
    """Every string of a syntax tree but docstrings."""
    prose = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.value


def test_sql_knows_one_clock() -> None:
    found = {shown(path): other_clocks(read(path)) for path in files(".sql", below=PACKAGE)}
    assert {place: calls for place, calls in found.items() if calls} == {}


def test_sql_inside_python_knows_one_clock() -> None:
    found = {
        shown(path): [call for text in strings(tree_of(path)) for call in other_clocks(text)]
        for path in python_files(PACKAGE)
    }
    assert {place: calls for place, calls in found.items() if calls} == {}


def test_rules_and_verbs_never_ask_the_process_for_the_time() -> None:
    found = {
        shown(path): list(wall_clocks(tree_of(path)))
        for room in TIMELESS_ROOMS
        if (PACKAGE / room).is_dir()
        for path in python_files(PACKAGE / room)
    }
    asking = {place: lines for place, lines in found.items() if lines}
    assert asking.keys() - MAY_ASK.keys() == set()


@pytest.mark.parametrize(
    "call", ["now()", "NOW ( )", "CURRENT_TIMESTAMP", "clock_timestamp()", "current_date"]
)
def test_another_clock_is_seen(call: str) -> None:
    assert len(other_clocks(f"SELECT {call}, clock_now() -- not now()")) == 1


def test_a_wall_clock_is_seen() -> None:
    assert list(wall_clocks(ast.parse("a = datetime.now(UTC)\nb = time.time()\nc = time.monotonic()"))) == [
        1,
        2,
    ]
