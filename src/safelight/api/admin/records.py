"""What is on record: findings, callbacks with their verdicts, how providers stand, and the audit log."""

from __future__ import annotations

from dataclasses import asdict
from datetime import date

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import Response

from safelight.api import pages
from safelight.api.admin.exchange import KEY_HEADER, admin_described, changed, page_of, read_change, shown
from safelight.api.admin.keeper import Keeper
from safelight.api.admin.shapes import AdminPage, FindingResolved, ResolveBody
from safelight.api.admin.tasks import PROVIDER, read_word
from safelight.api.described import CURSOR, LIMIT, json_body, parameter
from safelight.api.headers import headers_of
from safelight.api.parts import ApiParts
from safelight.api.problems import FieldsRefused, not_found
from safelight.db import adminviews, reconciliation, views
from safelight.domain.news import Verdict


class Records:
    """The routes below `/admin` for findings, notices, providers, reconciliations and the audit log."""

    def __init__(self, parts: ApiParts, keeper: Keeper) -> None:
        self._parts = parts
        self._keeper = keeper

    def add_to(self, app: FastAPI) -> None:
        """Add the routes."""
        router = app.router
        router.add_api_route("/admin/findings", self.findings, methods=["GET"], **_FINDINGS)
        router.add_api_route("/admin/findings/{id}/resolve", self.resolve, methods=["POST"], **_RESOLVE)
        router.add_api_route("/admin/notices", self.notices, methods=["GET"], **_NOTICES)
        router.add_api_route("/admin/providers", self.providers, methods=["GET"], **_PROVIDERS)
        router.add_api_route("/admin/reconciliations", self.reconciliations, methods=["GET"], **_RUNS)
        router.add_api_route("/admin/audit", self.audit, methods=["GET"], **_AUDIT)

    async def findings(self, request: Request) -> Response:
        """Differences that were found, newest first; with `open=true` those that nobody has resolved."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        query = request.query_params
        limit, before = pages.read_limit(query), pages.read_cursor(query, pages.entry_position)
        is_open = query.get("open", "false")
        if is_open not in ("true", "false"):
            raise FieldsRefused([{"field": "open", "message": "must be true or false"}])
        async with self._parts.database.connection() as connection:
            found = await adminviews.findings(
                connection,
                before=before,
                limit=limit,
                kind=read_word(request, "kind"),
                provider=read_word(request, "provider"),
                is_open=is_open == "true",
            )
        return page_of(found, limit)

    async def resolve(self, request: Request) -> Response:
        """Note what came of a finding; the first word counts."""
        headers = headers_of(request.scope)
        by = await self._keeper.admit(request.scope, headers)
        text = request.path_params["id"]
        if not text.isascii() or not text.isdigit() or len(text) > 18:
            raise not_found()
        body, once = await read_change(request, headers, ResolveBody)
        return changed(await self._parts.administration.resolve_finding(int(text), body.note, by, once))

    async def notices(self, request: Request) -> Response:
        """Callbacks as they came, newest first, each with what became of it."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        query = request.query_params
        limit, before = pages.read_limit(query), pages.read_cursor(query, pages.entry_position)
        async with self._parts.database.connection() as connection:
            found = await adminviews.notices(
                connection,
                before=before,
                limit=limit,
                provider=read_word(request, "provider"),
                verdict=read_word(request, "verdict"),
            )
        return page_of(found, limit)

    async def providers(self, request: Request) -> Response:
        """How every provider key stands: its gate, what is upstream, what waits."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        async with self._parts.database.connection() as connection:
            found = await views.provider_health(connection, sorted(self._parts.providers))
        return shown({"data": [asdict(key) for key in found], "next_cursor": None})

    async def reconciliations(self, request: Request) -> Response:
        """Runs over providers' days with what they found, the latest first."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        limit, day = pages.read_limit(request.query_params), request.query_params.get("day")
        try:
            wanted = None if day is None else date.fromisoformat(day)
        except ValueError:
            raise FieldsRefused([{"field": "day", "message": "must be a day such as 2026-11-30"}]) from None
        async with self._parts.database.connection() as connection:
            found = await reconciliation.reports(
                connection, provider=read_word(request, "provider"), day=wanted, room=limit
            )
        # `asdict` would count the pairs of a Counter.
        data = [{**asdict(run), "counts": dict(run.counts)} for run in found]
        return shown({"data": data, "next_cursor": None})

    async def audit(self, request: Request) -> Response:
        """The audit log, newest line first; with `object=task:…` what was done to one thing."""
        await self._keeper.admit(request.scope, headers_of(request.scope))
        query = request.query_params
        limit, before = pages.read_limit(query), pages.read_cursor(query, pages.entry_position)
        async with self._parts.database.connection() as connection:
            found = await adminviews.audit_lines(
                connection, before=before, limit=limit, object_=read_word(request, "object")
            )
        return page_of(found, limit)


_WORD = {"type": "string", "maxLength": 200}
_FINDING_ID = parameter("id", "path", {"type": "string", "pattern": "^[0-9]{1,18}$"})
_FINDINGS = admin_described(
    "List findings",
    {200: AdminPage},
    refusals=(422,),
    parameters=(
        CURSOR,
        LIMIT,
        parameter("kind", "query", _WORD),
        PROVIDER,
        parameter("open", "query", {"type": "string", "enum": ["true", "false"]}),
    ),
)
_RESOLVE = admin_described(
    "Resolve a finding",
    {200: FindingResolved},
    refusals=(400, 404, 408, 409, 413, 415, 422),
    parameters=(_FINDING_ID, KEY_HEADER),
    body=json_body(ResolveBody),
)
_VERDICT = parameter("verdict", "query", _WORD, f"One of: {', '.join(Verdict)}.")
_NOTICES = admin_described(
    "List callbacks with their verdicts",
    {200: AdminPage},
    refusals=(422,),
    parameters=(CURSOR, LIMIT, PROVIDER, _VERDICT),
)
_PROVIDERS = admin_described("How the providers stand", {200: AdminPage})
_DAY = parameter("day", "query", {"type": "string", "format": "date"})
_RUNS = admin_described(
    "List reconciliation runs", {200: AdminPage}, refusals=(422,), parameters=(LIMIT, PROVIDER, _DAY)
)
_AUDIT = admin_described(
    "Read the audit log",
    {200: AdminPage},
    refusals=(422,),
    parameters=(CURSOR, LIMIT, parameter("object", "query", _WORD, "Such as task:0199….")),
)
