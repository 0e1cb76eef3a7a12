"""Measures files and functions: lengths, nesting, parameters, and where a random line sits."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median_low

from tests.architecture.source import PACKAGE, files, python_files, read, shown, tree_of

MAX_FILE = 500
MAX_FUNCTION = 70
MAX_NESTING = 4
MAX_PARAMETERS = 8
AIM_POSITIONAL = 4
AIM_FILE_OF_A_LINE = 280
AIM_FUNCTION_OF_A_LINE = 24

BLOCKS = (ast.If, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Try, ast.TryStar, ast.Match)
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True)
class Function:
    """One function as measured; `parameters` leaves out self and cls."""

    place: str
    lines: int
    nesting: int
    parameters: int
    positional: int
    is_command: bool


def file_lines(paths: Iterable[Path]) -> dict[str, int]:
    """Lines of each file."""
    return {shown(path): len(read(path).splitlines()) for path in paths}


def functions(path: Path) -> Iterator[Function]:
    """Every function and method of a file, nested ones too."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, FUNCTIONS):
            yield measure(node, shown(path))


def measure(node: ast.FunctionDef | ast.AsyncFunctionDef, place: str) -> Function:
    """Measure one function; a line of an `elif` chain nests no deeper than its `if`."""
    given = node.args
    positional = [arg.arg for arg in (*given.posonlyargs, *given.args) if arg.arg not in {"self", "cls"}]
    return Function(
        place=f"{place}:{node.lineno} {node.name}",
        lines=(node.end_lineno or node.lineno) - node.lineno + 1,
        nesting=_nesting(node.body),
        parameters=len(positional) + len(given.kwonlyargs),
        positional=len(positional),
        is_command=any(_is_command(decorator) for decorator in node.decorator_list),
    )


def faults(measured: Function) -> Iterator[str]:
    """What is over a limit. A command's parameters are its options: those are not counted."""
    if measured.lines > MAX_FUNCTION:
        yield f"{measured.place}: {measured.lines} lines, limit {MAX_FUNCTION}"
    if measured.nesting > MAX_NESTING:
        yield f"{measured.place}: nested {measured.nesting} deep, limit {MAX_NESTING}"
    if measured.parameters > MAX_PARAMETERS and not measured.is_command:
        yield f"{measured.place}: {measured.parameters} parameters, limit {MAX_PARAMETERS}"


def medians() -> tuple[int, int]:
    """The size of the file and of the function in which a random line of the package sits."""
    lengths = list(file_lines(python_files(PACKAGE)).values())
    spans = [function.lines for path in python_files(PACKAGE) for function in functions(path)]
    return _of_a_line(lengths), _of_a_line(spans)


def tail(count: int = 5) -> Iterator[str]:
    """The longest files and functions of the package, and the two medians, as lines to print."""
    lengths = file_lines(files(".py", ".sql", below=PACKAGE))
    for name, lines in sorted(lengths.items(), key=lambda item: -item[1])[:count]:
        yield f"{lines:5} lines  {name}"
    measured = [function for path in python_files(PACKAGE) for function in functions(path)]
    for function in sorted(measured, key=lambda one: -one.lines)[:count]:
        yield f"{function.lines:5} lines  {function.place}"
    for function in sorted(measured, key=lambda one: -one.positional)[:count]:
        if function.positional > AIM_POSITIONAL:
            yield f"{function.positional:5} positional parameters  {function.place}"
    in_file, in_function = medians()
    yield (
        f"a random line sits in a file of {in_file} lines (aim {AIM_FILE_OF_A_LINE}) "
        f"and a function of {in_function} (aim {AIM_FUNCTION_OF_A_LINE})"
    )


def _of_a_line(sizes: list[int]) -> int:
    """The median size weighted by size: what a random line sees."""
    return median_low([size for size in sizes for _ in range(size)]) if sizes else 0


def _nesting(body: Iterable[ast.stmt], depth: int = 0) -> int:
    deepest = depth
    for statement in body:
        if isinstance(statement, BLOCKS):
            deepest = max(deepest, *(_nesting(part, level) for part, level in _parts(statement, depth + 1)))
    return deepest


def _parts(statement: ast.stmt, depth: int) -> Iterator[tuple[list[ast.stmt], int]]:
    yield getattr(statement, "body", []), depth
    other = getattr(statement, "orelse", [])
    is_elif = isinstance(statement, ast.If) and len(other) == 1 and isinstance(other[0], ast.If)
    yield other, depth - 1 if is_elif else depth
    yield getattr(statement, "finalbody", []), depth
    for inner in (*getattr(statement, "handlers", []), *getattr(statement, "cases", [])):
        yield inner.body, depth


def _is_command(decorator: ast.expr) -> bool:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(called, ast.Attribute) and called.attr in {"command", "callback"}
