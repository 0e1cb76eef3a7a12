"""Files and functions stay small enough to be read at once."""

from __future__ import annotations

import ast

import pytest

from tests.architecture import sizes
from tests.architecture.source import files, python_files


def test_no_file_is_longer_than_the_limit() -> None:
    lengths = sizes.file_lines(files(".py", ".sql"))
    assert lengths
    assert {name: lines for name, lines in lengths.items() if lines > sizes.MAX_FILE} == {}


def test_no_function_is_over_a_limit() -> None:
    measured = [function for path in python_files() for function in sizes.functions(path)]
    assert measured
    assert [fault for function in measured for fault in sizes.faults(function)] == []


def test_a_random_line_sits_in_a_file_that_can_be_taken_in() -> None:
    in_file, _ = sizes.medians()
    assert 0 < in_file <= sizes.AIM_FILE_OF_A_LINE


DEEP = "def deep():\n" + "".join(f"{'    ' * depth}if x:\n" for depth in range(1, 6)) + "    " * 6 + "pass\n"
CHAIN = "def chain():\n    if a:\n        pass\n" + "    elif b:\n        pass\n" * 8
LONG = "def long():\n" + "    x = 1\n" * 70
WIDE = "def wide(a, b, c, d, *, e, f, g, h, i): ..."


@pytest.mark.parametrize(
    ("source", "complaint"), [(DEEP, "nested 5 deep"), (LONG, "71 lines"), (WIDE, "9 parameters")]
)
def test_each_limit_catches_what_is_over_it(source: str, complaint: str) -> None:
    (fault,) = sizes.faults(_measured(source))
    assert complaint in fault


@pytest.mark.parametrize("source", [CHAIN, WIDE.replace(", i", ""), f"@app.command()\n{WIDE}"])
def test_what_is_within_the_limits_passes(source: str) -> None:
    assert list(sizes.faults(_measured(source))) == []


def _measured(source: str) -> sizes.Function:
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    return sizes.measure(function, "sample.py")
