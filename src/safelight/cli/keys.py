"""`safelight keys`: API keys of accounts. These commands work on the database itself."""

from __future__ import annotations

from typing import Annotated

import typer

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
        from safelight.db.installation import load_pepper
        from safelight.db.opening import open_database

        async with open_database(settings, must_exist=True) as database:
            pepper = await load_pepper(settings, database)
            async with database.transaction() as connection:
                account_id = await accounts.find_account(connection, account)
                if account_id is None and new_account:
                    account_id = await accounts.create_account(connection, account)
                if account_id is None:
                    fail(f"there is no account {account!r}; --new-account makes it")
                return await accounts.create_key(connection, account_id, name, pepper)

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

    async def work() -> bool:
        from safelight.db import accounts
        from safelight.db.opening import open_database

        async with open_database(settings, must_exist=True) as database, database.transaction() as connection:
            return await accounts.revoke_key(connection, key_id)

    if not run(work()):
        fail(f"there is no key {key_id!r}")
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
