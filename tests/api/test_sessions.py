"""People in a browser: a key or a one-time ticket opens a session, and only our own pages can use it."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from http.cookies import SimpleCookie
from typing import Any

import pytest

from safelight.api.app import create_app
from safelight.api.parts import ApiParts
from safelight.db import accounts
from safelight.db.sessions import Holder
from safelight.domain.keys import parse_key
from tests.api.door import Answer, Door, running_door
from tests.api.operators import Operator

JSON = {"Content-Type": "application/json"}
DOORS = [("/v1/session", "/v1/tasks", "/v1"), ("/admin/session", "/admin/reviews", "/admin")]


async def test_a_key_opens_a_session_that_scripts_cannot_read_and_other_sites_cannot_send(door: Door) -> None:
    answer = await _open(door)
    assert answer.status == 201
    assert set(answer.json) == {"id", "name", "csrf_token", "expires_at"}
    assert answer.json["id"] == str(door.caller.account_id)
    cookie = _cookie_of(answer)
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "strict", "/v1")
    assert cookie.value not in answer.body.decode()
    listed = await door.ask("GET", "/v1/tasks", headers=_brings(answer))
    assert (listed.status, listed.json["data"]) == (200, [])
    shown = await door.ask("GET", "/v1/session", headers=_brings(answer))
    assert shown.json == answer.json


async def test_a_change_in_a_session_needs_the_token_that_only_our_own_page_knows(door: Door) -> None:
    opened = await _open(door)
    wish = JSON | _brings(opened) | {"Idempotency-Key": "in-a-session"}
    body = b'{"prompt": "a red shoe"}'
    origin, token = {"Origin": door.url}, {"X-CSRF-Token": opened.json["csrf_token"]}
    forged: list[dict[str, str]] = [
        {},
        {"X-CSRF-Token": ""},
        {"X-CSRF-Token": "0" * 64},
        token | {"Origin": "https://evil.example"},
        token | {"Origin": "null"},
    ]
    for headers in forged:
        refused = await door.ask("POST", "/v1/tasks", data=body, headers=wish | headers)
        assert (refused.status, refused.code) == (403, "csrf-refused")
    other = await _open(door)
    swapped = {"X-CSRF-Token": other.json["csrf_token"]}
    assert (await door.ask("POST", "/v1/tasks", data=body, headers=wish | swapped)).status == 403
    accepted = await door.ask("POST", "/v1/tasks", data=body, headers=wish | token | origin)
    assert accepted.status == 202


async def test_a_ticket_opens_one_session_once_even_when_many_try_at_the_same_time(door: Door) -> None:
    ticket = await _ticket(door)
    tries = await asyncio.gather(*(_redeem(door, ticket) for _ in range(8)))
    assert sorted(answer.status for answer in tries) == [201] + [401] * 7
    assert {answer.code for answer in tries if answer.status == 401} == {"ticket-refused"}
    (opened,) = [answer for answer in tries if answer.status == 201]
    assert opened.json["id"] == str(door.caller.account_id)


async def test_a_ticket_is_too_old_after_half_an_hour(door: Door) -> None:
    ticket = await _ticket(door)
    await door.database.shift_clock(timedelta(minutes=31))
    assert (await _redeem(door, ticket)).code == "ticket-refused"


async def test_a_session_ends_after_twelve_hours(door: Door) -> None:
    opened = await _open(door)
    await door.database.shift_clock(timedelta(hours=12, seconds=1))
    assert (await door.ask("GET", "/v1/session", headers=_brings(opened))).code == "unauthorized"


async def test_signing_out_ends_the_session_and_needs_the_token_too(door: Door) -> None:
    opened = await _open(door)
    assert (await door.ask("DELETE", "/v1/session", headers=_brings(opened))).code == "csrf-refused"
    token = {"X-CSRF-Token": opened.json["csrf_token"]}
    ended = await door.ask("DELETE", "/v1/session", headers=_brings(opened) | token)
    assert (ended.status, _cookie_of(ended).value) == (204, "")
    assert (await door.ask("GET", "/v1/session", headers=_brings(opened))).status == 401


async def test_a_revoked_key_ends_its_sessions_and_its_tickets(door: Door) -> None:
    opened, ticket = await _open(door), await _ticket(door)
    async with door.database.transaction() as connection:
        await accounts.revoke_key(connection, _key_id(door.caller.key))
    assert (await door.ask("GET", "/v1/session", headers=_brings(opened))).status == 401
    assert (await _redeem(door, ticket)).code == "ticket-refused"


async def test_a_session_opened_by_one_process_is_known_to_another(door: Door, parts: ApiParts) -> None:
    opened = await _open(door)
    async with running_door(parts) as second:
        listed = await second.ask("GET", "/v1/tasks", headers=_brings(opened))
        assert listed.status == 200
        ticket = await _ticket(door)
        assert (await _redeem(second, ticket)).status == 201
        assert (await _redeem(door, ticket)).status == 401


async def test_neither_door_takes_the_other_s_session_key_or_ticket(door: Door) -> None:
    customer, operator = await _open(door), await Operator.at(door)
    opened = await door.ask(
        "POST", "/admin/session", data=b"{}", headers=JSON | {"Authorization": f"Bearer {operator.key}"}
    )
    assert opened.status == 201
    assert _cookie_of(opened)["path"] == "/admin"
    assert (await door.ask("GET", "/admin/reviews", headers=_brings(opened))).status == 200
    stolen = _cookie_of(customer).value
    as_operator = {"Cookie": f"safelight_console={stolen}"}
    assert (await door.ask("GET", "/admin/reviews", headers=as_operator)).status == 401
    as_customer = {"Cookie": f"safelight_session={_cookie_of(opened).value}"}
    assert (await door.ask("GET", "/v1/tasks", headers=as_customer)).status == 401
    assert (await _redeem(door, await _ticket(door), at="/admin/session")).code == "ticket-refused"


async def test_an_operator_s_session_that_nobody_uses_ends_after_half_an_hour(door: Door) -> None:
    operator = await Operator.at(door)
    key = {"Authorization": f"Bearer {operator.key}"}
    opened = await door.ask("POST", "/admin/session", data=b"{}", headers=JSON | key)
    for _ in range(3):
        await door.database.shift_clock(timedelta(minutes=20))
        assert (await door.ask("GET", "/admin/reviews", headers=_brings(opened))).status == 200
    await door.database.shift_clock(timedelta(minutes=31))
    assert (await door.ask("GET", "/admin/reviews", headers=_brings(opened))).status == 401


@pytest.mark.parametrize(("path", "behind", "_"), DOORS)
@pytest.mark.parametrize("cookie", ["x", "x" * 43, '"; Path=/', "é" * 43, "a" * 5_000])
async def test_what_is_no_session_of_ours_is_nobody(
    door: Door, path: str, behind: str, cookie: str, _: str
) -> None:
    name = "safelight_session" if path == "/v1/session" else "safelight_console"
    for asked in (path, behind):
        answer = await door.ask("GET", asked, headers={"Cookie": f"{name}={cookie}"})
        assert answer.status in (401, 429)


@pytest.mark.parametrize("body", [b"[]", b'{"ticket": 1}', b'{"ticket": "x", "more": 1}', b"{", b"{}", b""])
async def test_what_opens_nothing_sets_no_cookie(door: Door, body: bytes) -> None:
    answer = await door.ask("POST", "/v1/session", data=body, headers=JSON)
    assert answer.status in (400, 401, 422)
    assert "Set-Cookie" not in answer.headers


async def test_a_session_does_not_renew_itself(door: Door) -> None:
    opened = await _open(door)
    token = {"X-CSRF-Token": opened.json["csrf_token"]}
    again = await door.ask("POST", "/v1/session", data=b"{}", headers=JSON | _brings(opened) | token)
    assert again.status == 401


async def test_only_hashes_of_tokens_are_kept(door: Door) -> None:
    opened, ticket = await _open(door), await _ticket(door)
    async with door.database.connection() as connection:
        rows = await connection.fetch("SELECT sessions::text AS row FROM sessions")
        rows += await connection.fetch("SELECT session_tickets::text AS row FROM session_tickets")
    kept = "".join(row["row"] for row in rows)
    assert kept
    assert _cookie_of(opened).value not in kept
    assert ticket not in kept


def test_session_routes_are_described(parts: ApiParts) -> None:
    paths = create_app(parts).openapi()["paths"]
    assert {path: set(paths[path]) for path, _, _ in DOORS} == {
        path: {"get", "post", "delete"} for path, _, _ in DOORS
    }


async def _open(door: Door) -> Answer:
    return await door.request("POST", "/v1/session", data=b"{}", headers=JSON)


async def _ticket(door: Door) -> str:
    issued = await door.parts.sessions.issue(Holder(_key_id(door.caller.key), is_operator=False))
    return issued.token


async def _redeem(door: Door, ticket: str, *, at: str = "/v1/session") -> Answer:
    return await door.ask("POST", at, json={"ticket": ticket})


def _cookie_of(answer: Answer) -> Any:
    cookies = SimpleCookie(answer.headers["Set-Cookie"])
    (cookie,) = cookies.values()
    return cookie


def _brings(answer: Answer) -> dict[str, str]:
    cookie = _cookie_of(answer)
    return {"Cookie": f"{cookie.key}={cookie.value}"}


def _key_id(key: str) -> str:
    parsed = parse_key(key)
    assert parsed is not None
    return parsed.id
