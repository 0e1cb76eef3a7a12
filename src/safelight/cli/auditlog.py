"""`safelight audit`: who did what, and whether anybody has meddled with the record of it."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safelight.cli.options import AsJson, DataDir
from safelight.cli.output import print_json, print_line, print_table
from safelight.cli.running import FAILED, run, settings_of

if TYPE_CHECKING:
    from safelight.db.auditlog import Chain

commands = typer.Typer(no_args_is_help=True, help="Read and verify the audit log.")


@commands.command()
def verify(as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """Check every line of the audit log against its hash; names the first that was changed, and exits with 1.

    Keep the hash that it prints elsewhere: as long as a later run names it too, nothing before it was changed.
    """
    settings = settings_of(data_dir)

    async def work() -> Chain:
        from safelight.db.auditlog import verify_chain
        from safelight.db.opening import open_database

        async with open_database(settings, must_exist=True) as database, database.connection() as connection:
            return await verify_chain(connection)

    chain = run(work())
    if as_json:
        print_json(asdict(chain))
    elif chain.broken_id is None:
        print_line(f"{chain.lines:,} lines are as they were written; the last hash is {chain.head}")
    else:
        print_line(f"line {chain.broken_id}: {chain.fault}")
    if chain.broken_id is not None:
        raise typer.Exit(FAILED)


@commands.command("list")
def list_lines(
    of: Annotated[
        str | None, typer.Option("--object", metavar="OBJECT", help="Only this one, such as task:0199….")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, metavar="N", help="How many at most.")] = 50,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List the audit log, newest line first."""
    settings = settings_of(data_dir)

    async def work() -> list[dict[str, Any]]:
        from safelight.db import adminviews
        from safelight.db.opening import open_database

        async with open_database(settings, must_exist=True) as database, database.connection() as connection:
            return await adminviews.audit_lines(connection, limit=limit, object_=of)

    found = run(work())
    if as_json:
        print_json({"data": found, "next_cursor": None})
        return
    columns = ["id", "created_at", "actor", "address", "action", "object", "outcome"]
    print_table(columns, [[line[column] for column in columns] for line in found])
