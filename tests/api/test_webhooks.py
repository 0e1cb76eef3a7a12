"""The doors of webhooks: endpoints, secrets shown once, deliveries with their tries, and nobody else's."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from safelight.client import ApiError, Client
from safelight.db import accounts
from tests.api.door import PEPPER, Answer, Caller, Door, running_door
from tests.api.operators import Operator
from tests.receiver import Mailroom, Reply, running_receiver
from tests.world import Server, running_world

PLACE = "/v1/webhook-endpoints"
MISSING = "0199aaaa-0000-7000-8000-000000000000"


@pytest.fixture
async def office(server: Server) -> AsyncIterator[tuple[Door, Mailroom]]:
    """A door, and a receiver that may be called; the door's caller owns the world's tasks."""
    async with (
        running_receiver() as receiver,
        running_world(server, allowed_origins=(receiver.origin,)) as world,
        running_door(replace(world.graph.api_parts(""), pepper=PEPPER)) as door,
    ):
        async with world.database.transaction() as connection:
            key = await accounts.create_key(connection, world.account_id, "", PEPPER)
        door.caller = Caller(world.account_id, key)
        yield door, Mailroom(world, receiver)


async def ask(door: Door, method: str, path: str, body: Any = None, **options: Any) -> Answer:
    """A call with a JSON body, or without."""
    sent = {} if body is None else {"json": body}
    return await door.request(method, path, **sent, **options)


async def test_an_endpoint_from_its_registration_to_its_end(office: tuple[Door, Mailroom]) -> None:
    door, mail = office
    made = await ask(
        door, "POST", PLACE, {"url": mail.receiver.url(), "description": "the shop", "events": ["task.ready"]}
    )
    assert made.status == 201
    assert made.headers["Cache-Control"] == "no-store"
    endpoint = made.json
    assert endpoint.pop("secret").startswith("whsec_")
    assert endpoint["status"] == "enabled"
    assert (endpoint["events"], endpoint["description"]) == (["task.ready"], "the shop")
    assert len(endpoint["secrets"]) == 1
    place = f"{PLACE}/{endpoint['id']}"
    assert (await ask(door, "GET", place)).json == endpoint, "and the secret is never shown again"
    assert (await ask(door, "GET", PLACE)).json == {"data": [endpoint], "next_cursor": None}
    changed = (await ask(door, "PATCH", place, {"events": []})).json
    assert changed == {**endpoint, "events": []}
    rotated = await ask(door, "POST", f"{place}/rotate")
    assert rotated.status == 200
    assert [secret["expires_at"] is None for secret in rotated.json["secrets"]] == [True, False]
    revoked = await ask(door, "POST", f"{place}/rotate", {"overlap_s": 0})
    assert len(revoked.json["secrets"]) == 1
    assert (await ask(door, "DELETE", place)).status == 204
    assert (await ask(door, "GET", place)).status == 404
    assert (await ask(door, "DELETE", place)).status == 404


async def test_deliveries_are_listed_with_every_try(office: tuple[Door, Mailroom]) -> None:
    door, mail = office
    endpoint = (await ask(door, "POST", PLACE, {"url": mail.receiver.url()})).json
    place = f"{PLACE}/{endpoint['id']}"
    mail.receiver.replies["/hooks"] = [Reply(500, b"no whsec_c2VjcmV0 today")]
    task_id = await mail.cancel_task()
    await mail.deliver()
    (delivery,) = (await ask(door, "GET", f"{place}/deliveries")).json["data"]
    assert (delivery["status"], delivery["type"], delivery["task_id"]) == (
        "pending",
        "task.failed",
        str(task_id),
    )
    assert delivery["body"] == mail.receiver.told[0].event
    assert delivery["event_id"] == mail.receiver.told[0].id
    assert delivery["next_try_at"] > delivery["created_at"]
    (tried,) = delivery["tries"]
    assert (tried["number"], tried["status"], tried["answer"]) == (1, 500, "no [redacted] today")
    assert tried["headers"]["webhook-id"] == delivery["event_id"]
    assert tried["headers"]["webhook-signature"] == "[redacted]"
    await mail.world.pass_time(seconds=7)
    await mail.deliver()
    for _ in range(3):
        await mail.cancel_task()
    await mail.deliver()
    page = (await ask(door, "GET", f"{place}/deliveries?limit=3")).json
    rest = (await ask(door, "GET", f"{place}/deliveries?cursor={page['next_cursor']}")).json
    assert [one["id"] for one in rest["data"]] == [delivery["id"]]
    assert [one["status"] for one in rest["data"][0]["tries"]] == [500, 200]
    assert (await ask(door, "GET", f"{place}/deliveries?status=pending")).json["data"] == []
    assert len((await ask(door, "GET", f"{place}/deliveries?status=delivered")).json["data"]) == 4
    again = await ask(door, "POST", f"{place}/deliveries/{delivery['id']}/redeliver")
    assert (again.status, again.json["status"]) == (202, "pending")
    assert (await ask(door, "GET", f"{place}/deliveries/{delivery['id']}")).json == again.json


async def test_a_test_event_says_how_it_went_and_is_tried_once(office: tuple[Door, Mailroom]) -> None:
    door, mail = office
    endpoint = (await ask(door, "POST", PLACE, {"url": mail.receiver.url(), "events": ["credits.low"]})).json
    place = f"{PLACE}/{endpoint['id']}"
    mail.receiver.replies["/hooks"] = [Reply(308, headers={"Location": "https://shop.example/hooks/"})]
    sent = await ask(door, "POST", f"{place}/test")
    assert (sent.status, sent.json["status"], sent.json["type"]) == (202, "pending", "endpoint.test")
    await mail.deliver()
    delivery = (await ask(door, "GET", f"{place}/deliveries/{sent.json['id']}")).json
    assert (delivery["status"], delivery["reason"]) == ("failed", "exhausted")
    assert delivery["tries"][0]["reason"] == "redirect"
    assert "https://shop.example" in delivery["tries"][0]["detail"]


async def test_what_failed_is_recovered_from_a_time_on(office: tuple[Door, Mailroom]) -> None:
    door, mail = office
    endpoint = (await ask(door, "POST", PLACE, {"url": mail.receiver.url()})).json
    place = f"{PLACE}/{endpoint['id']}"
    mail.receiver.replies["/hooks"] = [Reply(410)]
    await mail.cancel_task()
    await mail.deliver()
    shown = (await ask(door, "GET", place)).json
    assert (shown["status"], shown["disabled_reason"]) == ("disabled", "gone")
    refused = await ask(door, "POST", f"{place}/recover", {"since": endpoint["created_at"]})
    assert (refused.status, refused.code) == (409, "endpoint-disabled")
    assert (await ask(door, "POST", f"{place}/enable")).json["status"] == "enabled"
    recovered = await ask(door, "POST", f"{place}/recover", {"since": endpoint["created_at"]})
    assert (recovered.status, recovered.json) == (202, {"recovered": 1})
    await mail.deliver()
    assert len(mail.receiver.told) == 2


async def test_the_plain_client_registers_endpoints_and_reads_what_was_sent(
    office: tuple[Door, Mailroom],
) -> None:
    door, mail = office
    mail.receiver.replies["/hooks"] = [Reply(500), Reply(200), Reply(410)]

    def prepare(client: Client) -> tuple[str, str, str]:
        made = client.webhooks.add(mail.receiver.url("/old"), description="the shop")
        changed = client.webhooks.change(made["id"], url=mail.receiver.url(), events=["task.failed"])
        rotated = client.webhooks.rotate(made["id"], overlap_s=0)
        assert rotated["secret"] != made["secret"]
        assert [(one["url"], one["events"]) for one in client.webhooks.list()] == [
            (mail.receiver.url(), changed["events"])
        ]
        return made["id"], rotated["secret"], client.webhooks.test(made["id"])["id"]

    def look(client: Client, endpoint_id: str, delivery_id: str) -> None:
        first = client.webhooks.delivery(endpoint_id, delivery_id)
        assert [tried["status"] for tried in first["tries"]] == [500]
        page = client.webhooks.deliveries(endpoint_id, status="failed", limit=1)
        assert [(one["id"], one["reason"]) for one in page.data] == [(delivery_id, "exhausted")]
        assert client.webhooks.redeliver(endpoint_id, delivery_id)["status"] == "pending"

    def mend(client: Client, endpoint_id: str) -> None:
        assert client.webhooks.list()[0]["status"] == "disabled"
        assert client.webhooks.enable(endpoint_id)["status"] == "enabled"
        assert client.webhooks.recover(endpoint_id, datetime(2020, 1, 1, tzinfo=UTC)) == 1

    def remove(client: Client, endpoint_id: str) -> None:
        client.webhooks.remove(endpoint_id)
        assert client.webhooks.list() == []
        with pytest.raises(ApiError, match="not-found"):
            client.webhooks.delivery(endpoint_id, "1")

    with Client(door.url, door.caller.key) as client:
        endpoint_id, secret, delivery_id = await asyncio.to_thread(prepare, client)
        await mail.deliver()
        await asyncio.to_thread(look, client, endpoint_id, delivery_id)
        await mail.deliver()
        await mail.cancel_task()
        await mail.deliver()
        await asyncio.to_thread(mend, client, endpoint_id)
        await mail.deliver()
        assert mail.receiver.told[-1].verified(secret)["type"] == "task.failed"
        await asyncio.to_thread(remove, client, endpoint_id)
    assert len(mail.receiver.told) == 4


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "url"),
        ({"url": 7}, "url"),
        ({"url": "https://shop.example/ x"}, "url"),
        ({"url": "https://shop.example/" + "x" * 2_048}, "url"),
        ({"url": "https://93.184.216.34/", "events": ["task.begun"]}, "events[0]"),
        ({"url": "https://93.184.216.34/", "events": "task.ready"}, "events"),
        ({"url": "https://93.184.216.34/", "description": "x" * 501}, "description"),
        ({"url": "https://93.184.216.34/", "secret": "whsec_x"}, "secret"),
    ],
)
async def test_a_field_that_does_not_fit_is_named(door: Door, body: Any, field: str) -> None:
    answer = await ask(door, "POST", PLACE, body)
    assert (answer.status, answer.code) == (422, "validation-failed")
    assert answer.json["errors"][0]["field"] == field


async def test_an_address_that_may_not_be_called_is_refused_with_its_reason(door: Door) -> None:
    for url in ("https://169.254.169.254/", "http://93.184.216.34/", "https://safelight.example/callbacks/x"):
        answer = await ask(door, "POST", PLACE, {"url": url})
        assert (answer.status, answer.code) == (422, "webhook-url-refused")
    literal = await ask(door, "POST", PLACE, {"url": "https://93.184.216.34/hooks"})
    assert literal.status == 201, "a public address is asked for nothing more"


async def test_a_foreign_endpoint_and_a_missing_one_answer_alike(door: Door) -> None:
    endpoint = (await ask(door, "POST", PLACE, {"url": "https://93.184.216.34/"})).json
    stranger = await door.new_caller()
    for method, end, body in (
        ("GET", "", None),
        ("PATCH", "", {"description": "mine"}),
        ("DELETE", "", None),
        ("POST", "/rotate", {}),
        ("POST", "/enable", None),
        ("POST", "/test", None),
        ("POST", "/recover", {"since": "2026-01-01T00:00:00Z"}),
        ("GET", "/deliveries", None),
        ("GET", "/deliveries/1", None),
        ("POST", "/deliveries/1/redeliver", None),
    ):
        foreign = await ask(door, method, f"{PLACE}/{endpoint['id']}{end}", body, by=stranger)
        missing = await ask(door, method, f"{PLACE}/{MISSING}{end}", body, by=stranger)
        assert (foreign.status, foreign.code) == (missing.status, missing.code) == (404, "not-found"), end
        assert foreign.json["detail"] == missing.json["detail"]
    assert (await ask(door, "GET", PLACE, by=stranger)).json["data"] == []


@pytest.mark.parametrize(
    "since", ["yesterday", "2026-01-01", "2026-01-01T00:00:00", "9999-12-31T23:59:59-23:00", ""]
)
async def test_a_time_without_its_zone_is_none(door: Door, since: str) -> None:
    endpoint = (await ask(door, "POST", PLACE, {"url": "https://93.184.216.34/"})).json
    answer = await ask(door, "POST", f"{PLACE}/{endpoint['id']}/recover", {"since": since})
    assert (answer.status, answer.json["errors"][0]["field"]) == (422, "since")


async def test_the_threshold_of_low_credits_is_set_and_taken_back(door: Door) -> None:
    assert (await ask(door, "GET", "/v1/balance/threshold")).json == {"threshold": None}
    assert (await ask(door, "PUT", "/v1/balance/threshold", {"threshold": 50})).json == {"threshold": 50}
    assert (await ask(door, "GET", "/v1/balance/threshold")).json == {"threshold": 50}
    assert (await ask(door, "PUT", "/v1/balance/threshold", {"threshold": 0})).status == 422
    assert (await ask(door, "PUT", "/v1/balance/threshold", {"threshold": None})).json == {"threshold": None}


async def test_tasks_that_were_made_or_have_ended_since_a_time_can_be_listed(
    office: tuple[Door, Mailroom],
) -> None:
    door, mail = office
    old, ending = await mail.world.submit(), await mail.world.submit()
    await mail.world.pass_time(hours=1)
    since = (await mail.world.database.now()).isoformat().replace("+00:00", "Z")
    await mail.world.cancel.cancel(mail.world.account_id, ending)
    new = await mail.world.submit()
    listed = (await ask(door, "GET", f"/v1/tasks?updated_since={since}")).json["data"]
    assert [task["id"] for task in listed] == [str(new), str(ending)]
    assert str(old) in {task["id"] for task in (await ask(door, "GET", "/v1/tasks")).json["data"]}
    assert (await ask(door, "GET", f"/v1/tasks?updated_since={since}&status=failed&limit=1")).json["data"][0][
        "id"
    ] == str(ending)
    assert (await ask(door, "GET", "/v1/tasks?updated_since=today")).status == 422


async def test_operators_see_all_endpoints_and_deliveries_and_no_secret_of_an_address(
    office: tuple[Door, Mailroom],
) -> None:
    door, mail = office
    await ask(door, "POST", PLACE, {"url": mail.receiver.url("/hooks") + "?token=hidden"})
    await mail.cancel_task()
    await mail.deliver()
    operator = await Operator.at(door)
    endpoints = await operator.get("/admin/webhook-endpoints")
    (endpoint,) = endpoints.json["data"]
    assert endpoint["account_name"] == "default"
    assert "hidden" not in endpoints.body.decode()
    (delivery,) = (await operator.get("/admin/deliveries?status=delivered")).json["data"]
    assert (delivery["endpoint_id"], delivery["last_status"]) == (endpoint["id"], 200)
    path = f"/admin/deliveries?endpoint={MISSING}"
    assert (await operator.get(path)).json["data"] == []
    assert (await operator.get("/admin/deliveries?endpoint=x")).status == 422
    assert (await door.request("GET", "/admin/deliveries")).status == 401
