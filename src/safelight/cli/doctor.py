"""`safelight doctor`: audit the books."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from safelight.cli.options import AsJson, DataDir
from safelight.cli.output import clean, count_words, print_json, print_line
from safelight.cli.running import FAILED, run, settings_of

if TYPE_CHECKING:
    from safelight.assets.store import AssetStore
    from safelight.db.database import Database
    from safelight.lifecycle.doctor import Finding
    from safelight.settings import Settings

commands = typer.Typer()


@commands.command(
    short_help="Audit the books, and every stored picture.",
    epilog="""\
Examples:

\b
  safelight doctor
  safelight doctor --no-bytes --json
""",
)
def doctor(
    no_bytes: Annotated[
        bool, typer.Option("--no-bytes", help="Do not read the pictures back, which takes longest.")
    ] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Audit the books: ledger, states, attempts, callbacks, and every stored picture.

    It only reads, and may run beside the service. It prints a line for each finding, and exits with 1 if
    there is one.
    """
    settings = settings_of(data_dir)

    async def work() -> list[Finding]:
        from safelight.lifecycle.doctor import examine

        found: list[Finding] = []
        async with (
            _books(settings) as (database, store),
            aclosing(examine(database, store, with_bytes=not no_bytes)) as findings,
        ):
            async for finding in findings:
                found.append(finding)
                if not as_json:
                    print_line(_line(finding))
        return found

    found = run(work())
    _conclude(found, with_bytes=not no_bytes, as_json=as_json)


@asynccontextmanager
async def _books(settings: Settings) -> AsyncIterator[tuple[Database, AssetStore]]:
    from safelight.assets.opening import open_store_of
    from safelight.db.opening import open_database

    async with open_database(settings, must_exist=True) as database:
        store = open_store_of(settings)
        try:
            yield database, store
        finally:
            await store.aclose()


def _conclude(found: list[Finding], *, with_bytes: bool, as_json: bool) -> None:
    from safelight.lifecycle.doctor import checks

    made = checks(with_bytes=with_bytes)
    findings = [finding for finding in found if not finding.is_information]
    if as_json:
        print_json(
            {"checks": [asdict(check) for check in made], "data": [asdict(finding) for finding in found]}
        )
    else:
        count = count_words(len(findings), "finding") if findings else "no findings"
        print_line(f"{len(made)} checks, {count}")
    if findings:
        raise typer.Exit(FAILED)


def _line(finding: Finding) -> str:
    mark = "(for information) " if finding.is_information else ""
    return clean(f"{finding.check}: {finding.subject}: {mark}{finding.detail}")
