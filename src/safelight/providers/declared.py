"""The declared provider: does what the declaration of an upstream says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol, TypeVar

import aiohttp

from safelight.domain.failure import FailureClass
from safelight.domain.provider import (
    AttemptRef,
    Capabilities,
    ProviderUpdate,
    RecordPage,
    Submission,
    Trust,
    UpdateStatus,
)
from safelight.errors import CallbackRejected, ConfigurationError, ProviderError, ProviderRefused
from safelight.providers.auth import choose
from safelight.providers.calls import CallComposer
from safelight.providers.checks import missing_credentials
from safelight.providers.declaration import Call, Declaration, Phase
from safelight.providers.documents import write_time
from safelight.providers.exchange import Answered, exchange, read_whole
from safelight.providers.interpretation import Interpreter
from safelight.providers.links import LinkFilter
from safelight.providers.loading import capabilities_of
from safelight.providers.redaction import Redactor
from safelight.providers.streams import listener_for
from safelight.providers.values import Values, attempt_values, submission_values
from safelight.providers.verifiers import AcceptAll, Verifier, build_verifier

_LARGE_BYTES = 256 * 1024
"""Answers beyond this are read in a thread: pictures in base64 would hold up everything else."""

T = TypeVar("T")
C = TypeVar("C", bound=Call)


class Secret(Protocol):
    """A value that shows itself only when asked, such as pydantic's SecretStr."""

    def get_secret_value(self) -> str: ...


class DeclaredProvider:
    """One upstream as its declaration describes it. Implements `domain.provider.Provider`.

    The session must keep neither cookies nor proxies of its own; it is shared and stays open. `name` tells
    several keys of one upstream apart.

    Raises:
        ConfigurationError: no address, or a credential that the declaration uses is absent or unfit.
    """

    def __init__(
        self,
        declaration: Declaration,
        *,
        credentials: Mapping[str, Secret],
        session: aiohttp.ClientSession,
        base_url: str | None = None,
        region: str | None = None,
        jwks_url: str | None = None,
        name: str | None = None,
    ) -> None:
        if session.trust_env:
            raise ConfigurationError(
                "the session takes proxies from the environment; open it with trust_env=False"
            )
        address = _address(declaration, base_url, region)
        known = _reveal(declaration, credentials)
        callback = declaration.callback
        self._name = name or declaration.name
        self._declaration = declaration
        self._session = session
        self._composer = CallComposer(
            address, choose(declaration.auth, known), known, region or declaration.region
        )
        self._links = LinkFilter(address, declaration)
        self._redactor = Redactor(known.values())
        self._interpreter = Interpreter(declaration, self._redactor, name=self._name)
        self._verifier: Verifier | None = (
            build_verifier(callback.signature, known, self._name, session=session, jwks_url=jwks_url)
            if callback
            else None
        )
        self._capabilities = capabilities_of(declaration)
        if callback is not None and self._verifier is None:
            self._verifier = AcceptAll()
            self._capabilities = replace(self._capabilities, trust=Trust.HINT)

    def __repr__(self) -> str:
        return f"DeclaredProvider({self.name!r})"

    @property
    def name(self) -> str:
        return self._name

    @property
    def capabilities(self) -> Capabilities:
        return self._capabilities

    async def submit(self, submission: Submission) -> ProviderUpdate:
        """Send one attempt, once; see `Provider.submit` for what each error means."""
        call = self._declaration.submit.fitting(submission)
        listener = listener_for(call, submission)
        asking = listener.call if listener else call
        try:
            outgoing = self._composer.compose(asking, await self._submission_values(submission))
        except (ValueError, TypeError):
            raise ProviderRefused(
                f"{self.name}: the submit cannot be written down",
                failure_class=FailureClass.INVALID_REQUEST,
                failure_code="invalid_request",
                provider=self.name,
            ) from None
        outcome = await exchange(self._session, outgoing, listener.read if listener else read_whole)
        if not isinstance(outcome, Answered):
            raise self._interpreter.errors.network_error("submit", outcome)
        answered = listener.answered_call if listener else call
        return self._links.kept(
            await _read(outcome, lambda: self._interpreter.submitted(answered, outcome, submission))
        )

    async def _submission_values(self, submission: Submission) -> dict[str, Any]:
        """What the submit's templates may speak of; a provider with code of its own prepares more."""
        return submission_values(self._declaration, submission)

    async def poll(self, attempt: AttemptRef) -> ProviderUpdate:
        """Ask how an attempt stands; where pictures are fetched by a second call, make that too."""
        update = await self._own_record("poll", self._declared("poll", self._declaration.poll), attempt)
        if update.status is UpdateStatus.SUCCEEDED and not update.outputs and self._declaration.result:
            links = {**attempt.links, **update.links}
            told = await self._own_record("result", self._declaration.result, replace(attempt, links=links))
            return _with_result(update, told)
        return update

    async def _own_record(self, phase: Phase, call: Call, attempt: AttemptRef) -> ProviderUpdate:
        answer = await self._ask(phase, call, self._with_ref(attempt), attempt.links.get(phase))
        return self._links.kept(
            await _read(answer, lambda: self._interpreter.own_record(phase, call, answer, attempt))
        )

    async def look_up(self, attempt: AttemptRef) -> ProviderUpdate | None:
        """Find an attempt by our reference."""
        call = self._declared("look_up", self._declaration.look_up)
        answer = await self._ask("look_up", call, attempt_values(self._declaration, attempt))
        return await _read(answer, lambda: self._interpreter.found(call, answer, attempt))

    async def cancel(self, attempt: AttemptRef) -> bool:
        """Ask for a cancel; False where the upstream says no, or yes without having done it."""
        call = self._declared("cancel", self._declaration.cancel)
        answer = await self._ask("cancel", call, self._with_ref(attempt), attempt.links.get("cancel"))
        return await _read(answer, lambda: self._interpreter.canceled(call, answer, attempt))

    async def list_records(self, since: datetime, until: datetime, cursor: str | None) -> RecordPage:
        """One page of the upstream's records; strangers to the window are dropped."""
        call = self._declared("list", self._declaration.listing)
        values = {
            "since": write_time(since, call.time_format),
            "until": write_time(until, call.time_format),
            "cursor": cursor,
            "page": int(cursor or call.first_page) if call.paging == "page" else None,
            "offset": int(cursor or 0) if call.paging == "offset" else None,
            "limit": call.limit,
        }
        answer = await self._ask("list", call, values)
        page = await _read(answer, lambda: self._interpreter.page(call, answer, since, cursor))
        if cursor is not None and page.next_cursor == cursor:
            raise self._interpreter.errors.unreadable_call("list", "cursor_stands_still", answer)
        inside = tuple(record for record in page.records if since <= record.created_at < until)
        return RecordPage(inside, page.next_cursor)

    async def verify_callback(self, headers: Sequence[tuple[bytes, bytes]], raw: bytes) -> None:
        """Check a callback's proof over its raw bytes."""
        if self._verifier is None:
            raise CallbackRejected("no_callbacks_declared")
        await self._verifier.verify(headers, raw)

    def read_callback(self, raw: bytes) -> ProviderUpdate:
        """Read a verified callback; a genuine one that cannot be used is a hint."""
        return self._interpreter.notice(raw)

    def keepable(self, raw: bytes) -> bytes:
        """A callback's body without our credentials: some upstreams repeat their owner's secret in it."""
        return self._redactor.masked(raw)

    def _declared(self, phase: Phase, call: C | None) -> C:
        if call is None:
            raise ProviderError(f"{self.name} declares no {phase}", provider=self.name)
        return call

    def _with_ref(self, attempt: AttemptRef) -> Values:
        if attempt.provider_ref is None:
            raise ProviderError(f"{self.name} knows this attempt by a provider_ref only", provider=self.name)
        return attempt_values(self._declaration, attempt)

    async def _ask(self, phase: Phase, call: Call, values: Values, link: str | None = None) -> Answered:
        try:
            outgoing = self._composer.compose(call, values, link=self._links.allowed(link))
        except (ValueError, TypeError):
            raise ProviderError(f"{self.name}: {phase} cannot be written down", provider=self.name) from None
        outcome = await exchange(self._session, outgoing)
        if not isinstance(outcome, Answered):
            raise self._interpreter.errors.network_error(phase, outcome)
        return outcome


async def _read(answer: Answered, read: Callable[[], T]) -> T:
    return await asyncio.to_thread(read) if len(answer.body) > _LARGE_BYTES else read()


def _with_result(record: ProviderUpdate, told: ProviderUpdate) -> ProviderUpdate:
    """A finished record with what the second call says of its pictures; that call may say that it failed."""
    return replace(
        told,
        provider_ref=record.provider_ref or told.provider_ref,
        upstream_status=record.upstream_status or told.upstream_status,
        run_s=told.run_s if told.run_s is not None else record.run_s,
        cost=told.cost if told.cost is not None else record.cost,
        links={**record.links, **told.links},
    )


def _address(declaration: Declaration, base_url: str | None, region: str | None) -> str:
    """Where the upstream is: what the installation says, else its region's host, else the usual one."""
    if region is not None and base_url is None and declaration.hosts and region not in declaration.hosts:
        known = ", ".join(sorted(declaration.hosts))
        raise ConfigurationError(f"provider {declaration.name}: no region {region!r}; there are {known}")
    address = base_url or declaration.hosts.get(region or declaration.region) or declaration.base_url
    if not address:
        raise ConfigurationError(f"provider {declaration.name}: set its base_url")
    return address


def _reveal(declaration: Declaration, credentials: Mapping[str, Secret]) -> dict[str, str]:
    """The credentials as text, for the wire; raises ConfigurationError for one that cannot be right."""
    known = {name: secret.get_secret_value().strip() for name, secret in credentials.items()}
    for name in missing_credentials(declaration, known):
        raise ConfigurationError(f"provider {declaration.name}: set its credential {name!r}")
    for name, value in known.items():
        if not value.isprintable() or not value.isascii():
            raise ConfigurationError(
                f"provider {declaration.name}: its credential {name!r} is not plain ASCII; copy it again"
            )
    return known
