"""Webhooks from the field: what receivers answer, when we die, and who waits for whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from safelight.db import accounts
from safelight.errors import RequestError
from safelight.jobs import deliveries
from safelight.jobs.deliveries import Deliveries
from safelight.telemetry import set_fault_hook
from tests.field.scene import Line, Scene, assert_calm, running_scene, said
from tests.receiver import Mailroom, Reply, Told, running_receiver
from tests.world import Server

OURS = "https://safelight.example"


@pytest.fixture
async def office(server: Server) -> AsyncIterator[tuple[Scene, Mailroom]]:
    """An installation, and a receiver that its customers may name."""
    async with (
        running_receiver() as receiver,
        running_scene(server, allowed_origins=(receiver.origin, OURS), public_url=OURS) as scene,
    ):
        yield scene, Mailroom(scene.world, receiver)


async def tries_of(scene: Scene, endpoint_id: Any) -> list[dict[str, Any]]:
    """Every try of an endpoint's deliveries, as its owner sees them."""
    listed = (await scene.get(f"/v1/webhook-endpoints/{endpoint_id}/deliveries")).json["data"]
    return [one for delivery in reversed(listed) for one in delivery["tries"]]


async def test_E18_whoever_is_told_can_read_the_task_and_its_picture_at_once(
    office: tuple[Scene, Mailroom],
) -> None:
    scene, mail = office
    seen: list[tuple[str, int, int]] = []

    async def look(told: Told) -> None:
        data = told.event["data"]
        task = await scene.view(data["task_id"])
        picture = await scene.door.request("GET", f"/v1/assets/{data['assets'][0]}")
        seen.append((task["status"], task["credits"]["captured"], picture.status))

    mail.receiver.on_call = look
    await mail.register()
    await mail.finish_task()
    await mail.deliver()
    assert seen == [("ready", 1, 200)]


async def test_H04_no_redirect_of_a_webhook_is_followed_anywhere(office: tuple[Scene, Mailroom]) -> None:
    scene, mail = office
    secret = await mail.register()
    mail.receiver.replies["/hooks"] = [
        Reply(302, headers={"Location": "http://169.254.169.254/latest/meta-data"}),
        Reply(307, headers={"Location": "https://93.184.216.34/"}),
        Reply(308, headers={"Location": "/hooks/"}),
    ]
    task_id = await mail.finish_task()
    for _ in range(3):
        await mail.deliver()
        await mail.world.pass_time(minutes=7)
    assert [told.path for told in mail.receiver.told] == ["/hooks"] * 3
    assert [(one["status"], one["reason"]) for one in await tries_of(scene, secret.endpoint_id)] == [
        (302, "redirect"),
        (307, "redirect"),
        (308, "redirect"),
    ]
    assert await scene.ending(task_id) == ("succeeded", 1, 0)


async def test_H05_a_refused_redirect_is_told_with_the_host_and_a_test_finds_it(
    office: tuple[Scene, Mailroom], logs: list[Line]
) -> None:
    scene, mail = office
    secret = await mail.register()
    mail.receiver.usual = Reply(308, headers={"Location": mail.receiver.url("/hooks/")})
    sent = await scene.door.request("POST", f"/v1/webhook-endpoints/{secret.endpoint_id}/test")
    assert sent.status == 202
    await mail.deliver()
    (tried,) = await tries_of(scene, secret.endpoint_id)
    assert tried["detail"] == f"redirects are not followed; it leads to {mail.receiver.origin}"
    (line,) = said(logs, "delivery_failed")
    assert (line["log_level"], line["status"], line["reason"]) == ("warning", 308, "redirect")


async def test_H06_a_redirect_makes_no_get_and_is_no_success(office: tuple[Scene, Mailroom]) -> None:
    _, mail = office
    await mail.register()
    mail.receiver.replies["/hooks"] = [Reply(301, headers={"Location": mail.receiver.url("/fine")})]
    await mail.cancel_task()
    await mail.deliver()
    assert [(told.method, told.path) for told in mail.receiver.told] == [("POST", "/hooks")]
    assert await mail.deliveries() == [("pending", "", 1)]


async def test_K03_a_death_between_commit_and_call_and_a_receiver_that_is_down_lose_nothing(
    office: tuple[Scene, Mailroom], no_fault_left: None
) -> None:
    scene, mail = office
    await mail.register()
    task_id = await mail.finish_task()
    (letter,), _ = await mail.world.graph.notify.claim(10, is_failing=False)

    def die(name: str) -> None:
        if name == "before_delivery":
            raise KeyboardInterrupt

    set_fault_hook(die)
    with pytest.raises(KeyboardInterrupt):
        await mail.world.graph.notify.deliver(letter)
    set_fault_hook(None)
    mail.receiver.usual = Reply(503)
    await mail.world.pass_time(minutes=2)
    async with scene.another_process() as graph:
        for _ in range(4):
            for is_failing in (False, True):
                letters, _ = await graph.notify.claim(10, is_failing=is_failing)
                for one in letters:
                    await graph.notify.deliver(one)
            await mail.world.pass_time(minutes=8)
            mail.receiver.usual = Reply()
    assert await mail.deliveries() == [("delivered", "", 2)]
    assert {told.event["data"]["task_id"] for told in mail.receiver.told} == {str(task_id)}
    assert len({told.id for told in mail.receiver.told}) == 1


async def test_K04_a_dead_address_is_called_ever_more_rarely_and_then_no_more(
    office: tuple[Scene, Mailroom], logs: list[Line]
) -> None:
    _, mail = office
    dead = await mail.register("/dead")
    deleted = await mail.register("/deleted")
    back = await mail.register("/back")
    for path in ("/dead", "/deleted", "/back"):
        mail.receiver.replies[path] = [Reply(500)] * 2_000
    for _ in range(5):
        await mail.cancel_task()
    at_deletion = 0
    for hour in range(6 * 24):
        await mail.deliver()
        if hour == 1:
            mail.receiver.replies["/back"] = []
            await mail.world.graph.endpoints.remove(mail.world.account_id, deleted.endpoint_id)
            at_deletion = len(mail.receiver.on("/deleted"))
        if hour % 24 == 12:
            await mail.cancel_task()
        await mail.world.pass_time(hours=1)
    row = await mail.endpoint(dead.endpoint_id)
    assert row["disabled_reason"] == "failing"
    assert len(mail.receiver.on("/deleted")) == at_deletion
    assert len(mail.receiver.on("/dead")) < 11 * 10
    assert (await mail.endpoint(back.endpoint_id))["failures"] == 0
    lost = await mail.world.value(
        "SELECT count(*) FROM deliveries WHERE endpoint_id = $1 AND status <> 'delivered'", back.endpoint_id
    )
    assert lost == 0
    assert [line["reason"] for line in said(logs, "endpoint_disabled")] == ["failing"]
    assert_calm(logs)


async def test_K05_one_receiver_that_drips_holds_up_nobody(
    office: tuple[Scene, Mailroom], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, mail = office
    monkeypatch.setattr(deliveries, "PATIENCE_S", 0.05)

    async def drip(told: Told) -> None:
        if told.path == "/drip":
            await mail.receiver.closing.wait()

    mail.receiver.on_call = drip
    async with mail.world.database.transaction() as connection:
        others = [await accounts.create_account(connection, f"good {number}") for number in range(5)]
    await mail.register("/drip")
    for _ in range(20):
        await mail.cancel_task()
    good = [await mail.register("/good", account_id=account_id) for account_id in others]
    for account_id, secret in zip(others, good, strict=True):
        await mail.world.graph.endpoints.test(account_id, secret.endpoint_id)
    at_work = Deliveries(mail.world.graph.notify, places=4)
    try:
        await at_work.run()
        async with asyncio.timeout(60):
            while len(mail.receiver.on("/good")) < 5:  # noqa: ASYNC110 - a receiver sends no event
                await asyncio.sleep(0.02)
        assert 1 <= len(mail.receiver.on("/drip")) <= 10, "and never more than ten to one receiver"
    finally:
        mail.receiver.closing.set()
        await at_work.drain(10.0)


async def test_K07_only_ends_are_told_and_each_carries_the_version_of_its_task(
    office: tuple[Scene, Mailroom],
) -> None:
    _, mail = office
    await mail.register()
    mail.receiver.replies["/hooks"] = [Reply(500)]
    first = await mail.finish_task()
    await mail.deliver()
    second = await mail.cancel_task()
    await mail.deliver()
    await mail.world.pass_time(seconds=7)
    await mail.deliver()
    told = [told.event for told in mail.receiver.told]
    assert [event["data"]["task_id"] for event in told] == [str(first), str(second), str(first)]
    assert {event["type"] for event in told} == {"task.ready", "task.failed"}
    versions = {event["data"]["task_id"]: event["data"]["version"] for event in told}
    assert versions == {str(one): (await mail.world.task(one)).version for one in (first, second)}


async def test_K08_without_a_secret_nothing_is_sent_and_it_is_said(
    office: tuple[Scene, Mailroom], logs: list[Line]
) -> None:
    scene, mail = office
    secret = await mail.register()
    await mail.cancel_task()
    await mail.world.rows("DELETE FROM webhook_secrets")
    await mail.deliver()
    assert mail.receiver.told == []
    assert [one["reason"] for one in await tries_of(scene, secret.endpoint_id)] == ["no_secret"]
    assert len(said(logs, "endpoint_without_secret")) == 1
    made = await mail.world.graph.endpoints.rotate(mail.world.account_id, secret.endpoint_id, overlap_s=0)
    await mail.world.pass_time(seconds=7)
    await mail.deliver()
    assert mail.receiver.told[0].verified(made.text, later_s=7)["type"] == "task.failed"


async def test_K15_a_webhook_to_ourselves_is_refused(office: tuple[Scene, Mailroom]) -> None:
    scene, mail = office
    for url in (f"{OURS}/", f"{OURS}/callbacks/lab-callback/x", f"{OURS}/v1/tasks", f"{OURS}:443/x"):
        answer = await scene.door.request("POST", "/v1/webhook-endpoints", json={"url": url})
        assert (answer.status, answer.code) == (422, "webhook-url-refused")
    with pytest.raises(RequestError):
        await mail.world.graph.endpoints.register(mail.world.account_id, url=OURS.upper())
    assert await mail.world.value("SELECT count(*) FROM webhook_endpoints") == 0
