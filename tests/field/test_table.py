"""The page of the field cases is complete and true: every case once, every named test there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from tests.architecture.source import ROOT, read

PAGE = ROOT / "docs" / "field-cases.md"
FIELD = ROOT / "tests" / "field"
NUMBERS = {
    "A": "02 03 04 05 07 08 09 10 11 12 13 14 16 17 18",
    "B": "01 02 04 05 07 08 09 10 11 12 14 15 16",
    "C": "01 02 03 04 05 09 11 12 14 15 16 18 19 20 21",
    "D": "01 03 04 06 07 08 09 10 11 12 13 15 16 17 18",
    "E": "01 02 03 04 05 07 08 09 12 13 14 15 16 17 18 19 20 21",
    "F": "02 03 05 07 08 10 11 12 13 14 15 16 17 18 19 20",
    "G": "01 02 03",
    "H": "01 04 05 06 07 08 09 10 11 12",
    "I": "01 03 04 05 06 07 08 10 11 12 13 14 15 16",
    "J": "02 04 05 06 07 08",
    "K": "03 04 05 06 07 08 09 11 12 13 14 15",
}
IDS = [letter + number for letter, numbers in NUMBERS.items() for number in numbers.split()]
WAITS = re.compile(r"waits for (webhooks to customers|live events \(SSE\))")
ROW = re.compile(r"\| ([A-Z][0-9]{2}) \| (.+) \| (.+) \| (.+) \|")


def rows() -> list[tuple[str, str, str, str]]:
    """The lines of the table: id, what went wrong, what is done, the tests."""
    lines = [line for line in read(PAGE).splitlines() if line.startswith("| ") and line[2].isupper()]
    found = [ROW.fullmatch(line) for line in lines]
    assert None not in found
    return [(row[1], row[2], row[3], row[4]) for row in found if row]


def named(cell: str) -> list[str]:
    """The tests that a row names, as `file::name`."""
    return re.findall(r"`(tests/[\w/]+\.py::test_\w+)`", cell)


def names_of(path: Path) -> set[str]:
    """The names of the tests in a file."""
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(ast.parse(read(path))) if isinstance(node, functions)}


def test_every_case_has_exactly_one_row() -> None:
    assert len(IDS) == 137
    assert [case for case, *_ in rows()] == IDS


def test_every_row_names_its_tests_or_what_it_waits_for() -> None:
    for case, wrong, done, cell in rows():
        assert wrong.endswith("."), case
        assert done.endswith((".", ".)")), case
        tests = named(cell)
        assert bool(tests) != bool(WAITS.fullmatch(cell)), case
        assert "<br>".join(f"`{test}`" for test in tests) == cell or not tests, case
        assert len(tests) == len(set(tests)), case


def test_every_named_test_is_there() -> None:
    files = {test.partition("::")[0] for *_, cell in rows() for test in named(cell)}
    there = {file: names_of(ROOT / file) for file in files if (ROOT / file).exists()}
    gone = [
        f"{case}: {test}"
        for case, *_, cell in rows()
        for test in named(cell)
        if test.partition("::")[2] not in there.get(test.partition("::")[0], ())
    ]
    assert gone == [], "renamed or moved: name them anew in docs/field-cases.md"


def test_every_test_of_a_case_stands_in_its_row() -> None:
    cells = {case: named(cell) for case, *_, cell in rows()}
    for path in FIELD.glob("test_field_*.py"):
        for name in names_of(path):
            if name.startswith("test_"):
                case = name.split("_")[1]
                assert f"tests/field/{path.name}::{name}" in cells.get(case, []), name
