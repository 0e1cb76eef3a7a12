"""Reviews through the operator's door: what waits, everything about it, and the decision."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from safelight.db.auditlog import verify_chain
from safelight.domain.review import Choice
from safelight.domain.task import ReviewReason, State
from tests.api.door import Door
from tests.api.operators import Operator
from tests.api.test_admin_accounts import every
from tests.lifecycle.invariants import assert_books
from tests.lifecycle.reviews import Desk, in_review
from tests.lifecycle.upstreams import picture
from tests.world import World

NOBODY = "01a228d0-0000-7000-8000-000000000000"


@pytest.fixture
async def operator(gallery: Door) -> Operator:
    return await Operator.at(gallery)


async def decide(operator: Operator, desk: Desk, body: dict[str, Any], *, key: str | None = None) -> Any:
    return await operator.post(f"/admin/tasks/{desk.task_id}/decisions", body, key=key)


async def test_what_waits_is_listed_oldest_first_and_filtered(world: World, operator: Operator) -> None:
    assert (await operator.get("/admin/reviews")).json == {"data": [], "next_cursor": None}
    desks = [await in_review(world, ReviewReason.DEADLINE) for _ in range(3)]
    desks.append(await in_review(world, ReviewReason.NO_PROGRESS))
    found = await every(operator, "/admin/reviews?limit=2")
    assert [one["id"] for one in found] == [str(desk.task_id) for desk in desks]
    last = found[-1]
    assert (last["review_reason"], last["version"], last["provider"]) == ("no_progress", 4, "lab-callback")
    assert (last["account_name"], last["held"]) == ("default", 1)
    assert last["decide_by"] > last["review_since"] > last["created_at"]
    stuck = (await operator.get("/admin/reviews?reason=no_progress")).json["data"]
    assert [one["id"] for one in stuck] == [str(desks[-1].task_id)]
    assert (await operator.get("/admin/reviews?provider=fal")).json["data"] == []
    assert len((await operator.get("/admin/reviews?provider=lab-callback")).json["data"]) == 4
    for query in ("reason=boredom", "cursor=x", "limit=0", "provider=%00"):
        assert (await operator.get(f"/admin/reviews?{query}")).status == 422, query


async def test_the_gauge_of_each_reason_is_the_number_of_rows(world: World, gallery: Door) -> None:
    for reason in (ReviewReason.DEADLINE, ReviewReason.DEADLINE, ReviewReason.SUBMIT_UNCERTAIN):
        await in_review(world, reason)
    lines = (await gallery.ask("GET", "/metrics")).body.decode().splitlines()
    gauges = {line for line in lines if line.startswith("safelight_reviews_open{")}
    assert gauges == {
        f'safelight_reviews_open{{reason="{reason}"}} {count}'
        for reason, count in {
            ReviewReason.DEADLINE: 2.0,
            ReviewReason.SUBMIT_UNCERTAIN: 1.0,
            ReviewReason.NO_PROGRESS: 0.0,
            ReviewReason.ARCHIVE_STUCK: 0.0,
            ReviewReason.PROVIDER_GONE: 0.0,
        }.items()
    }


async def test_a_decision_is_made_read_back_and_written_down(world: World, operator: Operator) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE)
    body = {
        "decision": "fail_and_release",
        "version": desk.version,
        "reason_code": "no_result",
        "note": "gave up",
    }
    made = await decide(operator, desk, body)
    assert made.status == 200
    assert (
        made.json.items()
        >= {
            "task_id": str(desk.task_id),
            "decision": "fail_and_release",
            "state": "failed",
            "decided_by": operator.name,
        }.items()
    )
    shown = (await operator.get(f"/admin/tasks/{desk.task_id}")).json
    assert (shown["state"], shown["failure_code"], shown["released"]) == ("failed", "no_result", 1)
    assert [event["target"] for event in shown["events"]] == [
        "queued", "submitting", "running", "review", "failed",
    ]  # fmt: skip
    (decision,) = shown["decisions"]
    assert (decision["decided_by"], decision["note"]) == (operator.name, "gave up")
    assert [loss["cost"] for loss in shown["losses"]] == [None]
    assert [entry["kind"] for entry in shown["entries"]] == ["hold", "settle"]
    (line,) = await operator.audit(f"task:{desk.task_id}")
    assert (line["action"], line["actor"]) == ("review.fail_and_release", operator.name)
    assert line["detail"]["note"] == "gave up"
    assert line["request_id"] == made.headers["X-Request-Id"]
    async with world.database.connection() as connection:
        assert (await verify_chain(connection)).broken_id is None
    await assert_books(world)


async def test_two_operators_cannot_both_decide(world: World, operator: Operator, gallery: Door) -> None:
    desk = await in_review(world, ReviewReason.NO_PROGRESS)
    other = await Operator.at(gallery)
    body = {"decision": "fail_and_release", "version": desk.version, "reason_code": "operator_decision"}
    assert (await decide(operator, desk, body)).status == 200
    late = await decide(other, desk, body)
    assert (late.status, late.code) == (409, "already-decided")
    assert operator.name in late.json["detail"]


async def test_a_decision_sent_again_under_its_key_is_answered_again(
    world: World, operator: Operator
) -> None:
    desk = await in_review(world, ReviewReason.NO_PROGRESS)
    body = {"decision": "fail_and_release", "version": desk.version, "reason_code": "operator_decision"}
    first = await decide(operator, desk, body, key="decide-1")
    again = await decide(operator, desk, body, key="decide-1")
    assert (first.status, again.status, again.body) == (200, 200, first.body)
    assert again.headers["Idempotent-Replayed"] == "true"
    changed = {**body, "reason_code": "no_result"}
    assert (await decide(operator, desk, changed, key="decide-1")).code == "idempotency-key-reused"


async def test_a_picture_is_attached_as_a_data_url(world: World, operator: Operator) -> None:
    desk = await in_review(world, ReviewReason.SUBMIT_UNCERTAIN)
    url = "data:image/png;base64," + base64.b64encode(picture()).decode()
    made = await decide(operator, desk, {"decision": "attach_result", "version": desk.version, "urls": [url]})
    assert (made.status, made.json["state"]) == (200, "archiving")
    await world.archive_all()
    assert await desk.state() is State.SUCCEEDED
    shown = (await operator.get(f"/admin/tasks/{desk.task_id}")).json
    assert [attempt["noticed_by"] for attempt in shown["attempts"]] == ["decision"]
    assert len(shown["assets"]) == 1


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "decision"),
        ({"decision": "paint", "version": 4}, "decision"),
        ({"decision": "check_again"}, "version"),
        ({"decision": "check_again", "version": "4"}, "version"),
        ({"decision": "check_again", "version": 0}, "version"),
        ({"decision": "check_again", "version": 2**40}, "version"),
        ({"decision": "check_again", "version": 4, "state": "succeeded"}, "state"),
        ({"decision": "check_again", "version": 4, "note": "\ud800"}, "note"),
        ({"decision": "resubmit", "version": 4, "note": "long enough to say"}, "reason_code"),
        ({"decision": "resubmit", "version": 4, "reason_code": "risk_accepted", "note": "short"}, "note"),
        ({"decision": "attach_result", "version": 4}, "urls"),
        ({"decision": "attach_result", "version": 4, "urls": ["https://10.0.0.1/x.png"]}, "urls[0]"),
        ({"decision": "attach_result", "version": 4, "urls": ["file:///etc/passwd"]}, "urls[0]"),
        ({"decision": "attach_result", "version": 4, "urls": [5]}, "urls[0]"),
    ],
)
async def test_a_decision_that_does_not_fit_is_refused_by_its_field(
    world: World, operator: Operator, body: dict[str, Any], field: str
) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE)
    answer = await decide(operator, desk, body)
    assert (answer.status, answer.code) == (422, "validation-failed")
    assert field in [error["field"] for error in answer.json["errors"]]
    assert await desk.state() is State.REVIEW


async def test_what_is_not_there_is_not_found(world: World, operator: Operator) -> None:
    body = {"decision": "check_again", "version": 1}
    assert (await operator.get(f"/admin/tasks/{NOBODY}")).status == 404
    assert (await operator.get("/admin/tasks/nonsense")).status == 404
    assert (await operator.post(f"/admin/tasks/{NOBODY}/decisions", body)).status == 404
    waiting = await world.submit()
    answer = await operator.post(f"/admin/tasks/{waiting}/decisions", body)
    assert (answer.status, answer.code) == (409, "not-in-review")


async def test_a_customer_sees_nothing_of_the_decision_but_its_end(world: World, gallery: Door) -> None:
    operator = await Operator.at(gallery)
    desk = await in_review(world, ReviewReason.DEADLINE)
    async with gallery.database.transaction() as connection:
        from safelight.db import accounts

        key = await accounts.create_key(connection, world.account_id, "", gallery.parts.pepper)
    headers = {"Authorization": f"Bearer {key}"}
    seen = await gallery.ask("GET", f"/v1/tasks/{desk.task_id}", headers=headers)
    assert seen.json["status"] == "processing"
    await decide(
        operator,
        desk,
        {
            "decision": "fail_and_release",
            "version": desk.version,
            "reason_code": "operator_decision",
            "note": "a secret of ours",
        },
    )
    seen = await gallery.ask("GET", f"/v1/tasks/{desk.task_id}?include=timeline", headers=headers)
    assert (seen.json["status"], seen.json["failure"]["code"]) == ("failed", "operator_decision")
    assert b"secret of ours" not in seen.body
    assert operator.id.encode() not in seen.body
    assert b"review" not in seen.body


async def test_addresses_of_results_are_shown_without_their_signatures(
    world: World, operator: Operator
) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE)
    await world.rows(
        "UPDATE attempts SET outputs = $1::jsonb", '[{"url": "https://x.example/1.png?signature=s3cret"}]'
    )
    shown = await operator.get(f"/admin/tasks/{desk.task_id}")
    assert b"s3cret" not in shown.body
    assert shown.json["attempts"][0]["outputs"] == [{"url": "https://x.example/1.png?…"}]


def test_the_choices_of_the_door_are_those_of_the_domain() -> None:
    from safelight.api.admin.shapes import DecisionBody

    schema = DecisionBody.model_json_schema()["properties"]["decision"]
    assert schema["enum"] == list(Choice)
