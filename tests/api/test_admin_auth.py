"""Who may operate: keys of their own kind, on every route, and a record of who knocks without one."""

from __future__ import annotations

import re
from time import monotonic
from unittest.mock import patch

import pytest
from structlog.testing import capture_logs

from safelight.api.admin.keeper import Keeper
from safelight.api.app import create_app
from safelight.api.parts import ApiParts
from safelight.domain import keys
from tests.api.door import Door
from tests.api.operators import TESTS, Operator

NOBODY = "01a228d0-0000-7000-8000-000000000000"
SESSION = "/admin/session"
"""Without anybody in it, it says just that: test_sessions.py."""
ROUTES = [
    ("GET", "/admin/figures"),
    ("GET", "/admin/reviews"),
    ("GET", "/admin/tasks"),
    ("GET", "/admin/tasks/{id}"),
    ("POST", "/admin/tasks/{id}/decisions"),
    ("POST", "/admin/tasks/{id}/viewings"),
    ("GET", "/admin/tasks/{id}/pictures/{picture_id}"),
    ("GET", "/admin/tasks/{id}/pictures/{picture_id}/thumbnail"),
    ("GET", "/admin/findings"),
    ("POST", "/admin/findings/{id}/resolve"),
    ("GET", "/admin/notices"),
    ("GET", "/admin/providers"),
    ("GET", "/admin/reconciliations"),
    ("GET", "/admin/audit"),
    ("GET", "/admin/accounts"),
    ("POST", "/admin/accounts"),
    ("GET", "/admin/accounts/{id}"),
    ("POST", "/admin/accounts/{id}/grants"),
    ("GET", "/admin/accounts/{id}/entries"),
    ("GET", "/admin/accounts/{id}/keys"),
    ("POST", "/admin/accounts/{id}/keys"),
    ("POST", "/admin/keys/{id}/revoke"),
    ("GET", "/admin/webhook-endpoints"),
    ("GET", "/admin/deliveries"),
]


def test_every_admin_route_is_in_the_matrix_and_takes_the_operator_s_key_alone(parts: ApiParts) -> None:
    document = create_app(parts).openapi()
    found = {
        (method.upper(), path): described["security"]
        for path, methods in document["paths"].items()
        for method, described in methods.items()
        if path.startswith("/admin") and path != SESSION
    }
    assert found == {route: [{"admin_key": []}] for route in ROUTES}
    others = [
        described["security"]
        for path, methods in document["paths"].items()
        for described in methods.values()
        if not path.startswith("/admin")
    ]
    assert [{"admin_key": []}] not in others


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_no_admin_route_says_anything_without_its_key(door: Door, method: str, path: str) -> None:
    operator = await Operator.at(door)
    good, other = operator.key, keys.new_key(keys.ADMIN_PREFIX)
    wrong = {
        "none": None,
        "a customer's key": f"Bearer {door.caller.key}",
        "another scheme": f"Basic {good}",
        "truncated": f"Bearer {good[:-1]}",
        "a customer's prefix": f"Bearer {good.replace('sl_admin_', 'sl_live_')}",
        "an id that does not exist": f"Bearer {other.text}",
        "another secret": f"Bearer {keys.ApiKey(operator.id, other.secret, keys.ADMIN_PREFIX).text}",
        "beyond ASCII": f"Bearer {good[:-1]}é",
    }
    target = path.replace("{id}", NOBODY)
    answers = {
        name: await door.ask(method, target, headers={"Authorization": value} if value else {})
        for name, value in wrong.items()
    }
    assert {name: answer.status for name, answer in answers.items() if answer.status != 401} == {}
    bodies = {str({**answer.json, "request_id": ""}) for answer in answers.values()}
    assert len(bodies) == 1
    assert {answer.headers["WWW-Authenticate"] for answer in answers.values()} == {"Bearer"}


@pytest.mark.parametrize("path", ["/v1/balance", "/v1/tasks", "/v1/models", "/v1/entries"])
async def test_an_operator_s_key_opens_nothing_of_a_customer(door: Door, path: str) -> None:
    operator = await Operator.at(door)
    assert (await operator.get(path)).status == 401


async def test_a_customer_s_secret_under_an_operator_s_prefix_is_refused(door: Door) -> None:
    parsed = keys.parse_key(door.caller.key)
    assert parsed is not None
    disguised = keys.ApiKey(parsed.id, parsed.secret, keys.ADMIN_PREFIX).text
    answer = await door.ask("GET", "/admin/reviews", headers={"Authorization": f"Bearer {disguised}"})
    assert answer.status == 401


async def test_an_operator_s_key_that_was_revoked_is_refused_at_once(door: Door) -> None:
    operator = await Operator.at(door)
    assert (await operator.get("/admin/reviews")).status == 200
    await door.parts.administration.revoke_admin_key(operator.id, TESTS)
    assert (await operator.get("/admin/reviews")).status == 401


async def test_refusals_are_counted_and_written_down_but_not_without_end(door: Door) -> None:
    operator = await Operator.at(door)

    async def refusals() -> int:
        async with door.database.connection() as connection:
            found: int = await connection.fetchval(
                "SELECT count(*) FROM audit_lines WHERE action = 'admin.refused' AND outcome = 'refused'"
                " AND actor = 'unknown' AND address = '127.0.0.1' AND request_id <> ''"
            )
            return found

    async def counted() -> float:
        text = (await door.ask("GET", "/metrics")).body.decode()
        match = re.search(r"^safelight_admin_refusals_total (\S+)", text, re.MULTILINE)
        assert match
        return float(match[1])

    before, count = await refusals(), await counted()
    with capture_logs() as logs:
        for _ in range(5):
            assert (await door.ask("GET", "/admin/audit")).status == 401
    (line,) = [line for line in logs if line["event"] == "admin_refused"]
    assert line["address"] == "127.0.0.1"
    assert await refusals() == before + 1, "one line a minute for each address"
    assert await counted() == count + 5
    assert (await operator.get("/admin/audit")).status == 200


async def test_guessing_is_slowed_down_and_a_key_that_was_right_still_opens(door: Door) -> None:
    operator = await Operator.at(door)
    assert (await operator.get("/admin/reviews")).status == 200
    now = monotonic()
    with patch("safelight.api.limits.monotonic", lambda: now):
        statuses = []
        for _ in range(25):
            guess = keys.new_key(keys.ADMIN_PREFIX).text
            answer = await door.ask("GET", "/admin/reviews", headers={"Authorization": f"Bearer {guess}"})
            statuses.append(answer.status)
        assert statuses == [401] * 20 + [429] * 5
        assert (await operator.get("/admin/reviews")).status == 200


async def test_an_operator_over_the_rate_is_told_when_to_come_back(parts: ApiParts) -> None:
    keeper = Keeper(parts.database, parts.administration, parts.sessions)
    assert keeper.requests.take("one") == 0.0
    assert sum(bool(keeper.requests.take("one")) for _ in range(80)) > 10


async def test_only_a_keyed_hash_of_an_operator_s_key_is_kept_and_not_the_one_of_customers(
    door: Door,
) -> None:
    operator = await Operator.at(door, "night shift")
    secret = operator.key.removeprefix(keys.ADMIN_PREFIX)[keys.ID_LENGTH :][: keys.SECRET_LENGTH]
    async with door.database.connection() as connection:
        row = await connection.fetchrow("SELECT * FROM admin_keys WHERE id = $1", operator.id)
        dump = str(await connection.fetch("SELECT admin_keys::text FROM admin_keys"))
        told = str(await connection.fetch("SELECT audit_lines::text FROM audit_lines"))
    assert row is not None
    assert keys.is_secret(door.parts.administration.admin_pepper, secret, row["secret_hash"])
    assert not keys.is_secret(door.parts.pepper, secret, row["secret_hash"])
    assert secret not in dump + told


async def test_no_cookie_and_no_origin_opens_the_operator_s_door(door: Door) -> None:
    operator = await Operator.at(door)
    headers = {"Cookie": f"key={operator.key}; Authorization=Bearer {operator.key}", "Origin": door.url}
    answer = await door.ask("POST", "/admin/accounts", headers=headers)
    assert answer.status == 401
    assert "Set-Cookie" not in (await operator.get("/admin/reviews")).headers
    assert "Access-Control-Allow-Origin" not in (await operator.get("/admin/reviews")).headers
