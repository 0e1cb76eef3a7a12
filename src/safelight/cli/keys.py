"""`safelight keys`: API keys of accounts. These commands work on the database itself."""

from __future__ import annotations

import json
from typing import Annotated
from uuid import UUID

import typer

from safelight.cli.operator import operating
from safelight.cli.options import AsJson, DataDir
from safelight.cli.output import print_json, print_line, print_table
from safelight.cli.running import fail, run, settings_of

commands = typer.Typer(no_args_is_help=True, help="Create, revoke and list API keys.")

Account = Annotated[str, typer.Option(metavar="NAME", help="Whose key it is.")]


@commands.command(
    epilog="""\
Examples:

\b
  safelight keys create shop-backend
  safelight keys create batch --account archive --new-account
"""
)
def create(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="What the key is for; only you read it.")
    ] = "",
    account: Account = "default",
    new_account: Annotated[bool, typer.Option("--new-account", help="Make the account, too.")] = False,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Create a key and print it, once: only a hash of it is kept."""
    settings = settings_of(data_dir)

    async def work() -> str:
        from safelight.db import accounts

        async with operating(settings, makes_keys=True) as at:
            async with at.database.connection() as connection:
                account_id = await accounts.find_account(connection, account)
            if account_id is None and new_account:
                made = await at.administration.create_account(account, at.by)
                account_id = UUID(json.loads(made.body)["id"])
            if account_id is None:
                fail(f"there is no account {account!r}; --new-account makes it")
            return await at.administration.create_key(account_id, name, at.by)

    key = run(work())
    if as_json:
        print_json({"key": key, "account": account, "name": name})
    else:
        print_line(key)


@commands.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The id that `keys list` shows.")],
    data_dir: DataDir = None,
) -> None:
    """End a key: within seconds every door refuses it."""
    settings = settings_of(data_dir)

    async def work() -> None:
        async with operating(settings) as at:
            await at.administration.revoke_key(key_id, at.by)

    run(work())
    print_line(f"{key_id}  revoked")


@commands.command("list")
def list_keys(
    account: Annotated[str | None, typer.Option(metavar="NAME", help="Only keys of this account.")] = None,
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """List keys, with nothing secret in it."""
    settings = settings_of(data_dir)

    async def work() -> list[dict[str, object]]:
        from safelight.db import accounts
        from safelight.db.opening import open_database

        async with open_database(settings, must_exist=True) as database, database.connection() as connection:
            account_id = await accounts.find_account(connection, account) if account else None
            if account and account_id is None:
                fail(f"there is no account {account!r}")
            return [
                {
                    "id": key.id,
                    "account": key.account_name,
                    "name": key.name,
                    "created_at": key.created_at,
                    "revoked_at": key.revoked_at,
                }
                for key in await accounts.list_keys(connection, account_id)
            ]

    found = run(work())
    if as_json:
        print_json({"data": found, "next_cursor": None})
        return
    print_table(["id", "account", "created", "revoked", "name"], [_row(key) for key in found])


def _row(key: dict[str, object]) -> list[object]:
    return [key["id"], key["account"], key["created_at"], key["revoked_at"], key["name"]]
