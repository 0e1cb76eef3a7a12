"""Live events: of one task, of the whole account, and tickets that let a browser in."""

from __future__ import annotations

import re

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api.auth import Doorkeeper
from safelight.api.described import TASK_ID, described, parameter
from safelight.api.headers import headers_of
from safelight.api.parts import ApiParts
from safelight.api.problems import not_found
from safelight.api.shapes import EventTicket
from safelight.api.shown import json_answer, time_text
from safelight.api.streams import EventStream, Pace, frame, named_frame
from safelight.api.tasks import read_id
from safelight.db import views
from safelight.db.live import LiveEvent
from safelight.db.views import TaskView
from safelight.domain.task import STAGES, public_stage, public_status
from safelight.lifecycle.live import Live, Opener, Subscription

_NUMBER = re.compile(r"[0-9]{1,18}")
_TICKET = re.compile(r"[A-Za-z0-9_-]{20,100}")


class Events:
    """The routes of live events."""

    def __init__(self, parts: ApiParts, doorkeeper: Doorkeeper, live: Live) -> None:
        self._parts = parts
        self._doorkeeper = doorkeeper
        self._live = live
        settings = parts.settings
        self._pace = Pace(settings.stream_heartbeat_s, settings.stream_max_s)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        router = app.router
        router.add_api_route("/v1/events", self.of_account, methods=["GET"], **_OF_ACCOUNT)
        router.add_api_route("/v1/tasks/{id}/events", self.of_task, methods=["GET"], **_OF_TASK)
        router.add_api_route("/v1/event-tickets", self.issue, methods=["POST"], **_ISSUE)

    async def of_account(self, request: Request) -> Response:
        """Every change of your tasks from now on, or after `Last-Event-ID`."""
        opener = await self._admit(request)
        after = last_seen(request)
        subscription = await self._live.join(opener)
        since = subscription.since
        if after is None:
            return self._stream(subscription, named_frame("start", since, {}), since)
        if after < 0 or not subscription.position.can_resume(after):
            reset = {"reason": "Events after your last one are gone: list your tasks, then go on from here."}
            return self._stream(subscription, named_frame("reset", since, reset), since)
        return self._stream(subscription, b"", after)

    async def of_task(self, request: Request) -> Response:
        """One task: how it stands, then every change, to its end."""
        opener = await self._admit(request)
        task_id = read_id(request)
        async with self._parts.database.connection() as connection:
            task = await views.task_view(connection, opener.account_id, task_id)
        if task is None:
            raise not_found()
        after = last_seen(request)
        subscription = await self._live.join(opener, task_id=task_id)
        try:
            present = await self._present(task, subscription)
        except BaseException:
            self._live.leave(subscription)
            raise
        if after is None or after < 0 or not subscription.position.can_resume(after):
            return self._opened(subscription, present)
        if present.is_last and after >= present.number:
            # A browser that is told 204 does not come back; it has seen the end.
            self._live.leave(subscription)
            return Response(status_code=204)
        return self._stream(subscription, b"", after)

    async def issue(self, request: Request) -> Response:
        """A ticket that opens one stream within a minute, for a browser, which cannot send a key with it."""
        opener = await self._doorkeeper.admit_opener(request.scope)
        ticket, expires_at = await self._live.issue_ticket(opener)
        return json_answer({"ticket": ticket, "expires_at": time_text(expires_at)}, 201)

    async def _admit(self, request: Request) -> Opener:
        ticket = request.query_params.get("ticket")
        if ticket is None or b"authorization" in headers_of(request.scope):
            return await self._doorkeeper.admit_opener(request.scope)
        is_ours = _TICKET.fullmatch(ticket) and not self._doorkeeper.is_guessing(request.scope)
        found = await self._live.take_ticket(ticket) if is_ours else None
        if found is None:
            raise self._doorkeeper.refusal(request.scope)
        return found

    async def _present(self, task: TaskView, subscription: Subscription) -> LiveEvent:
        """How the task was last told of; one whose events are gone stands still, or has ended."""
        told = await self._live.present(task.account_id, task.id)
        return told or LiveEvent(
            account_id=task.account_id,
            number=subscription.since,
            task_id=task.id,
            version=task.version,
            status=public_status(task.state),
            stage=max(task.stage, STAGES.index(public_stage(task.state, task.review_reason))),
            percent=None,
            position=None,
            failure_class=task.failure_class,
            failure_code=task.failure_code,
            created_at=task.finished_at or task.created_at,
        )

    def _opened(self, subscription: Subscription, present: LiveEvent) -> Response:
        if not present.is_last:
            return self._stream(subscription, frame(present), present.number)
        subscription.close("ended")
        return self._stream(subscription, frame(present), present.number)

    def _stream(self, subscription: Subscription, opening: bytes, after: int) -> EventStream:
        return EventStream(self._live, subscription, self._pace, opening=opening, after=after)


def last_seen(request: Request) -> int | None:
    """The number after which a reader goes on; None if it says nothing, -1 if that is no number of ours.

    A browser that opens a stream anew, with another ticket, cannot set the header: for it there is the parameter.
    """
    given = request.headers.get("last-event-id", request.query_params.get("last_event_id"))
    if given is None:
        return None
    return int(given) if _NUMBER.fullmatch(given) else -1


_LAST = parameter("Last-Event-ID", "header", {"type": "string"}, "Go on after this event.")
_LAST_QUERY = parameter("last_event_id", "query", {"type": "string"}, "The same, where no header can be set.")
_TICKET_QUERY = parameter("ticket", "query", {"type": "string"}, "In place of a key: POST /v1/event-tickets.")
_OF_ACCOUNT = described(
    "Watch your tasks", {200: "text/event-stream"}, parameters=(_LAST, _LAST_QUERY, _TICKET_QUERY)
)
_OF_TASK = described(
    "Watch a task",
    {200: "text/event-stream", 204: None},
    refusals=(404,),
    parameters=(TASK_ID, _LAST, _LAST_QUERY, _TICKET_QUERY),
)
_ISSUE = described("Get a ticket for one stream", {201: EventTicket})
