"""Accounts, credits and keys through the operator's door: once for each idempotency key, and written down."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from safelight.domain.ids import new_id
from safelight.domain.keys import parse_key
from tests.api.door import Caller, Door
from tests.api.operators import Operator

NOBODY = "01a228d0-0000-7000-8000-000000000000"


@pytest.fixture
async def operator(door: Door) -> Operator:
    return await Operator.at(door)


async def test_an_account_is_made_and_listed_with_its_balance(operator: Operator) -> None:
    name = f"shop {new_id()}"
    answer = await operator.post("/admin/accounts", {"name": name})
    assert (answer.status, answer.json["name"]) == (201, name)
    found = await every(operator, "/admin/accounts?limit=100")
    (account,) = [one for one in found if one["id"] == answer.json["id"]]
    assert (account["available"], account["held"], account["open_tasks"]) == (0, 0, 0)
    again = await operator.post("/admin/accounts", {"name": name})
    assert (again.status, again.code) == (409, "account-exists")
    (line,) = await operator.audit(f"account:{answer.json['id']}")
    assert (line["action"], line["actor"], line["address"]) == ("account.create", operator.name, "127.0.0.1")
    assert (line["account_id"], line["detail"]) == (answer.json["id"], {"name": name})
    assert line["request_id"] == answer.headers["X-Request-Id"]


async def test_one_account_is_read_by_its_id_with_what_it_has(door: Door, operator: Operator) -> None:
    account_id = door.caller.account_id
    path = f"/admin/accounts/{account_id}"
    used, revoked = [
        (await operator.post(f"{path}/keys", {"name": name})).json["key"] for name in ("till 1", "till 2")
    ]
    key = parse_key(revoked)
    assert key is not None
    assert (await operator.post(f"/admin/keys/{key.id}/revoke")).status == 204
    await _endpoint(door, caller := Caller(account_id, used))
    await _endpoint(door, caller, becomes="disabled_at = now(), disabled_reason = 'failing'")
    await _endpoint(door, caller, becomes="deleted_at = now()")
    await _endpoint(door, await door.new_caller())
    found = (await operator.get(path)).json
    (row,) = [row for row in await every(operator, "/admin/accounts?limit=100") if row["id"] == found["id"]]
    assert found == {**row, "keys_active": 2, "endpoints_enabled": 1, "endpoints_disabled": 1}
    assert (found["id"], found["available"], found["held"]) == (str(account_id), 1_000, 0)


async def test_an_account_that_is_not_there_is_not_found(operator: Operator) -> None:
    for account_id in (NOBODY, "nonsense"):
        answer = await operator.get(f"/admin/accounts/{account_id}")
        assert (answer.status, answer.code) == (404, "not-found")


async def _endpoint(door: Door, caller: Caller, *, becomes: str = "") -> None:
    """Register an endpoint, and let time have brought it where it is to be."""
    body = {"url": "http://127.0.0.1:9/hooks"}
    made = await door.request("POST", "/v1/webhook-endpoints", json=body, by=caller)
    assert made.status == 201
    if becomes:
        async with door.database.connection() as connection:
            await connection.execute(
                f"UPDATE webhook_endpoints SET {becomes}, wake_at = 'infinity' WHERE id = $1",
                UUID(made.json["id"]),
            )


async def every(operator: Operator, path: str) -> list[dict[str, Any]]:
    """All pages of a list."""
    found: list[dict[str, Any]] = []
    cursor = ""
    while True:
        page = (await operator.get(path + cursor)).json
        found += page["data"]
        if page["next_cursor"] is None:
            return found
        cursor = f"&cursor={page['next_cursor']}"


async def test_credits_are_granted_once_for_a_key(door: Door, operator: Operator) -> None:
    account_id = door.caller.account_id
    path = f"/admin/accounts/{account_id}/grants"
    key = str(new_id())
    first = await operator.post(path, {"amount": 500, "reason": "invoice 1001"}, key=key)
    assert (first.status, first.json) == (
        201,
        {"account_id": str(account_id), "amount": 500, "available": 1_500},
    )
    again = await operator.post(path, {"reason": "invoice 1001", "amount": 500}, key=key)
    assert (again.status, again.body) == (201, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    other = await operator.post(path, {"amount": 5_000, "reason": "invoice 1001"}, key=key)
    assert (other.status, other.code) == (422, "idempotency-key-reused")
    elsewhere = await operator.post(
        f"/admin/accounts/{NOBODY}/grants", {"amount": 500, "reason": "x"}, key=key
    )
    assert elsewhere.status == 422
    assert (await door.request("GET", "/v1/balance")).json == {"available": 1_500, "held": 0}
    lines = await operator.audit(f"account:{account_id}")
    assert [(line["action"], line["detail"]) for line in lines] == [
        ("credits.grant", {"amount": 500, "reason": "invoice 1001"})
    ]


async def test_credits_that_are_not_there_cannot_be_taken_back_and_nothing_is_written(
    door: Door, operator: Operator
) -> None:
    path = f"/admin/accounts/{door.caller.account_id}/grants"
    answer = await operator.post(path, {"amount": -1_001, "reason": "typing error"}, key="back-1")
    assert (answer.status, answer.code) == (409, "credits-refused")
    assert await operator.audit(f"account:{door.caller.account_id}") == []
    taken = await operator.post(path, {"amount": -1_000, "reason": "typing error"}, key="back-1")
    assert (taken.status, taken.json["available"]) == (201, 0)


async def test_a_grant_needs_its_key_its_reason_and_an_account(door: Door, operator: Operator) -> None:
    path = f"/admin/accounts/{door.caller.account_id}/grants"
    missing = await operator.post(path, {"amount": 5, "reason": "x"})
    assert (missing.status, missing.code) == (400, "idempotency-key-missing")
    nobody = await operator.post(f"/admin/accounts/{NOBODY}/grants", {"amount": 5, "reason": "x"}, key="n-1")
    assert (nobody.status, nobody.code) == (404, "not-found")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"amount": 5}, "reason"),
        ({"amount": 5, "reason": ""}, "reason"),
        ({"amount": 0, "reason": "x"}, "amount"),
        ({"amount": "5", "reason": "x"}, "amount"),
        ({"amount": 5.0, "reason": "x"}, "amount"),
        ({"amount": True, "reason": "x"}, "amount"),
        ({"amount": 10**16, "reason": "x"}, "amount"),
        ({"amount": 5, "reason": "x", "held": 5}, "held"),
        ({"amount": 5, "reason": "with \0"}, "reason"),
        ({"amount": 5, "reason": "\ud800"}, "reason"),
    ],
)
async def test_a_grant_that_does_not_fit_is_refused_by_its_field(
    door: Door, operator: Operator, body: dict[str, Any], field: str
) -> None:
    path = f"/admin/accounts/{door.caller.account_id}/grants"
    answer = await operator.post(path, body, key=str(new_id()))
    assert (answer.status, answer.code) == (422, "validation-failed")
    assert [error["field"] for error in answer.json["errors"]] == [field]
    assert (await door.request("GET", "/v1/balance")).json["available"] == 1_000


async def test_a_key_is_shown_once_works_and_ends(door: Door, operator: Operator) -> None:
    account_id = door.caller.account_id
    made = await operator.post(f"/admin/accounts/{account_id}/keys", {"name": "till 1"})
    assert made.status == 201
    text = made.json["key"]
    key = parse_key(text)
    assert key is not None
    caller = Caller(account_id, text)
    assert (await door.request("GET", "/v1/balance", by=caller)).status == 200
    listed = (await operator.get(f"/admin/accounts/{account_id}/keys")).json["data"]
    assert key.id in {one["id"] for one in listed}
    assert key.secret not in str(listed)
    assert (await operator.post(f"/admin/keys/{key.id}/revoke")).status == 204
    lines = await operator.audit(f"key:{key.id}")
    assert [line["action"] for line in lines] == ["key.revoke", "key.create"]
    assert key.secret not in str(lines)
    assert (await operator.post("/admin/keys/nobody/revoke")).status == 404
    assert (await operator.post("/admin/keys/%C3%A9/revoke")).status == 404
    assert (await operator.post(f"/admin/accounts/{NOBODY}/keys", {})).status == 404


async def test_an_account_s_name_cannot_be_empty_or_hold_control_characters(operator: Operator) -> None:
    for name in ("", "a\nb", "\0", 5, None):
        answer = await operator.post("/admin/accounts", {"name": name})
        assert (answer.status, answer.code) == (422, "validation-failed"), name
    for raw in (b"", b"[]", b"{", b'{"name": "a", "name": "b"}'):
        assert (await operator.post("/admin/accounts", raw)).status == 400
