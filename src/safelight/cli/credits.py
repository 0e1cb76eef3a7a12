"""`safelight credits`: grant them, and read the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safelight.cli.operator import operating
from safelight.cli.options import AsJson, DataDir, Url
from safelight.cli.output import print_json, print_line, print_table
from safelight.cli.remote import ask
from safelight.cli.running import fail, run, settings_of

if TYPE_CHECKING:
    from safelight.client import AsyncClient

commands = typer.Typer(no_args_is_help=True, help="Grant credits, and read balance and ledger.")

_MOST = 10**15
_PAGE = 100


@commands.command(
    epilog="""\
Examples:

\b
  safelight credits grant 500
  safelight credits grant 500 --account shop --note "invoice 1001"
  safelight credits grant --account shop -- -20
"""
)
def grant(
    amount: Annotated[
        int, typer.Argument(metavar="AMOUNT", min=-_MOST, max=_MOST, help="Below 0 takes some back.")
    ],
    account: Annotated[str, typer.Option(metavar="NAME", help="Who gets them.")] = "default",
    note: Annotated[str, typer.Option(metavar="TEXT", help="Why; it stays with the entry.")] = "",
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Grant credits to an account, as one entry of the ledger. Works on the database itself."""
    settings = settings_of(data_dir)

    async def work() -> tuple[int, int]:
        from safelight.db import accounts, views

        async with operating(settings) as at:
            async with at.database.connection() as connection:
                account_id = await accounts.find_account(connection, account)
            if account_id is None:
                fail(f"there is no account {account!r}")
            await at.administration.grant(account_id, amount, note, at.by)
            async with at.database.connection() as connection:
                return await views.balance(connection, account_id) or (0, 0)

    available, held = run(work())
    if as_json:
        print_json({"account": account, "available": available, "held": held})
    else:
        print_line(f"{account}  {available:,} available, {held:,} held")


@commands.command()
def balance(as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """Show what the key's account may spend, and what its open tasks hold."""
    found = ask(lambda client: client.balance(), data_dir=data_dir, url=url)
    if as_json:
        print_json({"available": found.available, "held": found.held})
    else:
        print_line(f"{found.available:,} available, {found.held:,} held")


@commands.command()
def entries(
    limit: Annotated[int, typer.Option(min=1, metavar="N", help="How many at most.")] = 20,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Go on where a list ended (next_cursor).")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List the ledger of the key's account, newest first."""

    async def collect(client: AsyncClient) -> tuple[list[Mapping[str, Any]], str | None]:
        found: list[Mapping[str, Any]] = []
        after = cursor
        while len(found) < limit:
            page = await client.entries(cursor=after, limit=min(_PAGE, limit - len(found)))
            found.extend(page.data)
            after = page.next_cursor
            if after is None:
                break
        return found, after

    found, after = ask(collect, data_dir=data_dir, url=url)
    if as_json:
        print_json({"data": found, "next_cursor": after})
        return
    titles = ["id", "created", "kind", "available", "held", "task", "note"]
    print_table(titles, [_row(entry) for entry in found])


def _row(entry: Mapping[str, Any]) -> list[Any]:
    columns = ["kind", "available_delta", "held_delta", "task_id", "note"]
    created_at = datetime.fromisoformat(entry["created_at"])
    return [entry["id"], created_at, *(entry.get(column) for column in columns)]
