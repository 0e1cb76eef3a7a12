"""Wiring of the door's tests: one database for all of them, an account of its own for each."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast

import pytest

from safelight.api.parts import ApiParts
from safelight.assets.fetch import Fetcher
from safelight.assets.inputlinks import InputLinks
from safelight.assets.local import LocalStore
from safelight.assets.pictures import PicturePool
from safelight.assets.signing import UrlSigner
from safelight.assets.urls import parse_target
from safelight.db.database import Database
from safelight.domain.catalog import Catalog, Model
from safelight.domain.sealing import Sealer
from safelight.lifecycle.accept import Accept, Cancel
from safelight.lifecycle.administration import Administration
from safelight.lifecycle.attach import Attach
from safelight.lifecycle.batches import Batches
from safelight.lifecycle.endpoints import Endpoints
from safelight.lifecycle.inputs import Inputs
from safelight.lifecycle.pace import Paces
from safelight.lifecycle.receive import Receive
from safelight.lifecycle.retention import Erase
from safelight.lifecycle.review import Review
from safelight.lifecycle.routing import Routing
from safelight.lifecycle.sessions import Sessions
from safelight.lifecycle.uploads import Uploads
from safelight.settings import Settings
from tests.api.door import ADMIN_PEPPER, PEPPER, Door, FakeReceive, running_door
from tests.api.shop import Shop, running_shop
from tests.assets.conftest import canary, connects, stranger  # noqa: F401 - fixtures of these tests too
from tests.world import Server, World, running_world

CATALOG = Catalog(
    [
        Model(
            name="sketch",
            provider="studio",
            upstream_model="sketch-1",
            operations=("generate", "edit"),
            price=2,
            sizes=("64x64", "1024x1024"),
            aspect_ratios=("1:1", "16:9"),
            max_prompt_chars=100,
            max_images=2,
            takes_mask=True,
            is_default=True,
        ),
        Model(
            name="poster",
            provider="studio",
            upstream_model="poster-1",
            operations=("generate",),
            price=5,
            max_n=2,
            sizes=("",),
            options=("seed",),
        ),
        Model(
            name="retouch",
            provider="studio",
            upstream_model="retouch-1",
            operations=("edit",),
            price=1,
            max_images=1,
            options=(),
        ),
    ]
)


@pytest.fixture(scope="session")
def door_url(server: Server) -> str:
    """The database that the door's tests share."""
    return asyncio.run(server.clone())


@pytest.fixture
def receive() -> FakeReceive:
    """What stands behind the callback door."""
    return FakeReceive()


@pytest.fixture
async def parts(door_url: str, data_dir: Path, receive: FakeReceive) -> AsyncIterator[ApiParts]:
    """The door's parts on the shared database."""
    settings = Settings(data_dir=data_dir)
    database = Database(door_url, pool_size=5)
    await database.open()
    pictures, store, fetcher = PicturePool(), LocalStore(data_dir / "assets"), Fetcher()
    uploads = Uploads(database, store, pictures, settings)

    endpoints = Endpoints(
        database,
        Sealer(b"a sealing key of thirty-two bytes"[:32]),
        allowed_origins=["http://127.0.0.1:9"],
        own_origins=frozenset({parse_target("https://safelight.example").origin}),
    )

    async def is_ready() -> bool:
        return True

    yield ApiParts(
        settings=settings,
        database=database,
        catalog=CATALOG,
        accept=Accept(database, settings),
        batches=Batches(database, settings),
        cancel=Cancel(database),
        erase=Erase(database, store),
        receive=cast("Receive", receive),
        uploads=uploads,
        inputs=Inputs(uploads, fetcher, settings, {}),
        store=store,
        pictures=pictures,
        signer=UrlSigner(b"a signing key of thirty-two bytes", key_id="1"),
        links=InputLinks(b"another signing key of 32+ bytes"),
        review=Review(
            database,
            Attach(store, pictures, fetcher, max_bytes=settings.max_asset_bytes),
            Routing(CATALOG, {}),
            start_by_s=settings.start_by_s,
        ),
        administration=Administration(database, PEPPER, ADMIN_PEPPER),
        paces=Paces(CATALOG, {}, Routing(CATALOG, {}), has_public_url=False),
        routing=Routing(CATALOG, {}),
        endpoints=endpoints,
        sessions=Sessions(database, PEPPER),
        providers=("studio",),
        pepper=PEPPER,
        is_ready=is_ready,
    )
    await endpoints.aclose()
    await fetcher.aclose()
    await pictures.aclose()
    await store.aclose()
    await database.close()


@pytest.fixture
async def door(parts: ApiParts) -> AsyncIterator[Door]:
    """A running door."""
    async with running_door(parts) as opened:
        yield opened


@pytest.fixture
async def world(server: Server) -> AsyncIterator[World]:
    """A lab and every verb, for tests that need a picture."""
    async with running_world(server) as made:
        yield made


@pytest.fixture
async def gallery(world: World) -> AsyncIterator[Door]:
    """A door to that world."""
    parts = dataclasses.replace(world.graph.api_parts(""), pepper=PEPPER)
    async with running_door(parts) as opened:
        yield opened


@pytest.fixture
async def shop(server: Server) -> AsyncIterator[Shop]:
    """Door, worker and lab over real HTTP."""
    async with running_shop(server) as opened:
        yield opened
