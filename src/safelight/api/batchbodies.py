"""The body of a batch: JSON lines, read as they come, each judged as a submit would be."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from uuid import UUID

from starlette.datastructures import QueryParams
from starlette.requests import Request

from safelight.api import bodies
from safelight.api.headers import Headers
from safelight.api.problems import BodyTooLarge, FieldError, FieldsRefused
from safelight.api.wishes import make_wish
from safelight.db.batches import Refusal
from safelight.domain.catalog import Catalog
from safelight.domain.credits import quote
from safelight.errors import RequestError
from safelight.lifecycle.accept import Wish
from safelight.lifecycle.batches import MAX_ITEMS
from safelight.lifecycle.inputs import UPLOAD_ID, Sources

READ_S = 300.0
AT_ONCE = 5
MAX_AT_ONCE = 1_000
MAX_NAME = 200
BREATHER = 100
"""After so many lines others have their turn."""
NO_UPLOAD = "an item of a batch names its inputs by upload ids: POST /v1/uploads"
_TYPE = re.compile(
    rb"application/(?:x-ndjson|jsonl|x-jsonlines|json-lines)(?:\s*;\s*charset\s*=\s*\"?utf-8\"?)?\s*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the query says: how many are at work at once, and whether it is all or nothing."""

    at_once: int
    is_all: bool
    name: str


@dataclass(slots=True)
class Lines:
    """The items as they came, what is wrong with which of them, and what the others cost."""

    raw: list[bytes] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    faults: list[FieldError] = field(default_factory=list)
    price: int = 0
    digest: bytes = b""


def check_type(headers: Headers) -> None:
    """Refuse what is not declared as JSON lines.

    Raises:
        RequestError: 415.
    """
    if not _TYPE.fullmatch(headers.get(b"content-type", b"")):
        detail = "Send the items as application/x-ndjson: one JSON object a line, in UTF-8."
        raise RequestError(415, "unsupported-media-type", detail)
    if headers.get(b"content-encoding", b"identity") != b"identity":
        raise RequestError(415, "unsupported-media-type", "Send the body without Content-Encoding.")


def read_query(query: QueryParams) -> Wanted:
    """How the batch is wanted.

    Raises:
        RequestError: 422.
    """
    at_once, accept, name = (
        query.get("at_once", str(AT_ONCE)),
        query.get("accept", "all"),
        query.get("name", ""),
    )
    faults: list[FieldError] = []
    if not re.fullmatch(r"[0-9]{1,4}", at_once, re.ASCII) or not 1 <= int(at_once) <= MAX_AT_ONCE:
        faults.append({"field": "at_once", "message": f"must be an integer from 1 to {MAX_AT_ONCE}"})
    if accept not in ("all", "partly"):
        faults.append({"field": "accept", "message": "must be one of: all, partly"})
    if len(name) > MAX_NAME or not name.isprintable():
        faults.append({"field": "name", "message": f"may have {MAX_NAME} printable characters"})
    if faults:
        raise FieldsRefused(faults)
    return Wanted(int(at_once), accept == "all", name)


async def read_lines(
    request: Request, wanted: Wanted, catalog: Catalog, *, line_bytes: int, all_bytes: int
) -> Lines:
    """The items, judged as they come; no more than `all_bytes` of them are held.

    Raises:
        RequestError: 408, 413, 400 if there is none, too many, or the caller goes away.
    """
    lines = Lines()
    told = hashlib.sha256(repr((wanted.at_once, wanted.is_all, wanted.name)).encode())
    try:
        async with asyncio.timeout(READ_S):
            async for raw in _split(request, line_bytes, all_bytes):
                if len(lines.raw) == MAX_ITEMS:
                    raise RequestError(400, "bad-request", f"A batch has {MAX_ITEMS} items at most.")
                told.update(_judge(raw, lines, catalog))
                lines.raw.append(raw)
                if len(lines.raw) % BREATHER == 0:
                    await asyncio.sleep(0)
    except TimeoutError:
        raise RequestError(408, "request-timeout", "The body did not arrive in time.") from None
    if not lines.raw:
        raise RequestError(400, "bad-request", "A batch has one item at least.")
    lines.digest = told.digest()
    return lines


def wish_of(raw: bytes, catalog: Catalog, account_id: UUID) -> tuple[Wish, Sources]:
    """The wish of one line.

    Raises:
        RequestError: as for a submit.
    """
    body = bodies.parse_object(raw)
    wish, sources = make_wish(
        body, catalog, account_id=account_id, key="", fingerprint=bodies.fingerprint(body), raw=raw
    )
    if not all(map(UPLOAD_ID.fullmatch, sources.by_field().values())):
        raise FieldsRefused([{"field": "images", "message": NO_UPLOAD}])
    return wish, sources


def _judge(raw: bytes, lines: Lines, catalog: Catalog) -> bytes:
    """Note the price of a line, or what is wrong with it; what tells it from another."""
    try:
        wish, _ = wish_of(raw, catalog, UUID(int=0))
    except RequestError as error:
        position = len(lines.raw)
        lines.refusals.append(Refusal(position, error.problem_code, error.detail))
        errors = error.errors if isinstance(error, FieldsRefused) else []
        if errors:
            lines.faults.extend(
                {"field": f"items[{position}].{each['field']}", "message": each["message"]} for each in errors
            )
        else:
            lines.faults.append({"field": f"items[{position}]", "message": error.detail})
        return hashlib.sha256(raw).digest()
    lines.price += quote(wish.model.price, wish.n)
    return wish.fingerprint


async def _split(request: Request, line_bytes: int, all_bytes: int) -> AsyncIterator[bytes]:
    """The lines of a body, without empty ones."""
    rest = bytearray()
    total = 0
    has_more = True
    while has_more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise RequestError(400, "incomplete-body", "The body broke off.")
        has_more = message.get("more_body", False)
        piece = message.get("body", b"")
        total += len(piece)
        if total > all_bytes:
            raise BodyTooLarge(all_bytes, must_close=True, advice="Make several batches of it.")
        *whole, tail = piece.split(b"\n")
        for part in whole:
            line = bytes(rest + part).strip()
            rest.clear()
            if len(line) > line_bytes:
                raise BodyTooLarge(line_bytes, must_close=True, advice="That is for one item.")
            if line:
                yield line
        rest += tail
        if len(rest) > line_bytes:
            raise BodyTooLarge(line_bytes, must_close=True, advice="That is for one item.")
    if line := bytes(rest).strip():
        yield line
