"""Webhooks reach their receivers: signed, on schedule, at least once, and told truly."""

from __future__ import annotations

import base64
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime

import pytest
from standardwebhooks.webhooks import WebhookVerificationError

from safelight.assets.fetch import Fetcher
from safelight.domain.sealing import Sealer
from safelight.domain.webhook import GAPS_S, OVERLAP_S
from safelight.lifecycle.notify import LIMITS
from safelight.settings import derive_key
from safelight.telemetry import set_fault_hook
from tests.receiver import Mailroom, Reply
from tests.world import SECRET


async def test_a_ready_task_is_told_once_in_its_settlement_s_words(mail: Mailroom) -> None:
    secret = await mail.register()
    task_id = await mail.finish_task()
    (outcome,) = await mail.deliver()
    assert outcome.status == 200
    (told,) = mail.receiver.told
    event = told.verified(secret.text)
    task = await mail.world.task(task_id)
    (asset,) = await mail.world.rows("SELECT id FROM assets")
    assert event == {
        "type": "task.ready",
        "timestamp": event["timestamp"],
        "data": {
            "task_id": str(task_id),
            "status": "ready",
            "version": task.version,
            "failure": None,
            "assets": [str(asset["id"])],
            "asset_count": 1,
            "credits": {"captured": 1, "released": 0},
        },
    }
    assert await mail.deliver() == []
    assert await mail.deliveries() == [("delivered", "", 1)]


async def test_every_end_is_told_with_its_class(mail: Mailroom) -> None:
    secret = await mail.register()
    canceled = await mail.cancel_task()
    await mail.world.knobs(moderate=1)
    task_id = await mail.world.submit("lab-sync")
    await mail.world.dispatch("lab-sync")
    assert await mail.world.state(task_id) == "blocked"
    await mail.deliver()
    told = {
        event["data"]["task_id"]: event for event in (one.verified(secret.text) for one in mail.receiver.told)
    }
    assert told[str(canceled)]["data"]["failure"] == {"class": "canceled", "code": "canceled"}
    assert told[str(task_id)]["data"]["failure"]["class"] == "content_blocked"
    assert {event["type"] for event in told.values()} == {"task.failed"}
    assert all(event["data"]["credits"] == {"captured": 0, "released": 1} for event in told.values())


async def test_an_account_without_an_endpoint_has_no_event_and_a_new_endpoint_hears_of_what_comes(
    mail: Mailroom,
) -> None:
    await mail.cancel_task()
    assert await mail.world.value("SELECT count(*) FROM webhook_events") == 0
    await mail.register()
    await mail.cancel_task()
    await mail.deliver()
    assert len(mail.receiver.told) == 1


async def test_endpoints_get_the_events_that_they_want(mail: Mailroom) -> None:
    await mail.register("/ready", types=["task.ready"])
    await mail.register("/failed", types=["task.failed"])
    await mail.register("/all")
    await mail.finish_task()
    await mail.cancel_task()
    await mail.deliver()
    assert [one.event["type"] for one in mail.receiver.on("/ready")] == ["task.ready"]
    assert [one.event["type"] for one in mail.receiver.on("/failed")] == ["task.failed"]
    assert sorted(one.event["type"] for one in mail.receiver.on("/all")) == ["task.failed", "task.ready"]


async def test_the_id_is_one_for_all_endpoints_and_tries_and_the_time_is_each_try_s(mail: Mailroom) -> None:
    await mail.register("/one")
    await mail.register("/two")
    mail.receiver.replies["/one"] = [Reply(500)]
    await mail.cancel_task()
    await mail.deliver()
    await mail.world.pass_time(seconds=7)
    await mail.deliver()
    first, second = mail.receiver.on("/one")
    (other,) = mail.receiver.on("/two")
    assert first.id == second.id == other.id
    assert first.id.startswith("evt_")
    assert first.body == second.body == other.body
    assert int(second.headers["webhook-timestamp"]) - int(first.headers["webhook-timestamp"]) in (7, 8)
    assert [one.headers["webhook-attempt"] for one in (first, second)] == ["1", "2"]
    assert first.headers["user-agent"] == "safelight-webhooks/1"
    assert first.headers["content-type"] == "application/json"


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
async def test_any_2xx_is_delivered(mail: Mailroom, status: int) -> None:
    secret = await mail.register()
    mail.receiver.usual = Reply(status)
    await mail.cancel_task()
    await mail.deliver()
    assert await mail.deliveries() == [("delivered", "", 1)]
    assert (await mail.endpoint(secret.endpoint_id))["failures"] == 0


@pytest.mark.parametrize(
    ("reply", "reason", "is_throttled"),
    [
        (Reply(301, headers={"Location": "/other"}), "redirect", False),
        (Reply(302, headers={"Location": "https://elsewhere.example/x?token=1"}), "redirect", False),
        (Reply(307), "redirect", False),
        (Reply(304), "redirect", False),
        (Reply(400), "", False),
        (Reply(401), "", False),
        (Reply(404), "", False),
        (Reply(408), "", False),
        (Reply(413), "", False),
        (Reply(429), "", True),
        (Reply(500), "", False),
        (Reply(502), "", True),
        (Reply(503), "", True),
        (Reply(504), "", True),
        (Reply(0), "unreachable", False),
    ],
)
async def test_everything_else_is_tried_again(
    mail: Mailroom, reply: Reply, reason: str, is_throttled: bool
) -> None:
    secret = await mail.register()
    mail.receiver.replies["/hooks"] = [reply]
    await mail.cancel_task()
    (outcome,) = await mail.deliver()
    assert outcome.reason == reason
    assert await mail.deliveries() == [("pending", "", 1)]
    gap = await mail.world.value("SELECT extract(epoch FROM due_at - clock_now())::float8 FROM deliveries")
    assert (55 < gap <= 60) if is_throttled else (3 < gap <= 6)
    assert (await mail.endpoint(secret.endpoint_id))["concurrency"] == (5 if is_throttled else 10)
    assert [one.path for one in mail.receiver.told] == ["/hooks"], "a redirect is not followed"
    await mail.world.pass_time(seconds=61)
    await mail.deliver()
    assert await mail.deliveries() == [("delivered", "", 2)]
    assert (await mail.endpoint(secret.endpoint_id))["concurrency"] == (6 if is_throttled else 10)


async def test_no_answer_in_time_counts_as_overload_and_a_body_that_never_ends_as_nothing(
    mail: Mailroom,
) -> None:
    secret = await mail.register("/hangs")
    notify = mail.world.graph.notify
    await notify._well.aclose()
    notify._well = Fetcher(
        [mail.receiver.origin], limits=replace(LIMITS, first_byte_s=0.3, rate_window_s=0.3)
    )
    mail.receiver.replies["/hangs"] = [Reply(-1)]
    await mail.cancel_task()
    (outcome,) = await mail.deliver()
    assert (outcome.status, outcome.reason) == (None, "timeout")
    assert (await mail.endpoint(secret.endpoint_id))["concurrency"] == 5
    gap = await mail.world.value("SELECT extract(epoch FROM due_at - clock_now())::float8 FROM deliveries")
    assert 50 < gap <= 60
    await mail.register("/drips")
    mail.receiver.replies["/drips"] = [Reply(200, b"so far", drips=True)]
    await mail.cancel_task()
    assert {outcome.status for outcome in await mail.deliver()} == {200}


async def test_a_redirect_is_told_with_the_host_that_it_leads_to(mail: Mailroom) -> None:
    await mail.register()
    mail.receiver.usual = Reply(308, headers={"Location": "https://www.shop.example/hooks/?token=secret"})
    await mail.cancel_task()
    (outcome,) = await mail.deliver()
    assert outcome.detail == "redirects are not followed; it leads to https://www.shop.example"


async def test_ten_tries_on_schedule_and_then_never_again(mail: Mailroom) -> None:
    secret = await mail.register()
    mail.receiver.usual = Reply(500)
    await mail.cancel_task()
    gaps: list[float] = []
    for _ in range(10):
        assert len(await mail.deliver()) == 1
        gap = await mail.world.value(
            "SELECT extract(epoch FROM due_at - clock_now())::float8 FROM deliveries WHERE status = 'pending'"
        )
        if gap is None:
            break
        gaps.append(gap)
        await mail.world.pass_time(seconds=gap - 2)
        assert await mail.deliver() == [], "not before its time"
        await mail.world.pass_time(seconds=3)
    assert await mail.deliveries() == [("failed", "exhausted", 10)]
    assert len(gaps) == 9
    for gap, planned in zip(gaps, GAPS_S[1:], strict=True):
        assert 0.8 * planned - 1 <= gap <= 1.2 * planned
    await mail.world.pass_time(days=4)
    assert await mail.deliver() == []
    assert len({one.id for one in mail.receiver.told}) == 1
    assert (await mail.endpoint(secret.endpoint_id))["disabled_at"] is None, "one lost event disables nobody"


@pytest.mark.parametrize(("wish", "least", "most"), [("1", 60, 60), ("90", 90, 90), ("86400", 120, 120)])
async def test_a_receiver_s_own_time_is_heeded_up_to_twice_ours(
    mail: Mailroom, wish: str, least: float, most: float
) -> None:
    await mail.register()
    mail.receiver.usual = Reply(429, headers={"Retry-After": wish})
    await mail.cancel_task()
    await mail.deliver()
    gap = await mail.world.value("SELECT extract(epoch FROM due_at - clock_now())::float8 FROM deliveries")
    assert least - 3 < gap <= most


@pytest.mark.parametrize(("in_s", "least", "most"), [(-3_600, 0, 60), (110, 60, 111), (31_536_000, 90, 120)])
async def test_a_date_is_heeded_as_seconds_are(
    mail: Mailroom, in_s: float, least: float, most: float
) -> None:
    await mail.register()
    moment = await mail.world.database.now() + timedelta(seconds=in_s)
    mail.receiver.usual = Reply(503, headers={"Retry-After": format_datetime(moment, usegmt=True)})
    await mail.cancel_task()
    await mail.deliver()
    gap = await mail.world.value("SELECT extract(epoch FROM due_at - clock_now())::float8 FROM deliveries")
    assert least < gap <= most


async def test_death_before_the_call_and_death_after_it_both_bring_the_same_id_again(mail: Mailroom) -> None:
    await mail.register()
    await mail.cancel_task()
    for moment in ("before_delivery", "after_delivery"):
        letters, _ = await mail.world.graph.notify.claim(10, is_failing=False)
        (letter,) = letters

        def die(name: str, moment: str = moment) -> None:
            if name == moment:
                raise RuntimeError("killed")

        set_fault_hook(die)
        try:
            with pytest.raises(RuntimeError, match="killed"):
                await mail.world.graph.notify.deliver(letter)
        finally:
            set_fault_hook(None)
        assert await mail.deliver() == [], "its lease is not over"
        await mail.world.pass_time(seconds=61)
    (outcome,) = await mail.deliver()
    assert outcome.status == 200
    before, after = mail.receiver.told
    assert before.id == after.id
    assert before.body == after.body
    assert await mail.deliveries() == [("delivered", "", 1)]


async def test_a_try_that_ends_after_its_lease_records_nothing_twice(mail: Mailroom) -> None:
    await mail.register()
    await mail.cancel_task()
    (late,), _ = await mail.world.graph.notify.claim(10, is_failing=False)
    await mail.world.pass_time(seconds=61)
    await mail.deliver()
    await mail.world.graph.notify.deliver(late)
    assert await mail.deliveries() == [("delivered", "", 1)]
    assert await mail.world.value("SELECT count(*) FROM tries") == 1


async def test_an_endpoint_edited_between_two_tries_is_called_at_its_new_address(mail: Mailroom) -> None:
    secret = await mail.register("/old")
    mail.receiver.replies["/old"] = [Reply(500)]
    await mail.cancel_task()
    await mail.deliver()
    await mail.world.graph.endpoints.change(
        mail.world.account_id, secret.endpoint_id, url=mail.receiver.url("/new")
    )
    assert (await mail.endpoint(secret.endpoint_id))["failures"] == 0
    await mail.world.pass_time(seconds=7)
    await mail.deliver()
    (old,), (new,) = mail.receiver.on("/old"), mail.receiver.on("/new")
    assert old.id == new.id
    assert [row["url"] for row in await mail.world.rows("SELECT url FROM tries ORDER BY number")] == [
        mail.receiver.url("/old"),
        mail.receiver.url("/new"),
    ]


async def test_an_endpoint_deleted_between_two_tries_is_left_alone(mail: Mailroom) -> None:
    secret = await mail.register()
    mail.receiver.usual = Reply(500)
    await mail.cancel_task()
    await mail.deliver()
    await mail.world.graph.endpoints.remove(mail.world.account_id, secret.endpoint_id)
    await mail.world.pass_time(days=1)
    assert await mail.deliver() == []
    assert await mail.deliveries() == [("canceled", "endpoint_deleted", 1)]
    assert await mail.world.value("SELECT count(*) FROM webhook_secrets") == 0


async def test_both_secrets_sign_while_one_is_rotated_and_then_the_new_one_alone(mail: Mailroom) -> None:
    old = await mail.register()
    new = await mail.world.graph.endpoints.rotate(mail.world.account_id, old.endpoint_id, overlap_s=OVERLAP_S)
    await mail.cancel_task()
    await mail.deliver()
    await mail.world.pass_time(hours=25)
    await mail.cancel_task()
    await mail.deliver()
    during, after = mail.receiver.told
    assert during.verified(old.text) == during.verified(new.text)
    assert after.headers["webhook-signature"].count("v1,") == 1
    with pytest.raises(WebhookVerificationError):
        after.verified(old.text, later_s=25 * 3_600)
    assert after.verified(new.text, later_s=25 * 3_600)["type"] == "task.failed"


async def test_a_leaked_secret_can_be_revoked_at_once(mail: Mailroom) -> None:
    old = await mail.register()
    new = await mail.world.graph.endpoints.rotate(mail.world.account_id, old.endpoint_id, overlap_s=0)
    await mail.cancel_task()
    await mail.deliver()
    (told,) = mail.receiver.told
    with pytest.raises(WebhookVerificationError):
        told.verified(old.text)
    assert told.verified(new.text)["type"] == "task.failed"


async def test_secrets_lie_encrypted_and_bound_to_their_row(mail: Mailroom) -> None:
    secret = await mail.register()
    (row,) = await mail.world.rows("SELECT id, sealed, key_id FROM webhook_secrets")
    raw = base64.b64decode(secret.text.removeprefix("whsec_"))
    assert len(raw) == 32
    assert raw not in row["sealed"]
    sealer = Sealer(derive_key(SECRET, "webhook secrets"))
    assert sealer.open(row["sealed"], place=row["id"].bytes, key_id=row["key_id"]) == raw
    assert sealer.open(row["sealed"], place=b"elsewhere", key_id=row["key_id"]) is None
    assert sealer.open(row["sealed"], place=row["id"].bytes, key_id="another") is None
    assert secret.text not in repr(secret)


async def test_what_a_receiver_answers_is_kept_short_and_without_secrets(mail: Mailroom) -> None:
    secret = await mail.register()
    body = b"\x00 told with " + secret.text.encode() + b" and Bearer abc.def and \xff" + b"x" * 20_000
    mail.receiver.usual = Reply(500, body)
    await mail.cancel_task()
    await mail.deliver()
    (row,) = await mail.world.rows("SELECT answer, headers FROM tries")
    assert len(row["answer"]) == 4_096
    assert "whsec_" not in row["answer"]
    assert "abc.def" not in row["answer"]
    assert "\x00" not in row["answer"]
    signature = mail.receiver.told[0].headers["webhook-signature"]
    assert signature.removeprefix("v1,") not in row["headers"]
    assert mail.receiver.told[0].id in row["headers"]


async def test_credits_that_run_low_are_told_once(mail: Mailroom) -> None:
    secret = await mail.register()
    await mail.world.graph.endpoints.want_low_credits(mail.world.account_id, 999)
    for _ in range(3):
        await mail.world.submit()
    await mail.deliver()
    (told,) = mail.receiver.told
    event = told.verified(secret.text)
    assert event["type"] == "credits.low"
    assert event["data"] == {"available": 998, "held": 2, "threshold": 999}
