"""Genuine callbacks that safelight has not heard of yet: sent by the lab, caught on their way."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from safelight.cli.conformance.mailbox import Mailbox, Received, open_mailbox
from safelight.cli.conformance.workbench import lab_address
from safelight.db import accounts, ledger
from safelight.domain.catalog import Model
from safelight.domain.task import State
from safelight.lab.dialects import load_dialect
from safelight.lab.signatures import HmacSigned, Parcel, Scheme
from safelight.providers import packaged_declaration
from safelight.providers.checks import credential_names
from safelight.providers.signatures import Ed25519Jwks, proves_body
from safelight.settings import ProviderSettings, Settings
from safelight.upstreams import Upstreams, read_upstreams
from tests.world import Server, World, running_world

LAB = "lab-callback"
PROVIDERS = ("relay", "replicate", "kling", "fal", "kie", "leonardo", "luma")
"""HMAC with a prefix, two of Standard Webhooks, Ed25519, a signed id and time, a static token, nothing at all."""
DRAWN_WITHIN_S = 60.0

Header = tuple[bytes, bytes]


@dataclass(frozen=True, slots=True)
class Captured:
    """A genuine callback about a running task; `token` is None where the account has one address for all."""

    provider: str
    task_id: UUID
    account_id: UUID
    provider_ref: str
    token: str | None
    headers: tuple[Header, ...]
    raw: bytes
    scheme: Scheme
    covers_body: bool

    @property
    def signature(self) -> bytes:
        """The name of the header that carries the proof, in lower case; empty if there is none."""
        return self.scheme.signature.lower().encode()

    @property
    def signed_headers(self) -> list[bytes]:
        """The names of the headers that the proof covers or needs, the signature itself left out."""
        names = {name.lower().encode() for name in self.sealed(0, self.raw)} - {self.signature}
        return sorted(name for name in names if not name.endswith(b"key-id"))

    @property
    def has_time(self) -> bool:
        """Whether the proof says when."""
        return self.sealed(0, self.raw) != self.sealed(1, self.raw)

    def sealed(self, at: int, raw: bytes, *, is_forged: bool = False) -> dict[str, str]:
        """The headers that prove `raw` at a time, by the upstream's own key or by nobody's."""
        parcel = Parcel("msg_proof", at, raw, self.provider_ref)
        return self.scheme.forged(parcel) if is_forged else self.scheme.headers(parcel)

    def with_seal(self, seal: dict[str, str]) -> list[Header]:
        """The headers with another proof in them."""
        sealed = {name.lower().encode(): value.encode("latin-1") for name, value in seal.items()}
        return [(name, sealed.pop(name, value)) for name, value in self.headers] + list(sealed.items())


@dataclass(frozen=True, slots=True)
class Scenery:
    """A world with running tasks of two accounts, and a genuine callback for each."""

    world: World
    captured: tuple[Captured, ...]


@asynccontextmanager
async def scenery(server: Server) -> AsyncIterator[Scenery]:
    """Tasks at every provider that have been drawn, while safelight knows only that they run."""
    async with (
        open_mailbox() as mailbox,
        running_world(
            server,
            knobs={"small_pictures": True},
            public_url=mailbox.url,
            upstreams=_with_providers,
        ) as world,
    ):
        async with world.session.post(
            f"{world.lab_url}/lab/knobs",
            json={"callback_urls": {name: f"{mailbox.url}/callbacks/{name}" for name in PROVIDERS}},
        ) as answer:
            assert answer.status == 200, await answer.text()
        async with world.database.transaction() as connection:
            other = await accounts.create_account(connection, "other")
            await ledger.grant(connection, other, 1_000)
        wanted = [(name, owner) for name in (LAB, *PROVIDERS) for owner in (world.account_id, other)]
        yield Scenery(world, tuple([await _capture(world, mailbox, *one) for one in wanted]))


async def _capture(world: World, mailbox: Mailbox, name: str, account_id: UUID) -> Captured:
    model = next(one for one in world.graph.context.catalog.models.values() if one.provider == name)
    task_id = await world.submit(model.name, account_id=account_id, **_shape(model))
    token = world.graph.context.tokens.issue(task_id, 1)
    before = len(mailbox.received)
    await world.dispatch(name)
    assert await world.state(task_id) is State.RUNNING, name
    provider_ref = (await world.attempt(task_id)).provider_ref
    assert provider_ref is not None
    declaration = packaged_declaration(name)
    assert declaration.callback is not None
    last = await _last(mailbox, before, lambda one: provider_ref.encode() in one.raw)
    path = urlsplit(last.path).path
    return Captured(
        provider=name,
        task_id=task_id,
        account_id=account_id,
        provider_ref=provider_ref,
        token=token if path.endswith(token) else None,
        headers=tuple((key.lower(), value) for key, value in last.headers),
        raw=last.raw,
        scheme=_scheme(name),
        covers_body=proves_body(declaration.callback.signature),
    )


async def _last(mailbox: Mailbox, before: int, is_meant: Callable[[Received], bool]) -> Received:
    """The last callback that the lab sends about a job that is drawn at once."""
    found: list[Received] = []
    async with asyncio.timeout(DRAWN_WITHIN_S):
        while not found:
            await asyncio.sleep(0.3)
            found = [one for one in mailbox.received[before:] if is_meant(one)]
        while True:
            await asyncio.sleep(0.3)
            more = [one for one in mailbox.received[before:] if is_meant(one)]
            if len(more) == len(found):
                return found[-1]
            found = more


def _scheme(name: str) -> Scheme:
    if name == LAB:
        return HmacSigned("X-Signature", keys=("lab-secret", "next lab-secret"))
    return load_dialect(name).signing


def _shape(model: Model) -> dict[str, str | None]:
    size = next((size for size in model.sizes if size), None)
    ratio = next((ratio for ratio in model.aspect_ratios if ratio), None)
    return {"size": size, "aspect_ratio": None if size else ratio}


def _with_providers(settings: Settings) -> Upstreams:
    tables = {name: _table(name, str(settings.lab_url)) for name in PROVIDERS}
    return read_upstreams(settings.model_copy(update={"providers": tables}))


def _table(name: str, lab_url: str) -> ProviderSettings:
    declaration = packaged_declaration(name)
    known = set(credential_names(declaration))
    given = {word: value for word, value in load_dialect(name).credentials.items() if word in known}
    signature = declaration.callback.signature if declaration.callback else None
    if isinstance(signature, Ed25519Jwks):
        given["jwks_url"] = f"{lab_url}/{name}{urlsplit(signature.jwks_url).path}"
    return ProviderSettings.model_validate({**given, "base_url": lab_address(declaration, lab_url, name)})
