"""`safelight admin-keys`: keys of operators, for the routes below `/admin`. Works on the database itself."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

import typer

from safelight.cli.operator import operating
from safelight.cli.options import AsJson, DataDir
from safelight.cli.output import print_json, print_line, print_table
from safelight.cli.running import run, settings_of

commands = typer.Typer(no_args_is_help=True, help="Create, revoke and list keys of operators.")


@commands.command()
def create(
    name: Annotated[
        str, typer.Argument(metavar="[NAME]", help="Whose it is; the audit log has its id.")
    ] = "",
    as_json: AsJson = False,
    data_dir: DataDir = None,
) -> None:
    """Create an operator's key and print it, once: only a hash of it is kept."""
    settings = settings_of(data_dir)

    async def work() -> str:
        async with operating(settings, makes_keys=True) as at:
            return await at.administration.create_admin_key(name, at.by) or ""

    key = run(work())
    if as_json:
        print_json({"key": key, "name": name})
    else:
        print_line(key)


@commands.command()
def revoke(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="The id that `admin-keys list` shows.")],
    data_dir: DataDir = None,
) -> None:
    """End an operator's key: it is refused at once."""
    settings = settings_of(data_dir)

    async def work() -> None:
        async with operating(settings) as at:
            await at.administration.revoke_admin_key(key_id, at.by)

    run(work())
    print_line(f"{key_id}  revoked")


@commands.command("list")
def list_keys(as_json: AsJson = False, data_dir: DataDir = None) -> None:
    """List operators' keys, with nothing secret in it."""
    settings = settings_of(data_dir)

    async def work() -> list[dict[str, Any]]:
        from safelight.db import admin

        async with operating(settings) as at, at.database.connection() as connection:
            return [asdict(key) for key in await admin.list_admin_keys(connection)]

    found = run(work())
    if as_json:
        print_json({"data": found, "next_cursor": None})
        return
    columns = ["id", "created_at", "revoked_at", "name"]
    print_table(columns, [[key[column] for column in columns] for key in found])
