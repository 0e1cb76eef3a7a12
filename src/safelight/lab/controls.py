"""The lab's own routes: health, knobs, dialects, and the ledger as an independent witness."""

import json
from collections.abc import Mapping

from aiohttp import web

from safelight.lab.answers import answer
from safelight.lab.books import Books
from safelight.lab.moods import Moods
from safelight.lab.refusal import invalid, not_found
from safelight.lab.speech.dialect import Dialect


class Controls:
    """/lab/*, without a key: the lab listens on loopback."""

    def __init__(self, *, moods: Moods, books: Books, dialects: Mapping[str, Dialect]) -> None:
        self._moods = moods
        self._books = books
        self._dialects = dialects

    async def health(self, request: web.Request) -> web.StreamResponse:
        """GET /lab/healthz"""
        return answer({"status": "ok"})

    async def read_knobs(self, request: web.Request) -> web.StreamResponse:
        """GET /lab/knobs, or /lab/knobs/{name} for those of one upstream"""
        return answer(self._moods.of(self._name(request)).model_dump())

    async def turn_knobs(self, request: web.Request) -> web.StreamResponse:
        """POST /lab/knobs, or /lab/knobs/{name}: merges what is given."""
        name = self._name(request)
        try:
            changes = json.loads(await request.read() or b"{}")
            return answer(self._moods.turn(changes, name=name).model_dump())
        except (ValueError, RecursionError) as error:
            raise invalid(str(error)) from None

    async def list_dialects(self, request: web.Request) -> web.StreamResponse:
        """GET /lab/dialects: all, as they describe themselves."""
        return answer({"dialects": [dialect.describe() for dialect in self._dialects.values()]})

    async def read_dialect(self, request: web.Request) -> web.StreamResponse:
        """GET /lab/dialects/{name}"""
        return answer(self._dialects[self._name(request)].describe())

    async def elsewhere(self, request: web.Request) -> web.StreamResponse:
        """Where a redirect leads: nobody should come, and who comes is counted."""
        self._books.strays += 1
        return web.Response(text="<h1>elsewhere</h1>", content_type="text/html")

    def _name(self, request: web.Request) -> str:
        name = request.match_info.get("name", "")
        if name and name not in self._dialects:
            raise not_found(f"there is no dialect {name}")
        return name

    async def read_ledger(self, request: web.Request) -> web.StreamResponse:
        """GET /lab/ledger: what was accepted and billed, one item a reference, or the ?last= so many."""
        books = self._books
        last = request.query.get("last")
        if last is not None and not last.isdecimal():
            raise invalid("last must be a number")
        totals = {
            "accepted": books.accepted,
            "billed": books.billed,
            "polls": books.polls,
            "strays": books.strays,
        }
        return answer(totals | {"items": books.items(None if last is None else int(last))})
