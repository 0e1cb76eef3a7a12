"""What the doctor looks at around the books: schema, secret key, clocks, and settings that cannot work."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING

from yarl import URL

from safelight.assets.addresses import classify
from safelight.db.installation import is_current, is_secret_of, read_clock
from safelight.db.migrate import revisions
from safelight.lifecycle.checks import AskedOf, Check
from safelight.lifecycle.doctor import Finding, Outcome
from safelight.settings import load_secret
from safelight.upstreams import LAB_SHAPES, read_keys, read_upstreams

if TYPE_CHECKING:
    from safelight.db.database import Database
    from safelight.settings import Settings

SKEW_S = 5.0
"""Our clock signs links and judges callbacks, the database's everything else: they may differ by so much."""
INSIDE = ("localhost", ".localhost", ".local", ".lan", ".internal", ".home.arpa")

SCHEMA = Check(
    "schema", "I3", "The schema is the one that this version needs.", AskedOf.ALL, "safelight migrate"
)
SECRET = Check(
    "secret",
    "I21",
    "The secret key is the one of this database.",
    AskedOf.ALL,
    "set SAFELIGHT_SECRET_KEY to it",
)
CLOCK = Check("clock", "I25", "Our clock and the database's agree.", AskedOf.ALL, "let both keep time by NTP")
SETTINGS = Check(
    "settings",
    "I19",
    "The settings can work.",
    AskedOf.ALL,
    "docs/operating/README.md says what each one means",
)


def providers_in_use(settings: Settings) -> list[str]:
    """Names of the provider keys that `serve` or `worker` would use with these settings."""
    if settings.lab_url is None and not read_keys(settings):
        return list(LAB_SHAPES)  # `serve` starts the lab
    names = [key.name for key in read_upstreams(settings).keys]
    return [*names, *LAB_SHAPES] if settings.with_lab else names


async def look_around(database: Database, settings: Settings) -> AsyncGenerator[Outcome, None]:
    """One outcome each; whoever asks stops if the schema is another one, because no question fits it."""
    for check, look in ((SCHEMA, _schema), (SECRET, _secret), (CLOCK, _clock)):
        began = time.monotonic()
        findings = await look(database, settings)
        yield Outcome(check, rows=1, seconds=time.monotonic() - began, findings=findings)
    yield Outcome(SETTINGS, rows=1, findings=list(_settings(settings)))


async def _schema(database: Database, _: Settings) -> list[Finding]:
    needed = revisions()[-1]
    if await is_current(database, needed):
        return []
    return [Finding(SCHEMA.name, "the database", f"is not at revision {needed}")]


async def _secret(database: Database, settings: Settings) -> list[Finding]:
    is_here = settings.secret_key is not None or (settings.data_dir / "secret").exists()
    if not is_here:  # and reading it would make one
        return [Finding(SECRET.name, "the secret key", "is not on this machine", is_information=True)]
    if await is_secret_of(database, load_secret(settings)):
        return []
    return [Finding(SECRET.name, "the secret key", "is not the one that this database was made with")]


async def _clock(database: Database, _: Settings) -> list[Finding]:
    before = time.time()
    clock = await read_clock(database)
    after = time.time()
    skew_s = clock.real.timestamp() - (before + after) / 2.0
    found: list[Finding] = []
    if abs(skew_s) > SKEW_S + (after - before):
        found.append(Finding(CLOCK.name, "our clock", f"is {-skew_s:+.0f} s from the database's"))
    if clock.shift:
        found.append(
            Finding(CLOCK.name, "the service's clock", f"is moved by {clock.shift}", is_information=True)
        )
    return found


def _settings(settings: Settings) -> Iterator[Finding]:
    has_strangers = bool(read_keys(settings))
    for told in (*_public_url(settings, has_strangers=has_strangers), *_proxies(settings)):
        yield Finding(SETTINGS.name, told.subject, told.detail, is_information=told.is_information)


@dataclass(frozen=True, slots=True)
class _Told:
    subject: str
    detail: str
    is_information: bool = False


def _public_url(settings: Settings, *, has_strangers: bool) -> Iterator[_Told]:
    if not has_strangers:
        return
    if settings.public_url is None:
        yield _Told(
            "public_url",
            "is not set: only `serve` knows an address to be called at; elsewhere polling carries everything",
            True,
        )
        return
    url = URL(settings.public_url)
    if _is_inside(url.host or ""):
        yield _Told("public_url", f"names {url.host}, which no provider can reach")
    elif url.scheme != "https":
        yield _Told("public_url", "is not https: the tokens of callbacks and links can be read on their way")


def _is_inside(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return "." not in host or host.endswith(INSIDE)
    return classify(host) is not None


def _proxies(settings: Settings) -> Iterator[_Told]:
    for proxy in settings.trusted_proxies:
        if proxy == "*":
            yield _Told("trusted_proxies", "believes everybody: any caller can choose its address")
            continue
        try:
            network = ip_network(proxy, strict=False)
        except ValueError:
            yield _Told("trusted_proxies", f"{proxy} is no address: nobody will be believed")
            continue
        if network.prefixlen == 0:
            yield _Told("trusted_proxies", f"{proxy} believes everybody: any caller can choose its address")
