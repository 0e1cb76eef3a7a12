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
from collections.abc import Iterator
from dataclasses import dataclass, field

from safelight.cli.conformance.run import open_workbench, run_cases, running_lab_child
from safelight.errors import ConfigurationError
from safelight.lab.dialects import dialect_names
from safelight.providers import Declaration, load_declaration
from safelight.providers.loading import packaged_text

PROMISES = re.compile(
    r"\s*(title|price|default_p95_s|p95_floor_s|p95_cap_s|deadline_s|is_default|max_prompt_chars|retires_on"
    r"|base_url|region|hosts|link_hosts|timeout_s|cost_unit|result_lifetime_s|result_hosts|visibility_delay_s"
    r"|min_poll_gap_s|max_active|max_active_tasks|max_calls|calls_per_s|polls_per_s|max_answer_bytes)\s*="
)

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


def mutants_of(text: str) -> Iterator[tuple[str, str, bool]]:
    """Every line that says something, the declaration without it, and whether the suite can hold it."""
    lines = text.splitlines(keepends=True)
    table = ""
    for number, line in enumerate(lines):
        if line.startswith("["):
            table = line.strip()
        if line.strip() and not line.lstrip().startswith("#"):
            is_offer = table == "[[models]]" and OFFERS.match(line)
            is_promise = PROMISES.match(line) or is_offer or table == "[hosts]"
            without = "".join(lines[:number] + lines[number + 1 :])
            yield f"{number + 1}: {line.strip()}", without, not is_promise


async def try_mutants(name: str, lab_url: str, *, sample: int | None) -> Tally:
    """Run the suite on every mutant of one provider."""
    tally = Tally(name)
    text = packaged_text(name)
    whole = load_declaration(text)
    mutants = list(mutants_of(text))
    told = [(place, mutant) for place, mutant, is_held in mutants if is_held]
    tally.promises = len(mutants) - len(told)
    if sample is not None and len(told) > sample:
        told = random.Random(name).sample(told, sample)
    for place, mutant in told:
        try:
            declaration = load_declaration(mutant)
        except ConfigurationError:
            tally.refused += 1
            continue
        if declaration == whole:
            tally.same += 1
        elif await _is_caught(declaration, name, lab_url):
            tally.caught += 1
        else:
            tally.survivors.append(place)
    return tally


async def _is_caught(declaration: Declaration, name: str, lab_url: str) -> bool:
    try:
        async with open_workbench(declaration, name, lab_url) as bench:
            verdicts = await run_cases(bench, until_fault=True)
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
