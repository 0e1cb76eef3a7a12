"""A process of its own that gives the first account of a fresh instance its credits and a key."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from safelight.db import accounts, ledger
from safelight.db.installation import load_pepper
from safelight.db.opening import open_database
from safelight.settings import Settings, write_private


async def prepare_account(data_dir: Path, credits_: int, database_url: str | None = None) -> None:
    """Grant the credits to the account `default`; make it and its key where `serve` has not."""
    settings = Settings(data_dir=data_dir, database_url=database_url)
    key_file = data_dir / "key"
    async with open_database(settings) as database:
        pepper = await load_pepper(settings, database)
        async with database.transaction() as connection:
            account_id = await accounts.find_account(connection, accounts.FIRST_ACCOUNT)
            if account_id is None:
                account_id = await accounts.create_account(connection, accounts.FIRST_ACCOUNT)
            await ledger.grant(connection, account_id, credits_, note="bench")
            key = None
            if not key_file.exists():
                key = await accounts.create_key(connection, account_id, "bench", pepper)
        if key is not None:
            write_private(key_file, key)


if __name__ == "__main__":
    asyncio.run(prepare_account(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
