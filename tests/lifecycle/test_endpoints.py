"""Where customers may be told: the address at registration and at every try, and how many there may be."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import uuid4

import pytest

from safelight.assets.urls import parse_target
from safelight.db import accounts
from safelight.domain.ids import new_id
from safelight.domain.sealing import Sealer
from safelight.errors import RequestError
from safelight.lifecycle.endpoints import Endpoints
from safelight.lifecycle.notify import Notify
from tests.receiver import Mailroom

KEY = b"a sealing key of thirty-two byte"
OURS = frozenset({parse_target("https://safelight.example").origin})


async def lead_inside(host: str, port: int) -> Sequence[str]:
    """Names that resolve to this machine, whatever they are."""
    return ["93.184.216.34", "127.0.0.1"]


async def refusal_of(mail: Mailroom, url: str) -> RequestError:
    """What its owner is told who registers this address."""
    endpoints = Endpoints(mail.world.database, Sealer(KEY), allowed_origins=[], own_origins=OURS)
    endpoints._fetcher._lookup = lead_inside
    try:
        with pytest.raises(RequestError) as refused:
            await endpoints.register(mail.world.account_id, url=url)
    finally:
        await endpoints.aclose()
    return refused.value


@pytest.mark.parametrize(
    "url",
    [
        "http://shop.example/hooks",
        "http://93.184.216.34/hooks",
        "https://shop.example:8443/hooks",
        "https://user:word@shop.example/hooks",
        "https://shop.example/hooks#part",
        "https://127.0.0.1/hooks",
        "https://[::1]/hooks",
        "https://[::ffff:10.0.0.1]/hooks",
        "https://[64:ff9b::7f00:1]/hooks",
        "https://10.1.2.3/hooks",
        "https://169.254.169.254/latest/meta-data",
        "https://2130706433/hooks",
        "https://0x7f.1/hooks",
        "https://inside.example/hooks",
        "https://safelight.example/hooks",
        "https://safelight.example:443/callbacks/lab/x",
        "ftp://shop.example/hooks",
        "javascript:alert(1)",
        "",
    ],
)
async def test_no_address_is_registered_that_may_not_be_called(mail: Mailroom, url: str) -> None:
    refused = await refusal_of(mail, url)
    assert (refused.status, refused.problem_code) == (422, "webhook-url-refused")
    assert "word" not in refused.detail
    assert await mail.world.value("SELECT count(*) FROM webhook_endpoints") == 0


async def test_a_change_of_the_address_is_vetted_as_well(mail: Mailroom) -> None:
    secret = await mail.register()
    with pytest.raises(RequestError) as refused:
        await mail.world.graph.endpoints.change(
            mail.world.account_id, secret.endpoint_id, url="https://10.0.0.1/hooks"
        )
    assert refused.value.status == 422
    assert (await mail.endpoint(secret.endpoint_id))["url"] == mail.receiver.url()


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("https://10.0.0.1/hooks", "address_refused"),
        ("https://turned.example/hooks", "address_refused"),
        ("http://shop.example/hooks", "bad_url"),
        ("https://safelight.example/hooks", "own_address"),
    ],
)
async def test_an_address_that_turned_bad_is_refused_at_every_try(
    mail: Mailroom, url: str, reason: str
) -> None:
    secret = await mail.register()
    await mail.world.rows("UPDATE webhook_endpoints SET url = $1", url)
    await mail.cancel_task()
    sealer = mail.world.graph.notify._sealer
    notify = Notify(mail.world.database, sealer, allowed_origins=[mail.receiver.origin], own_origins=OURS)
    notify._well._lookup = lead_inside
    try:
        (letter,), _ = await notify.claim(10, is_failing=False)
        outcome = await notify.deliver(letter)
    finally:
        await notify.aclose()
    assert (outcome.status, outcome.reason) == (None, reason)
    assert (await refusal_of(mail, url)).detail == f"The url cannot be used: {outcome.detail}."
    assert mail.receiver.told == []
    assert await mail.deliveries() == [("pending", "", 1)]
    assert (await mail.endpoint(secret.endpoint_id))["failures"] == 1


async def test_an_account_may_have_twenty_endpoints_however_many_ask_at_once(mail: Mailroom) -> None:
    answers = await asyncio.gather(
        *(mail.register(f"/{number}") for number in range(24)), return_exceptions=True
    )
    refused = [answer for answer in answers if isinstance(answer, RequestError)]
    assert {(one.status, one.problem_code) for one in refused} == {(409, "too-many-endpoints")}
    assert len(refused) == 4
    kept = next(answer for answer in answers if not isinstance(answer, BaseException))
    await mail.world.graph.endpoints.remove(mail.world.account_id, kept.endpoint_id)
    await mail.register("/again")


async def test_ten_secrets_may_be_in_force(mail: Mailroom) -> None:
    secret = await mail.register()
    endpoints, account_id = mail.world.graph.endpoints, mail.world.account_id
    for _ in range(9):
        await endpoints.rotate(account_id, secret.endpoint_id, overlap_s=604_800)
    with pytest.raises(RequestError) as refused:
        await endpoints.rotate(account_id, secret.endpoint_id, overlap_s=604_800)
    assert (refused.value.status, refused.value.problem_code) == (409, "too-many-secrets")
    await mail.cancel_task()
    await mail.deliver()
    assert mail.receiver.told[0].headers["webhook-signature"].count("v1,") == 10
    await endpoints.rotate(account_id, secret.endpoint_id, overlap_s=0)
    assert await mail.world.value("SELECT count(*) FROM webhook_secrets") == 1


async def test_another_account_s_endpoint_is_one_that_does_not_exist(mail: Mailroom) -> None:
    secret = await mail.register()
    await mail.cancel_task()
    delivery = await mail.world.value("SELECT id FROM deliveries")
    async with mail.world.database.transaction() as connection:
        stranger = await accounts.create_account(connection, "stranger")
    endpoints, now = mail.world.graph.endpoints, await mail.world.database.now()
    for endpoint_id in (secret.endpoint_id, uuid4()):
        for act in (
            endpoints.change(stranger, endpoint_id, description="mine"),
            endpoints.rotate(stranger, endpoint_id, overlap_s=0),
            endpoints.enable(stranger, endpoint_id),
            endpoints.test(stranger, endpoint_id),
            endpoints.redeliver(stranger, endpoint_id, delivery),
            endpoints.recover(stranger, endpoint_id, since=now),
            endpoints.remove(stranger, endpoint_id),
        ):
            with pytest.raises(RequestError) as refused:
                await act
            assert (refused.value.status, refused.value.problem_code) == (404, "not-found")
    await mail.deliver()
    assert len(mail.receiver.told) == 1
    assert mail.receiver.told[0].verified(secret.text)["type"] == "task.failed"


async def test_one_account_is_never_told_of_another_s_tasks(mail: Mailroom) -> None:
    async with mail.world.database.transaction() as connection:
        stranger = await accounts.create_account(connection, f"stranger {new_id()}")
    await mail.register("/stranger", account_id=stranger)
    await mail.register("/own")
    await mail.cancel_task()
    await mail.deliver()
    assert [told.path for told in mail.receiver.told] == ["/own"]


async def test_what_failed_while_an_endpoint_was_disabled_comes_when_its_owner_asks_and_not_before(
    mail: Mailroom,
) -> None:
    secret = await mail.register()
    endpoints, account_id = mail.world.graph.endpoints, mail.world.account_id
    since = await mail.world.database.now()
    await mail.world.rows(
        "UPDATE webhook_endpoints SET disabled_at = clock_now(), disabled_reason = 'failing', wake_at = 'infinity'"
    )
    tasks = [await mail.cancel_task() for _ in range(3)]
    for act in (
        endpoints.test(account_id, secret.endpoint_id),
        endpoints.recover(account_id, secret.endpoint_id, since=since),
        endpoints.redeliver(account_id, secret.endpoint_id, 1),
    ):
        with pytest.raises(RequestError) as refused:
            await act
        assert (refused.value.status, refused.value.problem_code) == (409, "endpoint-disabled")
    await endpoints.enable(account_id, secret.endpoint_id)
    assert await mail.deliver() == [], "no flood by itself"
    assert await endpoints.recover(account_id, secret.endpoint_id, since=since) == 3
    assert len(await mail.deliver()) >= 1
    await mail.world.pass_time(seconds=1)
    await mail.deliver()
    assert [told.event["data"]["task_id"] for told in mail.receiver.told] == [str(task) for task in tasks]
    assert await endpoints.recover(account_id, secret.endpoint_id, since=since) == 0


async def test_a_delivery_is_sent_again_under_its_old_id_with_a_new_schedule(mail: Mailroom) -> None:
    secret = await mail.register()
    await mail.cancel_task()
    await mail.deliver()
    delivery = await mail.world.value("SELECT id FROM deliveries")
    await mail.world.graph.endpoints.redeliver(mail.world.account_id, secret.endpoint_id, delivery)
    await mail.deliver()
    first, second = mail.receiver.told
    assert first.id == second.id
    assert [told.headers["webhook-attempt"] for told in (first, second)] == ["1", "2"]
    assert await mail.deliveries() == [("delivered", "", 2)]
    with pytest.raises(RequestError) as refused:
        await mail.world.graph.endpoints.redeliver(mail.world.account_id, secret.endpoint_id, delivery + 1)
    assert refused.value.status == 404
