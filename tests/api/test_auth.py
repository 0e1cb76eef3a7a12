"""Who is let in: API keys, their ends, and the limits on knocking."""

from __future__ import annotations

import asyncio
import dataclasses
from time import monotonic
from unittest.mock import patch

import pytest

from safelight.api import auth, headers
from safelight.api.limits import Limit
from safelight.api.parts import ApiParts
from safelight.db import accounts
from safelight.domain import keys
from safelight.domain.ids import new_id
from safelight.errors import RequestError
from tests.api.door import PEPPER, Answer, Door, running_door


def wrong_keys(good: str) -> dict[str, str | None]:
    """Authorization headers that must all get the same answer."""
    other = keys.new_key()
    known_id = keys.ApiKey(good[8:20], other.secret).text
    return {
        "none": None,
        "empty": "",
        "scheme alone": "Bearer",
        "another scheme": f"Basic {good}",
        "no scheme": good,
        "truncated": f"Bearer {good[:-1]}",
        "lengthened": f"Bearer {good}x",
        "another case": f"Bearer {good.swapcase()}",
        "another environment": f"Bearer {good.replace('live', 'test')}",
        "a wrong checksum": f"Bearer {good[:-1]}{'a' if good[-1] != 'a' else 'b'}",
        "an id that does not exist": f"Bearer {other.text}",
        "another secret for a known id": f"Bearer {known_id}",
        "two spaces": f"Bearer  {good}",
        "beyond ASCII": f"Bearer {good[:-1]}é",
    }


async def knock(door: Door, authorization: str | None) -> Answer:
    headers = {} if authorization is None else {"Authorization": authorization}
    return await door.ask("GET", "/v1/balance", headers=headers)


def without_id(answer: Answer) -> dict[str, object]:
    return {name: value for name, value in answer.json.items() if name != "request_id"}


async def test_every_wrong_key_gets_the_same_answer(door: Door) -> None:
    async with door.database.connection() as connection:
        revoked = await accounts.create_key(connection, door.caller.account_id, "", PEPPER)
        assert await accounts.revoke_key(connection, revoked[8:20])
    attempts = {**wrong_keys(door.caller.key), "revoked": f"Bearer {revoked}"}
    answers = {name: await knock(door, value) for name, value in attempts.items()}
    assert {name: answer.status for name, answer in answers.items() if answer.status != 401} == {}
    assert {answer.headers["WWW-Authenticate"] for answer in answers.values()} == {"Bearer"}
    assert len({str(without_id(answer)) for answer in answers.values()}) == 1


async def test_the_scheme_is_read_in_any_case_and_two_headers_are_none(door: Door) -> None:
    assert (await knock(door, f"bearer {door.caller.key}")).status == 200
    header = ("Authorization", f"Bearer {door.caller.key}")
    assert (await door.ask("GET", "/v1/balance", headers=[header, header])).status == 401


NOBODY = "01a228d0-0000-7000-8000-000000000000"
"""An id that nothing has; the same in every test process."""


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/tasks"),
        ("GET", "/v1/tasks?limit=nonsense"),
        ("GET", f"/v1/tasks/{NOBODY}"),
        ("POST", f"/v1/tasks/{NOBODY}/cancel"),
        ("GET", "/v1/models"),
        ("POST", "/v1/images/generations"),
        ("POST", "/v1/images/edits/async"),
        ("GET", f"/v1/images/tasks/{NOBODY}"),
        ("GET", "/v1/balance"),
        ("GET", "/v1/entries?cursor=nonsense"),
        ("GET", f"/v1/assets/{NOBODY}"),
        ("HEAD", f"/v1/assets/{NOBODY}"),
        ("GET", "/v1/assets/nonsense/thumbnail"),
    ],
)
async def test_no_route_below_v1_says_anything_without_a_key(door: Door, method: str, path: str) -> None:
    assert (await door.ask(method, path)).status == 401


async def test_a_revoked_key_is_refused_within_five_seconds(door: Door) -> None:
    key = f"Bearer {door.caller.key}"
    assert (await knock(door, key)).status == 200
    assert auth.KEEP_S <= 5.0
    async with door.database.connection() as connection:
        assert await accounts.revoke_key(connection, door.caller.key[8:20])
    start = monotonic()
    with patch("safelight.api.auth.monotonic", lambda: start + 5.0):
        assert (await knock(door, key)).status == 401


async def test_a_key_is_read_once_for_all_who_wait_for_it(parts: ApiParts) -> None:
    async with running_door(parts) as door:
        read = accounts.read_key
        with patch.object(accounts, "read_key", side_effect=read) as reading:
            answers = await asyncio.gather(*(knock(door, f"Bearer {door.caller.key}") for _ in range(20)))
            await knock(door, f"Bearer {door.caller.key}")
        assert {answer.status for answer in answers} == {200}
        assert reading.call_count == 1


async def test_an_account_over_its_rate_is_told_when_to_come_back_and_others_are_not(parts: ApiParts) -> None:
    slow = dataclasses.replace(parts, settings=parts.settings.model_copy(update={"max_requests_per_s": 2.0}))
    async with running_door(slow) as door:
        answers = [await door.request("GET", "/v1/balance") for _ in range(4)]
        refused = answers[-1]
        assert (refused.status, refused.code) == (429, "rate-limited")
        assert int(refused.headers["Retry-After"]) >= 1
        assert (await door.submit(b"\xff" * 100)).status == 429
        other = await door.new_caller()
        assert (await door.request("GET", "/v1/balance", by=other)).status == 200


async def test_guessing_keys_is_slowed_down_by_address_and_known_callers_still_get_in(door: Door) -> None:
    good = f"Bearer {door.caller.key}"
    assert (await knock(door, good)).status == 200
    now = monotonic()
    with patch("safelight.api.limits.monotonic", lambda: now):
        statuses = [(await knock(door, f"Bearer {keys.new_key().text}")).status for _ in range(60)]
        assert statuses == [401] * 50 + [429] * 10
        with patch.object(accounts, "read_key", side_effect=AssertionError("asked the database")):
            assert (await knock(door, f"Bearer {keys.new_key().text}")).status == 429
        assert (await knock(door, good)).status == 200


def test_a_limit_gives_its_burst_at_once_and_then_its_rate() -> None:
    limit = Limit(10.0, burst=3.0)
    moment = 100.0
    with patch("safelight.api.limits.monotonic", lambda: moment):
        assert [limit.take("a") for _ in range(3)] == [0.0, 0.0, 0.0]
        assert limit.wait_s("a") == pytest.approx(0.1)
        assert limit.take("a") == pytest.approx(0.1)
        assert limit.take("b") == 0.0
        moment = 100.1
        assert limit.take("a") == 0.0
        assert limit.take("a") > 0


def test_a_burst_is_whole_whatever_the_clock_says() -> None:
    for step in range(200):
        limit = Limit(1.0 / 6.0, burst=50.0)
        moment = 1_000.0 + step * 0.123_456_7
        with patch("safelight.api.limits.monotonic", lambda moment=moment: moment):
            assert [limit.take("a") > 0 for _ in range(51)] == [False] * 50 + [True]


def test_a_limit_forgets_full_buckets_and_never_grows_without_bound() -> None:
    limit = Limit(1.0, burst=1.0)
    moment = 100.0
    with patch("safelight.api.limits.MAX_NAMES", 10), patch("safelight.api.limits.monotonic", lambda: moment):
        for name in range(25):
            limit.take(name)
        assert len(limit._full_at) <= 10
        moment = 200.0
        limit.take("late")
        assert len(limit._full_at) <= 10


def test_an_ipv6_caller_counts_as_its_network() -> None:
    assert headers.address_of({"client": ("2001:db8:1:2:3::4", 1)}) == "2001:db8:1:2::"
    assert headers.address_of({"client": ("192.0.2.7", 1)}) == "192.0.2.7"
    assert headers.address_of({"client": None}) == ""


def test_a_key_has_its_form_and_says_nothing_when_printed() -> None:
    key = keys.new_key()
    assert (len(key.id), len(key.secret), len(key.text)) == (12, 33, 59)
    assert key.text.startswith("sl_live_")
    assert keys.parse_key(key.text) == key
    assert key.secret not in repr(key)
    assert len({keys.new_key().text for _ in range(1000)}) == 1000


def test_any_changed_character_of_a_key_is_seen_without_a_look_up() -> None:
    text = keys.new_key().text
    for place, letter in enumerate(text):
        changed = text[:place] + ("x" if letter != "x" else "y") + text[place + 1 :]
        assert keys.parse_key(changed) is None


def test_only_a_keyed_hash_of_a_secret_is_kept() -> None:
    key = keys.new_key()
    stored = keys.hash_secret(PEPPER, key.secret)
    assert len(stored) == 32
    assert keys.is_secret(PEPPER, key.secret, stored)
    assert not keys.is_secret(PEPPER, keys.new_key().secret, stored)
    assert not keys.is_secret(b"another pepper", key.secret, stored)


async def test_keys_and_accounts_are_made_listed_and_ended(door: Door) -> None:
    name = f"shop {new_id()}"
    async with door.database.connection() as connection:
        account_id = await accounts.create_account(connection, name)
        assert await accounts.find_account(connection, name) == account_id
        assert await accounts.find_account(connection, "nobody") is None
        text = await accounts.create_key(connection, account_id, "till 1", PEPPER)
        (listed,) = await accounts.list_keys(connection, account_id)
        assert (listed.name, listed.account_name, listed.revoked_at) == ("till 1", name, None)
        assert listed.id in {key.id for key in await accounts.list_keys(connection)}
        assert account_id in {account.id for account in await accounts.list_accounts(connection)}
        assert await accounts.revoke_key(connection, listed.id)
        first_end = (await accounts.list_keys(connection, account_id))[0].revoked_at
        assert await accounts.revoke_key(connection, listed.id)
        assert (await accounts.list_keys(connection, account_id))[0].revoked_at == first_end is not None
        assert not await accounts.revoke_key(connection, "no such key")
        dump = str(await connection.fetch("SELECT api_keys::text FROM api_keys"))
    assert text[20:53] not in dump


@pytest.mark.parametrize(("name", "status"), [("", 422), ("taken", 409)])
async def test_an_account_needs_a_name_of_its_own(door: Door, name: str, status: int) -> None:
    async with door.database.transaction() as connection:
        if name and await accounts.find_account(connection, name) is None:
            await accounts.create_account(connection, name)
    async with door.database.connection() as connection:
        with pytest.raises(RequestError) as refused:
            await accounts.create_account(connection, name)
        assert refused.value.status == status
        with pytest.raises(RequestError) as missing:
            await accounts.create_key(connection, new_id(), "", PEPPER)
        assert missing.value.status == 404
