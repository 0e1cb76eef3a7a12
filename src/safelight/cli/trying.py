"""One task with a provider, past the service: submit, poll, fetch, save."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from uuid import uuid4

import aiohttp
from pydantic import SecretStr

from safelight.assets.fetch import Fetcher
from safelight.cli.conformance.run import read_dialect
from safelight.cli.conformance.workbench import lab_address
from safelight.cli.output import clean, print_line, size_words
from safelight.domain.provider import AttemptRef, Output, ProviderUpdate, Submission, UpdateStatus
from safelight.errors import ConfigurationError, ProviderError, RequestError
from safelight.lab.child import start_lab
from safelight.providers import DeclaredProvider, build_provider
from safelight.providers.declaration import Declaration, DeclaredModel

if TYPE_CHECKING:
    from safelight.upstreams import ProviderKey

GIVE_UP_S = 900.0
FIRST_GAP_S, LAST_GAP_S = 0.5, 10.0
OPEN = frozenset({UpdateStatus.QUEUED, UpdateStatus.RUNNING})


@dataclass(frozen=True, slots=True)
class Trial:
    """What to make; `lab` names the lab's upstream to ask instead of the real one.

    `file` is where the declaration lies if it is none that comes with safelight.
    """

    prompt: str
    model: str | None
    output: Path
    lab: str | None
    file: Path | None = None


def check_enabled(declaration: Declaration, file: Path | None) -> None:
    """Whether there is a key to try, before anybody is asked anything.

    Raises:
        ConfigurationError: there is none.
    """
    _key(declaration, file)


async def make_picture(declaration: Declaration, trial: Trial) -> None:
    """Make it, and say every step.

    Raises:
        RequestError: the provider refuses, does not answer, or makes no picture.
    """
    model = _model(declaration, trial.model)
    async with _provider(declaration, trial) as (provider, origins):
        submission = _submission(model, trial.prompt)
        print_line(f"submit: {provider.name}, {model.name}, reference {submission.reference}")
        try:
            update = await provider.submit(submission)
        except ProviderError as error:
            raise RequestError(502, "no-picture", clean(f"{error} {error.excerpt}".strip())) from None
        final = await _followed(provider, submission, update)
        if final.status is not UpdateStatus.SUCCEEDED or not final.outputs:
            why = f"{final.failure.failure_class} ({final.failure.code})" if final.failure else "no picture"
            raise RequestError(502, "no-picture", f"it ended {final.status}: {why} {final.excerpt}".strip())
        raw = await _bytes_of(final.outputs[0], origins)
        _save(raw, trial.output)


async def _followed(
    provider: DeclaredProvider, submission: Submission, update: ProviderUpdate
) -> ProviderUpdate:
    attempt = AttemptRef(
        submission.reference,
        update.provider_ref,
        submission.upstream_model,
        submission.operation,
        links=update.links,
    )
    gap_s, word = max(FIRST_GAP_S, provider.capabilities.min_poll_gap_s), None
    give_up_at = time.monotonic() + GIVE_UP_S
    while update.status in OPEN:
        if update.upstream_status != word:
            word = update.upstream_status
            print_line(clean(f"  {update.status}: {word or 'accepted'}, id {attempt.provider_ref}"))
        if time.monotonic() > give_up_at:
            raise RequestError(
                504, "no-end", f"it is still {update.status} after {GIVE_UP_S / 60:.0f} minutes"
            )
        await asyncio.sleep(gap_s)
        gap_s = min(gap_s * 1.5, max(LAST_GAP_S, provider.capabilities.min_poll_gap_s))
        try:
            update = await provider.poll(attempt)
        except ProviderError as error:  # a look that fails says nothing about the task
            print_line(clean(f"  a look says nothing: {error} {error.excerpt}"))
    return update


def _save(raw: bytes, output: Path) -> None:
    try:
        output.write_bytes(raw)
    except OSError as error:
        raise ConfigurationError(f"{output} cannot be written: {error.strerror}") from None
    print_line(f"saved: {output} ({size_words(len(raw))})")


@contextlib.asynccontextmanager
async def _provider(
    declaration: Declaration, trial: Trial
) -> AsyncIterator[tuple[DeclaredProvider, tuple[str, ...]]]:
    """The provider, and the origins that its results may come from although they are private."""
    jar = aiohttp.DummyCookieJar()
    async with contextlib.AsyncExitStack() as stack:
        session = await stack.enter_async_context(aiohttp.ClientSession(trust_env=False, cookie_jar=jar))
        if trial.lab is None:
            yield _configured(declaration, trial.file, session)
            return
        folder = stack.enter_context(TemporaryDirectory(prefix="safelight-lab-"))
        child = await start_lab(host="127.0.0.1", port=0, data_dir=Path(folder), knobs="{}")
        stack.push_async_callback(child.stop)
        credentials = (await read_dialect(session, child.url, trial.lab))["credentials"]
        provider = build_provider(
            declaration,
            credentials={name: SecretStr(value) for name, value in credentials.items()},
            session=session,
            base_url=lab_address(declaration, child.url, trial.lab),
        )
        yield provider, (child.url,)


def _configured(
    declaration: Declaration, file: Path | None, session: aiohttp.ClientSession
) -> tuple[DeclaredProvider, tuple[str, ...]]:
    """The provider as this installation has it, or would have it with a table for the file."""
    from safelight.upstreams import inner_origins

    key = _key(declaration, file)
    provider = build_provider(
        declaration,
        credentials=key.credentials,
        session=session,
        base_url=key.base_url,
        region=key.region,
        jwks_url=key.jwks_url,
    )
    return provider, tuple(inner_origins((key,)))


def _key(declaration: Declaration, file: Path | None) -> ProviderKey:
    from safelight.settings import ProviderSettings, load_settings
    from safelight.upstreams import read_keys

    settings, name = load_settings(), declaration.name
    if file is not None:
        table = settings.providers.get(name, ProviderSettings()).model_copy(update={"file": file})
        settings = settings.model_copy(update={"providers": {**settings.providers, name: table}})
    key = next((key for key in read_keys(settings) if key.declaration.name == name), None)
    if key is None:
        raise ConfigurationError(
            f"{name} is not enabled here: `safelight providers show {name}` says how; --lab asks the lab instead"
        )
    return key


def _model(declaration: Declaration, name: str | None) -> DeclaredModel:
    for model in declaration.models:
        if name in (None, model.name) and (name is not None or "generate" in model.operations):
            return model
    raise ConfigurationError(
        f"{declaration.name} has no model {name or 'that generates'}; "
        f"there are {', '.join(model.name for model in declaration.models)}"
    )


def _submission(model: DeclaredModel, prompt: str) -> Submission:
    size = next((size for size in model.sizes if size), None)
    ratio = next((ratio for ratio in model.aspect_ratios if ratio), None)
    return Submission(
        reference=f"{uuid4().hex}-1",
        upstream_model=model.upstream_model or model.name,
        operation="generate",
        prompt=prompt,
        n=1,
        size=size,
        aspect_ratio=None if size else ratio,
        images=(),
        options={},
        callback_url=None,
    )


async def _bytes_of(output: Output, origins: tuple[str, ...]) -> bytes:
    if output.data is not None:
        return output.data
    async with Fetcher(origins) as fetcher:
        return await fetcher.fetch(str(output.url))
