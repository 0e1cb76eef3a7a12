"""The routes below `/v1/images`: a submit is held until its pictures are there, or answered with the task."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api import bodies, multipart
from safelight.api.auth import Doorkeeper
from safelight.api.headers import Headers, headers_of
from safelight.api.openai import described, forms
from safelight.api.openai.answers import failure_of, image_task, with_links, with_pictures
from safelight.api.openai.errors import refusal_of_failure
from safelight.api.openai.fields import RESPONSE_FORMATS, ResponseFormat, check_response_format
from safelight.api.openai.forms import Form
from safelight.api.openai.submitting import Caller, Submitted, Submitting, caller_of
from safelight.api.parts import ApiParts
from safelight.api.prefer import Patience, patience_of
from safelight.api.problems import not_found
from safelight.api.shown import Links, base_of, json_answer
from safelight.api.tasks import read_id
from safelight.api.waiting import Held, Waiting
from safelight.db import views
from safelight.db.views import TaskView
from safelight.domain.task import State, is_terminal
from safelight.errors import RequestError
from safelight.lifecycle.uploads import Places

READ_S = 120.0
"""How long the pictures of an edit may take to arrive."""
WAIT_S = 15.0
"""How long a caller waits for a place to send pictures."""
FORMS, FORMS_OF_ACCOUNT = 8, 2
FORM_PICTURES = 2
"""A form may have as many bytes as so many of the largest pictures: it is held in memory while it is taken apart."""
RETRY_AFTER_S = 2
ADVICE = "Send large pictures to POST /v1/uploads first, and name them by their ids as file_id."


class Images:
    """The OpenAI-compatible routes; `waiting` holds the callers."""

    def __init__(self, parts: ApiParts, doorkeeper: Doorkeeper, waiting: Waiting) -> None:
        self._parts = parts
        self._doorkeeper = doorkeeper
        self._waiting = waiting
        self._submitting = Submitting(parts)
        self._forms = Places(FORMS, FORMS_OF_ACCOUNT)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        for path, handler, shown in (
            ("/v1/images/generations", self.generate, described.GENERATE),
            ("/v1/images/generations/async", self.generate_async, described.GENERATE_ASYNC),
            ("/v1/images/edits", self.edit, described.EDIT),
            ("/v1/images/edits/async", self.edit_async, described.EDIT_ASYNC),
        ):
            app.router.add_api_route(path, handler, methods=["POST"], **shown)
        app.router.add_api_route("/v1/images/tasks/{id}", self.show, methods=["GET"], **described.SHOW)

    async def generate(self, request: Request) -> Response:
        """Pictures from a prompt: held until they are there, 202 with the task if that takes too long."""
        return await self._serve(request, "generate", self._parts.settings.hold_s)

    async def generate_async(self, request: Request) -> Response:
        """The same, answered at once with the task."""
        return await self._serve(request, "generate", 0.0)

    async def edit(self, request: Request) -> Response:
        """Pictures from pictures: held until they are there, 202 with the task if that takes too long."""
        return await self._serve(request, "edit", self._parts.settings.hold_s)

    async def edit_async(self, request: Request) -> Response:
        """The same, answered at once with the task."""
        return await self._serve(request, "edit", 0.0)

    async def show(self, request: Request) -> Response:
        """One task; with `Prefer: wait=N` held until it has ended."""
        account_id = await self._doorkeeper.admit(request.scope)
        wanted = check_response_format(request.query_params.get("response_format", RESPONSE_FORMATS[0]))
        patience = patience_of(request.scope, self._parts.settings.hold_s, default_s=0.0)
        task = await self._read(account_id, read_id(request))
        if not is_terminal(task.state):
            await self._waiting.hold(request, account_id, task.id, within_s=patience.seconds)
            task = await self._read(account_id, task.id)
        headers = _applied(patience)
        if task.state is State.SUCCEEDED:
            return await self._finished(request, task, wanted, headers)
        return json_answer(image_task(task), headers=headers)

    async def _serve(self, request: Request, operation: str, hold_s: float) -> Response:
        headers = headers_of(request.scope)
        account_id = await self._doorkeeper.admit(request.scope, headers)
        caller = caller_of(headers, account_id, operation)
        submit = self._generation if operation == "generate" else self._edit
        # The body is let go in there: what follows may take a minute, and many may be waiting.
        submitted = await submit(request, headers, caller)
        return await self._answer(request, account_id, submitted, patience_of(request.scope, hold_s))

    async def _generation(self, request: Request, headers: Headers, caller: Caller) -> Submitted:
        bodies.check_json_headers(headers)
        raw = await bodies.read_body(request, headers, self._parts.settings.max_body_bytes)
        body = bodies.parse_object(raw)
        return await self._submitting.submit(Form(body, bodies.fingerprint(body), raw), "generate", caller)

    async def _edit(self, request: Request, headers: Headers, caller: Caller) -> Submitted:
        declared = headers.get(b"content-type", b"")
        if headers.get(b"content-encoding", b"identity") != b"identity":
            raise RequestError(415, "unsupported-media-type", "Send the body without Content-Encoding.")
        limit = FORM_PICTURES * self._parts.settings.max_upload_bytes
        if not multipart.is_form(declared):
            bodies.check_json_headers(headers)
            limit = self._parts.settings.max_upload_bytes
        async with self._forms.take(caller.account_id, within_s=WAIT_S):
            # Never kept beside the pieces that it is taken apart into.
            form = forms.read_edit(
                declared,
                await bodies.read_body(request, headers, limit, advice=ADVICE, within_s=READ_S),
            )
            return await self._submitting.submit(form, "edit", caller)

    async def _answer(
        self, request: Request, account_id: UUID, submitted: Submitted, patience: Patience
    ) -> Response:
        """Hold the caller until the task has ended, and tell how it stands."""
        task_id, wanted = submitted.task_id, submitted.response_format
        place = f"/v1/images/tasks/{task_id}"
        headers = {"Content-Location": place, **_applied(patience)}
        if submitted.is_replayed:
            headers["Idempotent-Replayed"] = "true"
        # A new task has not ended yet.
        task = await self._read(account_id, task_id) if submitted.is_replayed else None
        if task is None or not is_terminal(task.state):
            held = await self._waiting.hold(request, account_id, task_id, within_s=patience.seconds)
            if held is Held.GONE:
                return Response(status_code=499)
            task = await self._read(account_id, task_id)
        if task.state is State.SUCCEEDED:
            return await self._finished(request, task, wanted, headers)
        failure = failure_of(task)
        if failure is not None:
            return refusal_of_failure(failure).answer(failure.message, headers=headers)
        headers["Location"] = f"{place}?response_format={wanted}"
        headers["Retry-After"] = str(RETRY_AFTER_S)
        return json_answer(image_task(task), 202, headers=headers)

    async def _finished(
        self, request: Request, task: TaskView, wanted: ResponseFormat, headers: Mapping[str, str]
    ) -> Response:
        if wanted == "url":
            settings = self._parts.settings
            base = base_of(request, settings)
            links = Links(base, self._parts.signer, settings.asset_url_ttl_s)
            return json_answer(with_links(task, links), headers=headers)
        async with self._parts.database.connection() as connection:
            ids = [UUID(asset["id"]) for asset in task.assets]
            found = [await views.asset(connection, task.account_id, asset_id) for asset_id in ids]
        assets = [asset for asset in found if asset is not None]
        if len(assets) < len(ids):
            raise not_found()
        return await with_pictures(task, assets, self._parts.store, headers)

    async def _read(self, account_id: UUID, task_id: UUID) -> TaskView:
        async with self._parts.database.connection() as connection:
            task = await views.task_view(connection, account_id, task_id)
        if task is None:
            raise not_found()
        return task


def _applied(patience: Patience) -> dict[str, str]:
    return {"Preference-Applied": patience.applied} if patience.applied else {}
