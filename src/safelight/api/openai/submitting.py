"""From what a caller of this door sent to an accepted task: translated, judged, pictures kept, credits held."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from uuid import UUID

from safelight.api.bodies import read_idempotency_key
from safelight.api.headers import Headers
from safelight.api.openai.fields import (
    ResponseFormat,
    Translated,
    in_their_words,
    response_format_of,
    translate,
)
from safelight.api.openai.forms import Form
from safelight.api.parts import ApiParts
from safelight.api.problems import FieldsRefused
from safelight.api.wishes import make_wish
from safelight.assets.urls import parse_origins
from safelight.domain.ids import content_id, new_id
from safelight.errors import AssetError, RequestError
from safelight.lifecycle.accept import Accepted, Wish
from safelight.lifecycle.inputs import InputsRefused, Sources, refusal_of
from safelight.lifecycle.uploads import KEEP_INPUT_S


@dataclass(frozen=True, slots=True)
class Caller:
    """Who submits, and under which key of the receipts; `has_key` says whether it is of the caller's own making."""

    account_id: UUID
    key: str
    has_key: bool


@dataclass(frozen=True, slots=True)
class Submitted:
    """A task that was accepted, now or under the same key before, and how its pictures are wanted."""

    task_id: UUID
    response_format: ResponseFormat
    is_replayed: bool


def caller_of(headers: Headers, account_id: UUID, operation: str) -> Caller:
    """The caller; without an `Idempotency-Key` every request is a new task.

    Raises:
        RequestError: 400, the key is malformed.
    """
    # A receipt's key of this door has a space in it, which no key of a caller can have: so it is this door's alone.
    if b"idempotency-key" not in headers:
        return Caller(account_id, f"images/{operation} {new_id()}", has_key=False)
    given = read_idempotency_key(headers)
    return Caller(
        account_id, f"images/{operation} {hashlib.sha256(given.encode()).hexdigest()}", has_key=True
    )


class Submitting:
    """Submits forms of this door through the same verbs as `POST /v1/tasks`."""

    def __init__(self, parts: ApiParts) -> None:
        self._parts = parts
        self._origins = parse_origins(parts.settings.allowed_origins)

    async def submit(self, form: Form, operation: str, caller: Caller) -> Submitted:
        """Accept the task, or find the one that the same key was accepted for.

        Raises:
            RequestError: whatever `POST /v1/tasks` refuses, with the fields under the caller's names.
        """
        try:
            translated = translate(form.fields, self._parts.catalog, operation=operation)
            wish, sources = self._wish_of(form, translated, caller)
        except RequestError as error:
            # An earlier answer to this key counts more than what we think of the body today.
            accepted = await self._find(form, caller)
            if accepted is not None:
                return Submitted(accepted.task_id, response_format_of(form.fields), is_replayed=True)
            raise _in_their_words(error, form) from None
        try:
            accepted = await self._accept(form, wish, sources, caller)
        except InputsRefused as error:
            raise _in_their_words(error, form) from None
        return Submitted(accepted.task_id, translated.response_format, accepted.is_replayed)

    async def _find(self, form: Form, caller: Caller) -> Accepted | None:
        if not caller.has_key:
            return None
        return await self._parts.accept.find_receipt(caller.account_id, caller.key, form.fingerprint)

    def _wish_of(self, form: Form, translated: Translated, caller: Caller) -> tuple[Wish, Sources]:
        body = dict(translated.body)
        images = [*(_id_of(image, caller.account_id) for image in form.images), *form.sources]
        if images or body["operation"] == "edit":
            body["images"] = images
        mask = _id_of(form.mask, caller.account_id) if form.mask is not None else form.mask_source
        if mask is not None:
            body["mask"] = mask
        return make_wish(
            body,
            self._parts.catalog,
            account_id=caller.account_id,
            key=caller.key,
            fingerprint=form.fingerprint,
            raw=form.raw,
            origins=self._origins,
        )

    async def _accept(self, form: Form, wish: Wish, sources: Sources, caller: Caller) -> Accepted:
        if not sources.images:
            return await self._parts.accept.accept(wish)
        accepted = await self._find(form, caller)
        if accepted is not None:
            return accepted
        await self._keep(form, caller.account_id)
        providers = [route.provider for route in wish.model.routes]
        taken = await self._parts.inputs.take(caller.account_id, sources, providers=providers)
        return await self._parts.accept.accept(replace(wish, images=taken.images, mask=taken.mask))

    async def _keep(self, form: Form, account_id: UUID) -> None:
        """Keep the files of a form as uploads, one after another."""
        named = {form.picture.format(place): data for place, data in enumerate(form.images)}
        if form.mask is not None:
            named["mask"] = form.mask
        for field, data in named.items():
            try:
                await self._parts.uploads.keep(account_id, data, keep_s=KEEP_INPUT_S)
            except AssetError as error:
                fault = refusal_of(error)
                if fault is None:
                    detail = "Pictures cannot be stored right now."
                    raise RequestError(503, "unavailable", detail, retry_after_s=5) from error
                raise FieldsRefused([{"field": field, "message": fault}]) from None


def _id_of(data: bytes, account_id: UUID) -> str:
    """The id that a picture has as an upload of this account: known before it is kept."""
    return str(content_id(account_id, hashlib.sha256(data).digest()))


def _in_their_words(error: RequestError, form: Form) -> RequestError:
    if isinstance(error, FieldsRefused | InputsRefused):
        return in_their_words(error, form.fields, form.picture)
    return error
