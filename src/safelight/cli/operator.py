"""What commands of the operator work with: the database itself, and who sits before it."""

from __future__ import annotations

import contextlib
import os
import pwd
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from safelight.domain.audit import Actor
from safelight.errors import ConfigurationError

if TYPE_CHECKING:
    from safelight.db.database import Database
    from safelight.lifecycle.administration import Administration
    from safelight.lifecycle.review import Review
    from safelight.settings import Settings


def this_user() -> Actor:
    """The OS user who runs the command, as the audit log names it."""
    try:
        name = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        name = str(os.getuid())
    return Actor(f"os:{name}")


@dataclass(frozen=True, slots=True)
class Operating:
    """The open database with the operator's verbs, and who uses them."""

    database: Database
    administration: Administration
    by: Actor


@contextlib.asynccontextmanager
async def operating(settings: Settings, *, makes_keys: bool = False) -> AsyncIterator[Operating]:
    """The operator's verbs; those that make keys need the installation's secret key."""
    from safelight.db.installation import admin_pepper_of, check_secret, pepper_of
    from safelight.db.opening import open_database
    from safelight.lifecycle.administration import Administration
    from safelight.settings import load_secret

    async with open_database(settings, must_exist=True) as database:
        pepper = admin_pepper = b""
        if makes_keys:
            secret = load_secret(settings)
            await check_secret(database, secret)
            pepper, admin_pepper = pepper_of(secret), admin_pepper_of(secret)
        yield Operating(database, Administration(database, pepper, admin_pepper), this_user())


@contextlib.asynccontextmanager
async def reviewing(settings: Settings) -> AsyncIterator[tuple[Database, Review]]:
    """Decisions on tasks in review, with our store and the way to results."""
    from safelight.assets.fetch import Fetcher
    from safelight.assets.opening import open_store_of
    from safelight.assets.pictures import PictureLimits, PicturePool
    from safelight.assets.reading import FetchLimits
    from safelight.db.opening import open_database
    from safelight.lifecycle.attach import Attach
    from safelight.lifecycle.review import Review
    from safelight.lifecycle.routing import Routing
    from safelight.upstreams import read_upstreams

    upstreams = read_upstreams(with_lab(settings))
    limit = settings.max_asset_bytes
    async with contextlib.AsyncExitStack() as stack:
        database = await stack.enter_async_context(open_database(settings, must_exist=True))
        fetcher = await stack.enter_async_context(
            Fetcher((*settings.allowed_origins, *upstreams.origins), limits=FetchLimits(max_bytes=limit))
        )
        store, pictures = open_store_of(settings), PicturePool(limits=PictureLimits(max_bytes=limit))
        stack.push_async_callback(store.aclose)
        stack.push_async_callback(pictures.aclose)
        attach = Attach(store, pictures, fetcher, max_bytes=limit)
        routing = Routing(upstreams.catalog, upstreams.names)
        yield database, Review(database, attach, routing, start_by_s=settings.start_by_s)


def with_lab(settings: Settings) -> Settings:
    """Without any provider `serve` starts the lab: where it answers, it is asked and results may come from.

    Raises:
        ConfigurationError: no `serve` runs that would say where, and it may be at any port.
    """
    from safelight.upstreams import read_keys

    if settings.lab_url is not None or (read_keys(settings) and not settings.with_lab):
        return settings
    try:
        url = (settings.data_dir / "lab-url").read_text(encoding="utf-8").strip()
    except OSError:
        if settings.lab_port == 0:
            raise ConfigurationError("the lab has no fixed port: name it by SAFELIGHT_LAB_URL") from None
        url = f"http://127.0.0.1:{settings.lab_port}"
    return settings.model_copy(update={"lab_url": url})
