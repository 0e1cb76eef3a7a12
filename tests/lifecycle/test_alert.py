"""Alerts: one signed call for all that came up, at most one a minute, and never lost with a call that failed."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import structlog.testing
from aiohttp import web
from standardwebhooks.webhooks import Webhook, WebhookVerificationError

from safelight.domain.review import Choice
from safelight.domain.task import ReviewReason
from safelight.errors import ConfigurationError
from safelight.lifecycle.alert import Alerts
from safelight.settings import Settings, load_settings
from tests.lifecycle.reviews import in_review
from tests.lifecycle.upstreams import install
from tests.world import World

SECRET = "whsec_" + base64.b64encode(b"a secret that only the tests know").decode()


@dataclass
class Pager:
    """The operator's receiver: keeps what it was told, and answers as it is scripted."""

    url: str = ""
    answers: list[int] = field(default_factory=list)
    told: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    async def serve(self, request: web.Request) -> web.Response:
        self.told.append(
            ({name.lower(): value for name, value in request.headers.items()}, await request.read())
        )
        status = self.answers.pop(0) if self.answers else 200
        return web.Response(status=status, headers={"Location": "/elsewhere"} if status == 302 else {})

    @property
    def data(self) -> list[dict[str, Any]]:
        return [json.loads(body)["data"] for _, body in self.told]


@contextlib.asynccontextmanager
async def pager(*answers: int) -> AsyncIterator[Pager]:
    """A receiver on a free port."""
    made = Pager(answers=list(answers))
    app = web.Application()
    app.router.add_route("*", "/{rest:.*}", made.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}/pager"
        yield made
    finally:
        await runner.cleanup()


@contextlib.asynccontextmanager
async def alerting(world: World, url: str | None) -> AsyncIterator[Alerts]:
    """Alerts of one process."""
    words: dict[str, Any] = {"alert_url": url, "alert_secret": SECRET} if url else {}
    alerts = Alerts(world.database, Settings(data_dir=world.graph.settings.data_dir, **words))
    try:
        yield alerts
    finally:
        await alerts.aclose()


async def untold(world: World) -> int:
    count: int = await world.value("SELECT count(*) FROM alerts")
    return count


async def test_reviews_and_findings_are_told_in_one_signed_call(world: World) -> None:
    desks = [await in_review(world, ReviewReason.DEADLINE) for _ in range(2)]
    desks.append(await in_review(world, ReviewReason.SUBMIT_UNCERTAIN))
    await desks[0].decide(Choice.FAIL_AND_RELEASE)
    install(world, desks[0].provider)
    await desks[0].call_back()
    async with pager() as receiver, alerting(world, receiver.url) as alerts:
        await alerts.tell()
        await alerts.tell()
    (data,) = receiver.data
    assert data["counts"] == {
        "review": {"deadline": 2, "submit_uncertain": 1},
        "finding": {"orphan_result": 1},
    }
    assert [alert["task_id"] for alert in data["alerts"]] == [
        *(str(desk.task_id) for desk in desks),
        str(desks[0].task_id),
    ]
    assert await untold(world) == 0
    headers, body = receiver.told[0]
    assert Webhook(SECRET).verify(body, headers)["type"] == "operator.alert"
    with pytest.raises(WebhookVerificationError):
        Webhook(SECRET).verify(body + b" ", headers)


async def test_at_most_one_call_a_minute_whichever_process_makes_it(world: World) -> None:
    async with (
        pager() as receiver,
        alerting(world, receiver.url) as one,
        alerting(world, receiver.url) as another,
    ):
        await in_review(world, ReviewReason.DEADLINE)
        await asyncio.gather(*(alerts.tell() for alerts in (one, another) * 3))
        assert len(receiver.told) == 1
        await in_review(world, ReviewReason.NO_PROGRESS)
        await world.pass_time(seconds=50)
        await asyncio.gather(one.tell(), another.tell())
        assert len(receiver.told) == 1
        await world.pass_time(seconds=11)
        await asyncio.gather(one.tell(), another.tell())
    assert [data["counts"]["review"] for data in receiver.data] == [{"deadline": 1}, {"no_progress": 1}]


async def test_a_call_that_failed_is_logged_and_its_alerts_come_with_the_next(world: World) -> None:
    async with pager(500, 302) as receiver, alerting(world, receiver.url) as alerts:
        await in_review(world, ReviewReason.DEADLINE)
        with structlog.testing.capture_logs() as logs:
            await alerts.tell()
            await world.pass_time(seconds=61)
            await alerts.tell()
        assert [line["status"] for line in logs if line["event"] == "alert_failed"] == [500, 302]
        assert len(receiver.told) == 2, "a redirect is not followed"
        await in_review(world, ReviewReason.NO_PROGRESS)
        await world.pass_time(seconds=61)
        await alerts.tell()
    assert receiver.data[-1]["counts"]["review"] == {"deadline": 1, "no_progress": 1}
    assert await untold(world) == 0


async def test_a_receiver_that_is_not_there_stops_nothing(world: World) -> None:
    await in_review(world, ReviewReason.DEADLINE)
    async with alerting(world, "http://127.0.0.1:9/pager") as alerts:
        with structlog.testing.capture_logs() as logs:
            await alerts.tell()
    assert [line["reason"] for line in logs if line["event"] == "alert_failed"] == ["unreachable"]
    assert await untold(world) == 1


async def test_a_clock_that_was_set_back_does_not_silence_the_alerts(world: World) -> None:
    async with pager() as receiver, alerting(world, receiver.url) as alerts:
        await in_review(world, ReviewReason.DEADLINE)
        await alerts.tell()
        await world.pass_time(hours=-1)
        await in_review(world, ReviewReason.DEADLINE)
        await alerts.tell()
    assert len(receiver.told) == 2


async def test_what_could_not_be_told_for_a_day_is_not_told_any_more(world: World) -> None:
    await in_review(world, ReviewReason.DEADLINE)
    await world.pass_time(hours=25)
    async with pager() as receiver, alerting(world, receiver.url) as alerts:
        await alerts.tell()
    assert (receiver.told, await untold(world)) == ([], 0)


async def test_without_an_address_nothing_is_kept(world: World) -> None:
    await in_review(world, ReviewReason.DEADLINE)
    assert await untold(world) == 1
    async with alerting(world, None) as alerts:
        await alerts.tell()
    assert await untold(world) == 0


async def test_every_review_is_an_error_in_the_log(world: World) -> None:
    with structlog.testing.capture_logs() as logs:
        desk = await in_review(world, ReviewReason.DEADLINE)
    (line,) = [line for line in logs if line["event"] == "review_needed"]
    assert (line["log_level"], line["reason"], line["task_id"]) == ("error", "deadline", str(desk.task_id))


@pytest.mark.parametrize(
    "words",
    [
        {"alert_url": "https://pager.example/x"},
        {"alert_secret": SECRET},
        {"alert_url": "https://pager.example/x", "alert_secret": "not one"},
        {"alert_url": "https://pager.example/x", "alert_secret": "whsec_c2hvcnQ="},
        {"alert_url": "https://pager.example/x", "alert_secret": "whsec_%%%"},
        {"alert_url": "ftp://pager.example/x", "alert_secret": SECRET},
    ],
)
def test_settings_that_cannot_work_refuse_the_start(words: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="alert") as caught:
        load_settings(words, {})
    assert "a secret that only" not in str(caught.value)
    assert SECRET not in str(caught.value)
