"""How endpoints fare: in flight and in turn, degraded, disabled, woken again, and forgotten after a month."""

from __future__ import annotations

import structlog.testing

from safelight.db import accounts
from tests.receiver import Mailroom, Reply


async def test_gone_disables_at_once_and_tells_the_others(mail: Mailroom) -> None:
    gone = await mail.register("/gone")
    other = await mail.register("/other")
    mail.receiver.replies["/gone"] = [Reply(410)]
    await mail.cancel_task()
    await mail.cancel_task()
    await mail.deliver(room=2)
    await mail.deliver()
    row = await mail.endpoint(gone.endpoint_id)
    assert (row["disabled_reason"], row["sleeps"]) == ("gone", True)
    told = [one.verified(other.text) for one in mail.receiver.on("/other")]
    (event,) = [event for event in told if event["type"] == "endpoint.disabled"]
    assert event["data"] == {
        "endpoint_id": str(gone.endpoint_id),
        "url": mail.receiver.url("/gone"),
        "reason": "gone",
    }
    (line,) = await mail.world.rows("SELECT actor, action, object, account_id FROM audit_lines")
    assert (line["actor"], line["action"]) == ("safelight", "endpoint.disable")
    assert (line["object"], line["account_id"]) == (
        f"webhook_endpoint:{gone.endpoint_id}",
        mail.world.account_id,
    )
    await mail.cancel_task()
    await mail.deliver()
    assert len(mail.receiver.on("/gone")) <= 2, "nothing more is sent"
    rows = await mail.world.rows(
        "SELECT DISTINCT status, reason FROM deliveries WHERE endpoint_id = $1", gone.endpoint_id
    )
    assert {row["status"] for row in rows} == {"failed"}
    assert {row["reason"] for row in rows} >= {"endpoint_disabled"}, "events keep being recorded"


async def test_five_days_of_nothing_but_failures_disable(mail: Mailroom) -> None:
    secret = await mail.register()
    other = await mail.register("/other", types=["endpoint.disabled"])
    mail.receiver.replies["/hooks"] = [Reply(500)] * 1_000
    with structlog.testing.capture_logs() as logs:
        hours = 0
        while (await mail.endpoint(secret.endpoint_id))["disabled_at"] is None:
            assert hours < 24 * 6
            await mail.cancel_task()
            await mail.deliver()
            await mail.world.pass_time(hours=3)
            hours += 3
    assert 24 * 5 + 12 <= hours <= 24 * 5 + 18
    assert (await mail.endpoint(secret.endpoint_id))["disabled_reason"] == "failing"
    (line,) = [line for line in logs if line["event"] == "endpoint_disabled"]
    assert line["failures"] >= 40
    await mail.deliver()
    (told,) = mail.receiver.on("/other")
    later_s = hours * 3_600
    assert told.verified(other.text, later_s=later_s)["data"]["reason"] == "failing"


async def test_a_success_now_and_then_keeps_an_endpoint(mail: Mailroom) -> None:
    secret = await mail.register()
    for hour in range(0, 24 * 8, 6):
        mail.receiver.usual = Reply(200 if hour % 72 == 66 else 500)
        await mail.cancel_task()
        await mail.deliver()
        await mail.world.pass_time(hours=6)
    row = await mail.endpoint(secret.endpoint_id)
    assert row["disabled_at"] is None


async def test_a_bad_hour_alone_starts_no_clock(mail: Mailroom) -> None:
    secret = await mail.register()
    mail.receiver.replies["/hooks"] = [Reply(500)] * 20
    for _ in range(8):
        await mail.cancel_task()
    for _ in range(2):
        await mail.deliver()
        await mail.world.pass_time(minutes=10)
    row = await mail.endpoint(secret.endpoint_id)
    assert row["failures"] >= 10
    assert row["failing_since"] is None


async def test_a_degraded_endpoint_gets_one_try_at_a_time_with_a_rest_between(mail: Mailroom) -> None:
    secret = await mail.register()
    mail.receiver.replies["/hooks"] = [Reply(500)] * 12
    for _ in range(12):
        await mail.cancel_task()
    assert len(await mail.deliver()) == 10, "so many may be in flight"
    assert (await mail.endpoint(secret.endpoint_id))["failures"] == 10
    assert await mail.deliver() == []
    await mail.world.pass_time(seconds=61)
    assert [outcome.status for outcome in await mail.deliver()] == [500]
    assert await mail.deliver() == []
    await mail.world.pass_time(seconds=61)
    assert [outcome.status for outcome in await mail.deliver()] == [500]
    await mail.world.pass_time(seconds=61)
    assert [outcome.status for outcome in await mail.deliver()] == [200]
    assert (await mail.endpoint(secret.endpoint_id))["failures"] == 0
    assert len(await mail.deliver()) == 10, "one success, and it is a healthy one again"


async def test_no_more_than_ten_are_in_flight_to_one_endpoint(mail: Mailroom) -> None:
    await mail.register()
    for _ in range(15):
        await mail.cancel_task()
    first, is_more = await mail.world.graph.notify.claim(100, is_failing=False)
    again, _ = await mail.world.graph.notify.claim(100, is_failing=False)
    assert (len(first), is_more, again) == (10, False, [])
    await mail.world.graph.notify.deliver(first[0])
    further, _ = await mail.world.graph.notify.claim(100, is_failing=False)
    assert len(further) == 1


async def test_accounts_and_endpoints_take_turns(mail: Mailroom) -> None:
    busy = [await mail.register(f"/busy-{number}") for number in range(3)]
    for _ in range(10):
        await mail.cancel_task()
    async with mail.world.database.transaction() as connection:
        quiet_account = await accounts.create_account(connection, "quiet")
    quiet = await mail.register("/quiet", account_id=quiet_account)
    await mail.world.graph.endpoints.test(quiet_account, quiet.endpoint_id)
    letters, is_more = await mail.world.graph.notify.claim(4, is_failing=False)
    chosen = [letter.delivery.endpoint_id for letter in letters]
    assert quiet.endpoint_id in chosen, "thirty that wait longer do not keep it from its turn"
    assert {secret.endpoint_id for secret in busy} < set(chosen)
    assert is_more


async def test_an_event_that_nobody_enqueued_is_found_by_its_rows(mail: Mailroom) -> None:
    secret = await mail.register()
    await mail.cancel_task()
    await mail.world.rows("DELETE FROM pgqueuer.pgqueuer")
    await mail.world.rows(
        "UPDATE webhook_endpoints SET wake_at = 'infinity' WHERE id = $1", secret.endpoint_id
    )
    assert await mail.deliver() == []
    await mail.world.graph.notify.tidy()
    assert len(await mail.deliver()) == 1


async def test_events_of_a_month_ago_go_and_what_is_on_its_way_stays(mail: Mailroom) -> None:
    secret = await mail.register()
    await mail.cancel_task()
    await mail.deliver()
    await mail.world.pass_time(days=20)
    await mail.cancel_task()
    await mail.deliver()
    await mail.world.pass_time(days=11)
    mail.receiver.usual = Reply(500)
    await mail.world.rows(
        "UPDATE deliveries SET status = 'pending', ended_at = NULL WHERE id = (SELECT min(id) FROM deliveries)"
    )
    await mail.world.graph.retention.step()
    assert len(await mail.deliveries()) == 2
    await mail.world.rows(
        "UPDATE deliveries SET status = 'failed', ended_at = clock_now() WHERE status = 'pending'"
    )
    await mail.world.graph.retention.step()
    assert len(await mail.deliveries()) == 1
    assert await mail.world.value("SELECT count(*) FROM tries") == 1
    await mail.world.graph.endpoints.remove(mail.world.account_id, secret.endpoint_id)
    await mail.world.pass_time(days=31)
    await mail.world.graph.retention.step()
    await mail.world.graph.retention.step()
    assert await mail.world.value("SELECT count(*) FROM webhook_endpoints") == 0
