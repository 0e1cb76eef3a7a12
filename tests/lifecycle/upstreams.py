"""Upstreams of the tests' own: scripted providers, signed callbacks, and a host whose results misbehave."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import io
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar, cast
from uuid import UUID

from aiohttp import web
from PIL import Image

from safelight.domain.provider import (
    AttemptRef,
    Capabilities,
    Origin,
    Output,
    Provider,
    ProviderUpdate,
    RecordPage,
    Submission,
    UpdateStatus,
    UpstreamRecord,
)
from safelight.errors import CallbackRejected, ProviderError, ProviderUnavailable, SubmissionUncertain
from tests.world import World

Headers = list[tuple[bytes, bytes]]
Submit = Callable[[Submission], Awaitable[ProviderUpdate]]
Poll = Callable[[AttemptRef], Awaitable[ProviderUpdate]]
LookUp = Callable[[AttemptRef], Awaitable[ProviderUpdate | None]]
ListRecords = Callable[[datetime, datetime, str | None], Awaitable[RecordPage]]


def picture(shade: int = 90) -> bytes:
    """A small PNG."""
    buffer = io.BytesIO()
    image = Image.new("RGB", (16, 16), (shade, 40, 40))
    image.putpixel((1, 1), (255, 255, 255))
    image.save(buffer, "PNG")
    return buffer.getvalue()


def ref_of(reference: str) -> str:
    """The id that a scripted provider gives to one of our references."""
    return f"up.{reference}"


def accepted(reference: str, **more: Any) -> ProviderUpdate:
    """The answer of an upstream that has put it in its line."""
    values = {"provider_ref": ref_of(reference), "upstream_status": "queued", **more}
    return ProviderUpdate(UpdateStatus.QUEUED, Origin.ANSWER, **values)


def running(**more: Any) -> ProviderUpdate:
    """A look that shows it running."""
    return ProviderUpdate(UpdateStatus.RUNNING, Origin.POLL, **{"upstream_status": "running", **more})


def done(*outputs: Output, origin: Origin = Origin.POLL, **more: Any) -> ProviderUpdate:
    """A success with these outputs, or with one picture inline."""
    found = outputs or (Output(data=picture()),)
    return ProviderUpdate(
        UpdateStatus.SUCCEEDED, origin, outputs=found, **{"upstream_status": "done", **more}
    )


def failed(origin: Origin = Origin.POLL, **more: Any) -> ProviderUpdate:
    """A failure in the upstream's own words."""
    return ProviderUpdate(UpdateStatus.FAILED, origin, **{"upstream_status": "failed", **more})


@dataclass
class Scripted:
    """A provider that does what a test tells it; it keeps what it was asked."""

    name: str
    capabilities: Capabilities = field(default_factory=Capabilities)
    submit_does: Submit | None = None
    poll_does: Poll | None = None
    look_up_does: LookUp | None = None
    list_does: ListRecords | None = None
    cancels: bool = False
    secret: str = ""
    submissions: list[Submission] = field(default_factory=list)
    polls: int = 0
    look_ups: int = 0
    lists: list[str | None] = field(default_factory=list)
    cancel_calls: int = 0

    async def submit(self, submission: Submission) -> ProviderUpdate:
        self.submissions.append(submission)
        if self.submit_does is None:
            return accepted(submission.reference)
        return await self.submit_does(submission)

    async def poll(self, attempt: AttemptRef) -> ProviderUpdate:
        self.polls += 1
        return running() if self.poll_does is None else await self.poll_does(attempt)

    async def look_up(self, attempt: AttemptRef) -> ProviderUpdate | None:
        self.look_ups += 1
        return None if self.look_up_does is None else await self.look_up_does(attempt)

    async def cancel(self, attempt: AttemptRef) -> bool:
        self.cancel_calls += 1
        return self.cancels

    async def list_records(self, since: datetime, until: datetime, cursor: str | None) -> RecordPage:
        self.lists.append(cursor)
        if self.list_does is None:
            raise ProviderError(f"{self.name} has no list")
        return await self.list_does(since, until, cursor)

    async def verify_callback(self, headers: Sequence[tuple[bytes, bytes]], raw: bytes) -> None:
        if (b"x-genuine", b"yes") not in headers:
            raise CallbackRejected("wrong_signature")

    def read_callback(self, raw: bytes) -> ProviderUpdate:
        body = json.loads(raw)
        outputs = tuple(Output(data=picture()) for _ in range(body.get("pictures", 0)))
        return ProviderUpdate(
            UpdateStatus(body["status"]),
            Origin.CALLBACK,
            provider_ref=body.get("id"),
            upstream_status=body["status"],
            outputs=outputs,
        )

    def keepable(self, raw: bytes) -> bytes:
        return raw.replace(self.secret.encode(), b"***") if self.secret else raw


GENUINE: Headers = [(b"x-genuine", b"yes")]


ProviderT = TypeVar("ProviderT", bound=Provider)


def pages(*listed: Sequence[UpstreamRecord] | Exception) -> ListRecords:
    """A list in pages, with the page's number as the cursor; records outside the window are left out."""

    async def list_records(since: datetime, until: datetime, cursor: str | None) -> RecordPage:
        number = int(cursor or 0)
        page = listed[number] if listed else ()
        if isinstance(page, Exception):
            raise page
        inside = tuple(record for record in page if since <= record.created_at < until)
        return RecordPage(inside, str(number + 1) if number + 1 < len(listed) else None)

    return list_records


def install(world: World, provider: ProviderT) -> ProviderT:
    """Put a provider in the place of the one with its name."""
    cast("dict[str, Provider]", world.graph.context.providers)[provider.name] = provider
    return provider


def always(error: Exception) -> Callable[[Any], Awaitable[Any]]:
    """A call that ends with this error every time."""

    async def call(_: Any) -> Any:
        raise error

    return call


def in_turn(*steps: Any) -> Callable[[Any], Awaitable[Any]]:
    """A call that answers with one step after another; errors are raised, the last step stays."""
    left = list(steps)

    async def call(_: Any) -> Any:
        step = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(step, Exception):
            raise step
        return step

    return call


def not_sent() -> ProviderUnavailable:
    """Nothing went out."""
    return ProviderUnavailable("connection refused", reason="not_sent")


def uncertain() -> SubmissionUncertain:
    """It may have been accepted."""
    return SubmissionUncertain("reset by peer")


# ---------------------------------------------------------------------------- callbacks of the lab


def signed(body: dict[str, Any] | bytes, secret: bytes = b"lab-secret") -> tuple[Headers, bytes]:
    """A callback as the lab signs it: hex of the HMAC over the raw body."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    mac = hmac.new(secret, raw, hashlib.sha256).hexdigest()
    return [(b"content-type", b"application/json"), (b"x-signature", mac.encode())], raw


async def lab_job(world: World, reference: str) -> str:
    """The lab's own id of the job with this reference."""
    headers = {"Authorization": "Bearer lab-key"}
    async with world.session.get(f"{world.lab_url}/callback/v1/jobs", headers=headers) as answer:
        jobs = (await answer.json())["jobs"]
    (found,) = [job["id"] for job in jobs if job["reference"] == reference]
    return str(found)


async def record_of(world: World, provider_ref: str) -> dict[str, Any]:
    """The lab's record of a job: what its callbacks carry."""
    url = f"{world.lab_url}/callback/v1/jobs/{provider_ref}"
    async with world.session.get(url, headers={"Authorization": "Bearer lab-key"}) as answer:
        record: dict[str, Any] = await answer.json()
        return record


def token_of(world: World, task_id: UUID, attempt: int = 1) -> str:
    """The token in an attempt's callback address."""
    return world.graph.context.tokens.issue(task_id, attempt)


async def call_back(
    world: World, token: str | None, callback: tuple[Headers, bytes], provider: str = "lab-callback"
) -> None:
    """Have a callback arrive."""
    headers, raw = callback
    await world.graph.receive.receive(provider, token, headers, raw)


async def verdicts(world: World) -> list[str]:
    """What became of the callbacks that were kept, in order."""
    return [row["verdict"] for row in await world.rows("SELECT verdict FROM callbacks ORDER BY id")]


# ---------------------------------------------------------------------------- a host of results


@dataclass
class ResultHost:
    """Serves one picture at every path, after misbehaving in the ways that are scripted."""

    url: str = ""
    steps: list[str] = field(default_factory=list)
    asked: int = 0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        step = self.steps.pop(0) if self.steps else "good"
        data = picture()
        if step == "html":
            return web.Response(text="<html>Just a moment</html>", content_type="text/html")
        if step == "gone":
            return web.Response(status=403)
        if step == "error":
            return web.Response(status=503)
        if step == "cut":
            return web.Response(body=data[: len(data) // 2], content_type="image/png")
        return web.Response(body=data, content_type="image/png")


@contextlib.asynccontextmanager
async def result_host(*steps: str) -> AsyncIterator[ResultHost]:
    """A running result host on a free port."""
    host = ResultHost(steps=list(steps))
    app = web.Application()
    app.router.add_get("/{rest:.*}", host.serve)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield host
    finally:
        await runner.cleanup()


# ---------------------------------------------------------------------------- time


async def pass_until_due(world: World, task_id: UUID) -> float:
    """Move the clock just past a task's `wake_at`.

    Returns the seconds that were planned, counted from the last look or else from the last move, so that a slow
    machine does not make them fewer.
    """
    (row,) = await world.rows(
        "SELECT extract(epoch FROM wake_at - clock_now())::float8 AS left_s,"
        "       extract(epoch FROM wake_at - greatest(state_since, looked_at))::float8 AS planned_s"
        " FROM tasks LEFT JOIN attempts ON task_id = id AND number = attempt WHERE id = $1",
        task_id,
    )
    if row["left_s"] is None:
        return 0.0  # it has ended: nothing is planned any more
    await world.pass_time(seconds=max(float(row["left_s"]), 0.0) + 0.01)
    return float(row["planned_s"])


async def run_task(world: World, shape: str = "lab-callback", **wish: Any) -> UUID:
    """Submit and dispatch one task."""
    task_id = await world.submit(shape, **wish)
    await world.dispatch(shape)
    return task_id


async def finished(world: World, **wish: Any) -> tuple[UUID, dict[str, Any]]:
    """A running task whose picture the lab has drawn, and the record that its callback carries."""
    before = len((await world.lab_ledger())["items"])
    task_id = await run_task(world, **wish)
    await world.until_drawn(before + 1)
    provider_ref = (await world.attempt(task_id)).provider_ref
    assert provider_ref is not None
    return task_id, await record_of(world, provider_ref)


def still_running(record: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {**record, "status": "running", "images": [], "progress": 40, "finished_at": None, **more}
