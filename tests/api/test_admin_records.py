"""Findings, callbacks, providers and the audit log through the operator's door."""

from __future__ import annotations

import pytest

from safelight.domain.task import ReviewReason
from tests.api.door import Door
from tests.api.operators import Operator
from tests.api.test_admin_accounts import every
from tests.lifecycle.reviews import in_review
from tests.lifecycle.upstreams import install
from tests.world import World


@pytest.fixture
async def operator(gallery: Door) -> Operator:
    return await Operator.at(gallery)


async def found_orphan(world: World) -> str:
    """A task whose success came after its end."""
    desk = await in_review(world, ReviewReason.DEADLINE)
    install(world, desk.provider)
    from safelight.domain.review import Choice

    await desk.decide(Choice.FAIL_AND_RELEASE)
    await desk.call_back()
    assert await desk.findings() == ["orphan_result"]
    return str(desk.task_id)


async def test_findings_are_listed_newest_first_and_resolved_once(world: World, operator: Operator) -> None:
    made = [await found_orphan(world) for _ in range(3)]
    found = await every(operator, "/admin/findings?limit=2")
    assert [one["task_id"] for one in found] == made[::-1]
    assert {one["kind"] for one in found} == {"orphan_result"}
    path = f"/admin/findings/{found[0]['id']}/resolve"
    done = await operator.post(path, {"note": "credited by the provider"}, key="resolve-1")
    assert (done.status, done.json) == (200, {"id": found[0]["id"], "resolved_by": operator.name})
    assert (await operator.post(path, {"note": "credited by the provider"}, key="resolve-1")).status == 200
    again = await operator.post(path, {"note": "another word"})
    assert (again.status, again.code) == (409, "already-decided")
    still_open = await every(operator, "/admin/findings?open=true&kind=orphan_result&limit=1")
    assert [one["id"] for one in still_open] == [one["id"] for one in found[1:]]
    closed = (await operator.get("/admin/findings")).json["data"][0]
    assert (closed["resolved_by"], closed["resolution"]) == (operator.name, "credited by the provider")
    (line,) = await operator.audit(f"finding:{found[0]['id']}")
    assert (line["action"], line["detail"]["note"]) == ("finding.resolve", "credited by the provider")
    assert (await operator.get("/admin/findings?provider=fal")).json["data"] == []


@pytest.mark.parametrize("path", ["0", "999999999", "x", "-1", "9" * 30])
async def test_a_finding_that_is_not_there_is_not_found(operator: Operator, path: str) -> None:
    answer = await operator.post(f"/admin/findings/{path}/resolve", {"note": "x"})
    assert (answer.status, answer.code) == (404, "not-found")


async def test_a_finding_needs_a_word(world: World, operator: Operator) -> None:
    await found_orphan(world)
    (found,) = (await operator.get("/admin/findings")).json["data"]
    for body in ({}, {"note": ""}, {"note": "x", "cost": 5}):
        assert (await operator.post(f"/admin/findings/{found['id']}/resolve", body)).status == 422


async def test_callbacks_are_listed_with_their_verdicts_and_without_their_bodies(
    world: World, operator: Operator
) -> None:
    desk = await in_review(world, ReviewReason.DEADLINE)
    for status, pictures in (("running", 0), ("succeeded", 1), ("succeeded", 1)):
        await desk.call_back(status, pictures)
    found = await every(operator, "/admin/notices?limit=1")
    assert [one["verdict"] for one in found] == ["duplicate", "applied", "applied"]
    assert {one["task_id"] for one in found} == {str(desk.task_id)}
    assert "body" not in found[0]
    applied = await every(operator, "/admin/notices?provider=lab-callback&verdict=applied&limit=1")
    assert [one["id"] for one in applied] == [one["id"] for one in found[1:]]
    assert (await operator.get("/admin/notices?provider=fal")).json["data"] == []


async def test_every_provider_key_tells_how_it_stands(world: World, operator: Operator) -> None:
    await in_review(world, ReviewReason.DEADLINE)
    await world.submit("lab-poll")
    data = (await operator.get("/admin/providers")).json["data"]
    assert [one["name"] for one in data] == ["lab-callback", "lab-poll", "lab-sync"]
    assert {one["name"]: one["waiting"] for one in data} == {"lab-callback": 0, "lab-poll": 1, "lab-sync": 0}
    assert not any(one["is_closed"] for one in data)


async def test_the_audit_log_is_read_in_pages(operator: Operator) -> None:
    for number in range(3):
        assert (await operator.post("/admin/accounts", {"name": f"account {number}"})).status == 201
    found = await every(operator, "/admin/audit?limit=2")
    assert [line["action"] for line in found] == ["account.create"] * 3 + ["admin_key.create"]
    assert [int(line["id"]) for line in found] == [4, 3, 2, 1]
    assert {len(line["hash"]) for line in found} == {64}


@pytest.mark.parametrize(
    "path", ["findings?open=maybe", "audit?cursor=x", "notices?limit=x", "findings?kind=%0a"]
)
async def test_a_query_that_makes_no_sense_is_refused(operator: Operator, path: str) -> None:
    assert (await operator.get(f"/admin/{path}")).status == 422
