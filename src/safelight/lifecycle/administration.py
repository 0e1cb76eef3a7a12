"""What operators change beside tasks: accounts, keys, credits, findings. Each change is in the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from safelight.db import accounts, admin, auditlog, ledger
from safelight.db.database import Database
from safelight.db.statements import Connection
from safelight.domain.audit import REFUSED, Actor
from safelight.domain.keys import ID_LENGTH, PREFIX
from safelight.errors import LedgerError, RequestError
from safelight.lifecycle.once import Answered, Once, change_once


@dataclass(frozen=True, slots=True)
class Administration:
    """The verbs of the operator; `pepper` and `admin_pepper` hash the keys of customers and of operators."""

    database: Database
    pepper: bytes
    admin_pepper: bytes

    async def create_account(self, name: str, by: Actor, once: Once | None = None) -> Answered:
        """Make an empty account.

        Raises:
            RequestError: 409, there is one of that name; 422, the name is empty.
        """

        async def work(connection: Connection) -> dict[str, Any]:
            account_id = await accounts.create_account(connection, name)
            await auditlog.write_line(
                connection,
                by,
                "account.create",
                f"account:{account_id}",
                account_id=account_id,
                detail={"name": name},
            )
            return {"id": str(account_id), "name": name}

        return await change_once(self.database, once, work)

    async def grant(
        self, account_id: UUID, amount: int, reason: str, by: Actor, *, once: Once | None = None
    ) -> Answered:
        """Add credits, or with a negative amount take some back.

        Raises:
            RequestError: 404 no such account, 409 more would be taken than is available.
        """

        async def work(connection: Connection) -> dict[str, Any]:
            found = await ledger.lock_accounts(connection, [account_id])
            if account_id not in found:
                raise RequestError(404, "not-found", "There is no such account.")
            try:
                await ledger.grant(connection, account_id, amount, note=reason)
            except LedgerError as error:
                raise RequestError(409, "credits-refused", f"{str(error).capitalize()}.") from None
            await auditlog.write_line(
                connection,
                by,
                "credits.grant",
                f"account:{account_id}",
                account_id=account_id,
                detail={"amount": amount, "reason": reason},
            )
            available = found[account_id].available + amount
            return {"account_id": str(account_id), "amount": amount, "available": available}

        return await change_once(self.database, once, work)

    async def create_key(self, account_id: UUID, name: str, by: Actor) -> str:
        """Make a key of an account and return its text, which cannot be had a second time.

        Raises:
            RequestError: 404, there is no such account.
        """
        async with self.database.transaction() as connection:
            text = await accounts.create_key(connection, account_id, name, self.pepper)
            key_id = text[len(PREFIX) :][:ID_LENGTH]
            await auditlog.write_line(
                connection, by, "key.create", f"key:{key_id}", account_id=account_id, detail={"name": name}
            )
        return text

    async def revoke_key(self, key_id: str, by: Actor) -> None:
        """End a key of an account.

        Raises:
            RequestError: 404, there is no such key.
        """
        async with self.database.transaction() as connection:
            row = await accounts.read_key(connection, key_id)
            if row is None or not await accounts.revoke_key(connection, key_id):
                raise RequestError(404, "not-found", "There is no such key.")
            await auditlog.write_line(
                connection, by, "key.revoke", f"key:{key_id}", account_id=row.account_id
            )

    async def create_admin_key(self, name: str, by: Actor, *, is_first: bool = False) -> str | None:
        """Make an operator's key and return its text; with `is_first` only if there never was one."""
        async with self.database.transaction() as connection:
            if is_first and await admin.list_admin_keys(connection):
                return None
            key = await admin.create_admin_key(connection, name, self.admin_pepper)
            await auditlog.write_line(
                connection, by, "admin_key.create", f"admin_key:{key.id}", detail={"name": name}
            )
        return key.text

    async def revoke_admin_key(self, key_id: str, by: Actor) -> None:
        """End an operator's key.

        Raises:
            RequestError: 404, there is no such key.
        """
        async with self.database.transaction() as connection:
            if not await admin.revoke_admin_key(connection, key_id):
                raise RequestError(404, "not-found", "There is no such key.")
            await auditlog.write_line(connection, by, "admin_key.revoke", f"admin_key:{key_id}")

    async def resolve_finding(
        self, finding_id: int, note: str, by: Actor, once: Once | None = None
    ) -> Answered:
        """Note what came of a finding.

        Raises:
            RequestError: 404 no such finding, 409 somebody was faster.
        """

        async def work(connection: Connection) -> dict[str, Any]:
            found = await admin.resolve_finding(connection, finding_id, resolved_by=by.name, resolution=note)
            if found is None:
                raise RequestError(404, "not-found", "There is no such finding.")
            if not found.is_new:
                raise RequestError(409, "already-decided", "Somebody has resolved this finding already.")
            task = {"task_id": str(found.task_id)} if found.task_id else {}
            await auditlog.write_line(
                connection, by, "finding.resolve", f"finding:{finding_id}", detail={"note": note, **task}
            )
            return {"id": str(finding_id), "resolved_by": by.name}

        return await change_once(self.database, once, work)

    async def note_refusal(self, by: Actor, action: str) -> None:
        """Somebody knocked at the operator's door without its key."""
        async with self.database.transaction() as connection:
            await auditlog.write_line(connection, by, action, outcome=REFUSED)
