"""`safelight doctor`: audit the books, and do what is safe."""

from __future__ import annotations

import getpass
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safelight.cli.options import AsJson, DataDir
from safelight.cli.output import clean, count_words, print_json, print_line
from safelight.cli.running import FAILED, run, settings_of

if TYPE_CHECKING:
    from safelight.assets.store import AssetStore
    from safelight.db.database import Database
    from safelight.lifecycle.doctor import Finding, Outcome
    from safelight.lifecycle.repair import Repaired
    from safelight.settings import Settings

commands = typer.Typer()


@commands.command(
    short_help="Audit the books, and every stored picture.",
    epilog="""\
Examples:

\b
  safelight doctor
  safelight doctor --no-bytes --json
  safelight doctor --repair

Exit codes: 0 nothing found; 1 something found, repaired or not; 2 wrong usage, or no database.
""",
)
def doctor(
    no_bytes: Annotated[
        bool, typer.Option("--no-bytes", help="Do not read the pictures back, which takes longest.")
    ] = False,
    repair: Annotated[
        bool,
        typer.Option(
            "--repair", help="Afterwards wake what is due, delete stray bytes and receipts that have expired."
        ),
    ] = False,
    limit: Annotated[
        int, typer.Option(min=1, max=10_000, metavar="COUNT", help="Findings that are told of one check.")
    ] = 20,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Audit the books: ledger, states, attempts, callbacks, wake-ups, rules, and every stored picture.

    It only reads, and may run beside the service. It prints a line for each check with the rows it looked at, below it
    what it found and the command that settles it. --repair does what is safe by construction, and nothing else.
    """
    settings = settings_of(data_dir)

    async def work() -> tuple[list[Outcome], list[Repaired]]:
        made: list[Outcome] = []
        async with _books(settings) as (database, store):
            outcomes = _audit(database, store, settings, with_bytes=not no_bytes, shown=limit)
            async with aclosing(outcomes):
                async for outcome in outcomes:
                    made.append(outcome)
                    if not as_json:
                        _print(outcome)
            is_known = not any(outcome.check.name == "schema" and not outcome.is_ok for outcome in made)
            return made, await _repair(database, store, settings) if repair and is_known else []

    made, repaired = run(work())
    _conclude(made, repaired, as_json=as_json)


@asynccontextmanager
async def _books(settings: Settings) -> AsyncIterator[tuple[Database, AssetStore]]:
    """The books as they are: another schema is told, not mended."""
    from safelight.assets.opening import open_store_of
    from safelight.db.database import Database
    from safelight.db.opening import direct_url

    database = Database(await direct_url(settings, must_exist=True), pool_size=4)
    await database.open()
    store = open_store_of(settings)
    try:
        yield database, store
    finally:
        await store.aclose()
        await database.close()


async def _audit(
    database: Database, store: AssetStore, settings: Settings, *, with_bytes: bool, shown: int
) -> AsyncGenerator[Outcome, None]:
    from safelight.cli.surroundings import SCHEMA, look_around, providers_in_use
    from safelight.lifecycle.doctor import Books, audit_books

    async with aclosing(look_around(database, settings)) as around:
        async for outcome in around:
            yield outcome
            if outcome.check is SCHEMA and not outcome.is_ok:
                return  # no question fits another schema
    books = Books(
        database,
        store,
        providers_in_use(settings),
        settings.sweep_interval_s,
        keep_deliveries_days=settings.keep_deliveries_days,
    )
    async with aclosing(audit_books(books, with_bytes=with_bytes, shown=shown)) as outcomes:
        async for outcome in outcomes:
            yield outcome


async def _repair(database: Database, store: AssetStore, settings: Settings) -> list[Repaired]:
    from safelight.domain.audit import Actor
    from safelight.lifecycle.repair import Repair

    by = Actor(f"os:{getpass.getuser()}")
    return await Repair(database, store, by, keep_receipts_days=settings.keep_receipts_days).repair()


def _conclude(made: Sequence[Outcome], repaired: Sequence[Repaired], *, as_json: bool) -> None:
    bad = [outcome for outcome in made if not outcome.is_ok]
    if as_json:
        print_json(
            {
                "is_ok": not bad,
                "checks": [_outcome_json(outcome) for outcome in made],
                "repaired": [
                    {"act": act.act, "count": act.count, "named": list(act.named)} for act in repaired
                ],
            }
        )
    else:
        for act in repaired:
            names = f": {', '.join(act.named)}{' …' if act.count > len(act.named) else ''}"
            print_line(clean(f"repaired  {act.act} ({act.count}){names if act.named else ''}"))
        found = sum(_count(outcome) for outcome in bad)
        count = count_words(found, "finding") if bad else "no findings"
        print_line(f"{len(made)} checks, {count}")
    if bad:
        raise typer.Exit(FAILED)


def _print(outcome: Outcome) -> None:
    state = "ok" if outcome.is_ok else "FINDING" if not outcome.trouble else "TROUBLE"
    check = outcome.check
    print_line(
        f"{state:<8} {check.name:<14} {check.covers:<12} {outcome.rows:>9,} rows {outcome.seconds:>8.2f} s"
    )
    for finding in outcome.findings:
        print_line(_line(finding))
    if outcome.more:
        print_line(f"    … and {outcome.more:,} more")
    if outcome.trouble:
        print_line(clean(f"    {check.name}: {outcome.trouble}"))
    if not outcome.is_ok:
        print_line(f"    {check.invariant} → {check.remedy}")


def _line(finding: Finding) -> str:
    mark = "(for information) " if finding.is_information else ""
    return clean(f"    {finding.check}: {finding.subject}: {mark}{finding.detail}")


def _count(outcome: Outcome) -> int:
    told = sum(not finding.is_information for finding in outcome.findings)
    return told + outcome.more + bool(outcome.trouble)


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    check = outcome.check
    return {
        "name": check.name,
        "covers": check.covers.split(),
        "invariant": check.invariant,
        "is_ok": outcome.is_ok,
        "rows": outcome.rows,
        "seconds": round(outcome.seconds, 3),
        "findings": [
            {"subject": found.subject, "detail": found.detail, "is_information": found.is_information}
            for found in outcome.findings
        ],
        "more": outcome.more,
        "trouble": outcome.trouble,
        "remedy": check.remedy,
    }
