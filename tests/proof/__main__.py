"""`make prove`: run the layers two at a time, print their table, and fail if any of them found something."""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import secrets
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from importlib.util import find_spec

import structlog
from rich.console import Console
from rich.table import Table

from tests.proof.child import run_child
from tests.proof.report import Layer, LayerReport, Size, told

LAYERS = (
    "schema",
    "model",
    "faults",
    "races",
    "kills",
    "callbacks",
    "addresses",
    "pictures",
    "openapi",
    "mutants",
    "growth",
)
"""Each is the module of its name beside this one, loaded when its turn comes, with a function `run`."""

LONG = ("mutants", "faults")
"""Begun first: each lasts as long as many others together."""
LANES = 2
"""Layers that run at a time: one keeps about one core busy, and 2 cores are what the sizes are meant for."""
SEEDS = 1 << 32


@dataclass(frozen=True, slots=True)
class Row:
    """What a layer reported, and how long it took in seconds."""

    report: LayerReport
    seconds: float


def find_layer(name: str) -> Layer | None:
    """The layer of this name; None if nobody has built it."""
    module = f"tests.proof.{name}"
    if find_spec(module) is None:
        return None
    layer: Layer = import_module(module).run
    return layer


def run_layer(name: str, size: Size, seed: int) -> Row:
    """Run one layer in an event loop of its own; one that breaks or is missing has failed."""
    began = time.monotonic()
    try:
        layer = find_layer(name)
        if layer is None:
            report = LayerReport(name, seed, failures=[f"there is no layer tests/proof/{name}.py"])
        else:
            report = asyncio.run(layer(size, seed))
    except Exception as error:  # noqa: BLE001 - the other layers are still to be run
        report = LayerReport(name, seed, failures=[f"the layer broke: {told(error)}"])
    return Row(report, time.monotonic() - began)


async def run_apart(names: Sequence[str], size: Size, seed: int) -> list[Row]:
    """Run each layer in a process of its own, so many at a time; their rows in the order asked for."""
    places = asyncio.Semaphore(LANES)

    async def in_turn(name: str) -> Row:
        async with places:
            return await _run_child(name, size, seed)

    first = sorted(names, key=lambda name: name not in LONG)
    # When the run is interrupted the group waits until every child has said goodbye.
    async with asyncio.TaskGroup() as group:
        runs = {name: group.create_task(in_turn(name)) for name in first}
    return [runs[name].result() for name in names]


async def _run_child(name: str, size: Size, seed: int) -> Row:
    began = time.monotonic()
    arguments = ["-m", "tests.proof", "--json", f"--only={name}", f"--size={size}", f"--seed={seed}"]
    code, output = await run_child(arguments, os.environ, timeout_s=None, stderr=None)
    seconds = time.monotonic() - began
    try:
        (told,) = json.loads(output)["layers"]
        del told["seconds"]
        return Row(LayerReport(**told), seconds)
    except (ValueError, KeyError, TypeError):
        why = f"its process ended with {code} and without a report: {output[-300:]!r}"
        return Row(LayerReport(name, seed, failures=[why]), seconds)


def table_of(rows: Sequence[Row]) -> Table:
    """The table: one line a layer."""
    table = Table("layer", "tried", "seconds", "figures", "failures", "seed", box=None, pad_edge=False)
    for row in rows:
        figures = ", ".join(f"{name} {value}" for name, value in row.report.figures.items())
        failed = str(len(row.report.failures)) if row.report.tried else "nothing was tried"
        seconds, tried = f"{row.seconds:.1f}", f"{row.report.tried:,}"
        table.add_row(row.report.layer, tried, seconds, figures, failed, str(row.report.seed))
    return table


def show(rows: Sequence[Row], *, as_json: bool) -> None:
    """Print what came of it: the table and every failure, or one JSON document."""
    if as_json:
        document = [{**asdict(row.report), "seconds": round(row.seconds, 1)} for row in rows]
        print(json.dumps({"layers": document}, indent=2))  # noqa: T201 - for a program that reads it
        return
    console = Console(soft_wrap=True)
    console.print(table_of(rows))
    for row in rows:
        for failure in row.report.failures:
            console.print(f"[red]{row.report.layer}[/red]", failure, highlight=False)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for; 0 if every layer is good, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tests.proof", description=__doc__)
    parser.add_argument("--only", metavar="A,B", help=f"these layers alone, of: {', '.join(LAYERS)}")
    parser.add_argument("--seed", type=int, help="repeat a run; each layer prints the one it had")
    parser.add_argument("--size", type=Size, choices=list(Size), default=Size.PROVE)
    parser.add_argument("--json", action="store_true", help="one JSON document instead of the table")
    asked = parser.parse_args(arguments)
    names = list(dict.fromkeys(asked.only.split(","))) if asked.only else list(LAYERS)
    if strange := [name for name in names if name not in LAYERS]:
        parser.error(f"there is no layer {strange[0]!r}")
    seed = secrets.randbelow(SEEDS) if asked.seed is None else asked.seed
    if len(names) == 1:
        print(f"{names[0]}, seed {seed} …", file=sys.stderr, flush=True)  # noqa: T201 - a sign of life
        rows = [run_layer(names[0], asked.size, seed)]
    else:
        rows = asyncio.run(run_apart(names, asked.size, seed))
    show(rows, as_json=asked.json)
    return 0 if all(row.report.is_good for row in rows) else 1


if __name__ == "__main__":
    # What the service logs while it is attacked would bury the table.
    structlog.configure(logger_factory=structlog.ReturnLoggerFactory())
    logging.disable(logging.ERROR)
    sys.exit(main())
