"""The lab's own routes: health, knobs, and the ledger as an independent witness."""

import json

from aiohttp import web

from safelight.lab.answers import answer
from safelight.lab.books import Books
from safelight.lab.refusal import invalid
from safelight.lab.studio import Studio


class Controls:
    """/lab/*, without a key: the lab listens on loopback."""

    def __init__(self, *, studio: Studio, books: Books) -> None:
        self._studio = studio
        self._books = books

    async def health(self, request: web.Request) -> web.StreamResponse:
        """GET /lab/healthz"""
        return answer({"status": "ok"})

    async def read_knobs(self, request: web.Request) -> web.StreamResponse:
        """GET /lab/knobs"""
        return answer(self._studio.knobs.model_dump())

    async def turn_knobs(self, request: web.Request) -> web.StreamResponse:
        """POST /lab/knobs: merges what is given."""
        try:
            changes = json.loads(await request.read() or b"{}")
            return answer(self._studio.turn_knobs(changes).model_dump())
        except (ValueError, RecursionError) as error:
            raise invalid(str(error)) from None

    async def read_ledger(self, request: web.Request) -> web.StreamResponse:
        """GET /lab/ledger: what was accepted and billed, one item a reference."""
        books = self._books
        totals = {"accepted": books.accepted, "billed": books.billed, "polls": books.polls}
        return answer(totals | {"items": books.items()})
