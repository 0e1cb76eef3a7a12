"""How much of each declaration the conformance suite holds: it must fail without any one line.

    python -m tests.conformance.mutations              every provider
    python -m tests.conformance.mutations fal kling    these
    python -m tests.conformance.mutations --sample 20  at most so many lines of each, the same ones every time

A mutant is a declaration without one line. It is caught if it is refused as a declaration, or if a case of the
suite fails. Lines that promise something about the upstream which no dialect can show (prices, time-outs, rates,
other hosts), lines that say which of its abilities a model offers, and lines that say what is the default anyway,
are left out, and counted.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from safelight.cli.conformance.cases import Chapter
from safelight.cli.conformance.lists import list_cases
from safelight.cli.conformance.looks import look_cases
from safelight.cli.conformance.notices import notice_cases
from safelight.cli.conformance.options import option_cases
from safelight.cli.conformance.run import open_workbench, run_cases, running_lab_child
from safelight.cli.conformance.submits import submit_cases
from safelight.cli.conformance.tellings import telling_cases
from safelight.errors import ConfigurationError
from safelight.lab.dialects import dialect_names
from safelight.providers import Declaration, load_declaration
from safelight.providers.loading import packaged_text

PROMISES = re.compile(
    r"\s*(title|price|default_p95_s|p95_floor_s|p95_cap_s|deadline_s|is_default|max_prompt_chars|retires_on"
    r"|base_url|region|hosts|link_hosts|timeout_s|cost_unit|result_lifetime_s|result_hosts|visibility_delay_s"
    r"|min_poll_gap_s|max_active|max_active_tasks|max_calls|calls_per_s|polls_per_s|max_answer_bytes)\s*="
)

LIKELIEST: Mapping[str, tuple[Chapter, ...]] = {
    "submit": (submit_cases, option_cases),
    "answer": (look_cases, telling_cases),
    "poll": (look_cases, telling_cases),
    "result": (look_cases,),
    "cancel": (look_cases,),
    "list": (list_cases,),
    "callback": (notice_cases, telling_cases),
    "failures": (look_cases,),
}
"""By the first word of a table: the chapters that would know of a line in it, to be asked first."""

OFFERS = re.compile(
    r"\s*((operations|sizes|aspect_ratios|takes_mask|max_images)\s*=|max_n\s*=\s*([5-9]|[1-9]\d)\b)"
)
"""In a table of a model: to offer less is no mistake. Without `max_n` it is four."""


@dataclass
class Tally:
    """What became of one provider's mutants."""

    name: str
    refused: int = 0
    caught: int = 0
    same: int = 0
    promises: int = 0
    survivors: list[str] = field(default_factory=list)

    @property
    def mutants(self) -> int:
        return self.refused + self.caught + len(self.survivors)


@dataclass(frozen=True, slots=True)
class Mutant:
    """A declaration without one line of one of its tables; whether the suite can hold that line."""

    place: str
    table: str
    text: str
    is_held: bool


def mutants_of(text: str) -> Iterator[Mutant]:
    """One for each line that says something."""
    lines = text.splitlines(keepends=True)
    table = begin = ""
    for number, line in enumerate(lines):
        if line.startswith("["):
            table = line.strip()
        if line.strip() and not line.lstrip().startswith("#"):
            # What stands further in belongs to the value that was begun above it.
            begin = begin if line.startswith((" ", "]")) else line
            is_offer = table == "[[models]]" and OFFERS.match(begin)
            is_promise = PROMISES.match(begin) or is_offer or table == "[hosts]"
            without = "".join(lines[:number] + lines[number + 1 :])
            yield Mutant(f"{number + 1}: {line.strip()}", table.strip("[]"), without, not is_promise)


async def try_mutants(name: str, lab_url: str, *, sample: int | None) -> Tally:
    """Run the suite on every mutant of one provider."""
    tally = Tally(name)
    text = packaged_text(name)
    whole = load_declaration(text)
    mutants = list(mutants_of(text))
    told = [mutant for mutant in mutants if mutant.is_held]
    tally.promises = len(mutants) - len(told)
    if sample is not None and len(told) > sample:
        told = random.Random(name).sample(told, sample)
    for mutant in told:
        try:
            declaration = load_declaration(mutant.text)
        except ConfigurationError:
            tally.refused += 1
            continue
        if declaration == whole:
            tally.same += 1
        elif await _is_caught(declaration, name, lab_url, table=mutant.table):
            tally.caught += 1
        else:
            tally.survivors.append(mutant.place)
    return tally


async def _is_caught(declaration: Declaration, name: str, lab_url: str, *, table: str) -> bool:
    likeliest = LIKELIEST.get(table.partition(".")[0], ())
    try:
        async with open_workbench(declaration, name, lab_url) as bench:
            verdicts = await run_cases(bench, until_fault=True, first=likeliest)
    except ConfigurationError:
        return True
    return not verdicts[-1].is_good


async def main(names: list[str], sample: int | None) -> int:
    """Print a line for each provider and one for all; the number of survivors is the exit code's reason."""
    tallies = []
    async with running_lab_child() as lab_url:
        for name in names:
            tally = await try_mutants(name, lab_url, sample=sample)
            tallies.append(tally)
            say(
                f"{name}: {tally.mutants} mutants, {tally.refused} refused, {tally.caught} caught, "
                f"{len(tally.survivors)} survived; {tally.promises} promises and {tally.same} defaults left out"
            )
            for place in tally.survivors:
                say(f"    survived without line {place}")
    total, survived = sum(one.mutants for one in tallies), sum(len(one.survivors) for one in tallies)
    say(f"all: {total} mutants, {total - survived} caught, {survived} survived")
    return survived


def say(line: str) -> None:
    """One line, at once: a run takes half an hour."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sample", type=int)
    given = parser.parse_args()
    sys.exit(asyncio.run(main(given.names or list(dialect_names()), given.sample)) > 0)
