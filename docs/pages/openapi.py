"""The OpenAPI document as a file: what the types of the web pages are made from."""

from __future__ import annotations

import asyncio
import json

import aiohttp

from safelight.api.app import create_app
from safelight.db.database import Database
from safelight.service import Graph
from safelight.settings import Settings


def page() -> str:
    """The document of every route; nothing is opened and nobody is asked."""
    return json.dumps(asyncio.run(_document()), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


async def _document() -> dict[str, object]:
    async with aiohttp.ClientSession() as session:
        graph = Graph(
            Settings(lab_url="http://127.0.0.1:1"),
            Database("postgresql://localhost/none"),
            bytes(32),
            session,
        )
        try:
            # The version is that of the document's reader, and would make the file stale at every release.
            return {
                **create_app(graph.api_parts("")).openapi(),
                "info": {"title": "safelight", "version": "1"},
            }
        finally:
            await graph.aclose()
