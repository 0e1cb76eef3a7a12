"""How the tests of single upstreams speak: a provider at the scripted upstream, and what came of a call."""

from __future__ import annotations

from typing import Any

import aiohttp
from pydantic import SecretStr

from safelight.domain.failure import FailureClass
from safelight.domain.provider import AttemptRef, InputImage, ProviderUpdate, Submission
from safelight.errors import ProviderError, ProviderRefused, ProviderUnavailable, SubmissionUncertain
from safelight.providers import build_provider, packaged_declaration
from tests.providers.upstream import TOKEN, Upstream, submission

KEY, ACCESS_KEY, SECRET_KEY = "canary-key-71f3", "canary-access-11aa", "canary-secret-22bb"
PNG = InputImage("image/png", b"png-bytes", "https://shop.example/inputs/1.png")
JPEG = InputImage("image/jpeg", b"jpeg-bytes", "https://shop.example/inputs/2.jpg")
PNG_BASE64, JPEG_BASE64 = "cG5nLWJ5dGVz", "anBlZy1ieXRlcw=="
HTML = b"<html><body>502 Bad Gateway</body></html>"


class Asker:
    """One packaged provider that speaks to the test's upstream, and the model it is asked for."""

    def __init__(
        self,
        name: str,
        session: aiohttp.ClientSession,
        upstream: Upstream,
        *,
        model: str = "",
        credentials: dict[str, str] | None = None,
    ) -> None:
        self.declaration = packaged_declaration(name)
        first = self.declaration.models[0]
        self.model = model or first.upstream_model or first.name
        self.upstream = upstream
        known = credentials if credentials is not None else {"api_key": KEY}
        self.provider = build_provider(
            self.declaration,
            credentials={word: SecretStr(secret) for word, secret in known.items()},
            session=session,
            base_url=upstream.base_url,
        )

    @property
    def callback_url(self) -> str:
        return f"https://shop.example/callbacks/{self.declaration.name}/{TOKEN}"

    def attempt(self, provider_ref: str | None = "j1", operation: str = "generate") -> AttemptRef:
        """An attempt that the upstream has accepted."""
        return AttemptRef("t1-1", provider_ref, self.model, operation)

    def submission(self, **wishes: Any) -> Submission:
        """A submission for this model."""
        return submission(**{"upstream_model": self.model, **wishes})

    async def submits(self, status: int, body: Any, **wishes: Any) -> ProviderUpdate:
        """What a submit says that is answered so."""
        self.upstream.answers(status, body)
        return await self.provider.submit(self.submission(**wishes))

    async def sends(self, status: int, body: Any, **wishes: Any) -> Any:
        """The body of a submit that is answered so."""
        await self.submits(status, body, **wishes)
        return self.upstream.asked[-1].body

    async def refuses(self, status: int, body: Any, headers: dict[str, str] | None = None) -> str:
        """What a submit comes to that is answered with an error, in one or two words."""
        self.upstream.answers(status, body, headers)
        try:
            await self.provider.submit(self.submission())
        except ProviderError as error:
            return word_for(error)
        return "accepted"

    async def polls(self, status: int, body: Any, provider_ref: str = "j1") -> ProviderUpdate:
        """What a look says that is answered so."""
        self.upstream.answers(status, body)
        return await self.provider.poll(self.attempt(provider_ref))

    async def poll_fails(self, status: int, body: Any) -> str:
        """What a look comes to that says nothing about the attempt."""
        try:
            update = await self.polls(status, body)
        except ProviderError as error:
            return word_for(error)
        return str(update.status)


def word_for(error: ProviderError) -> str:
    """An error in a word: what was refused and why, what was turned away and why, or that it is uncertain."""
    if isinstance(error, ProviderRefused):
        return f"refused: {error.failure_class}"
    if isinstance(error, ProviderUnavailable):
        return f"unavailable: {error.reason}"
    return "uncertain" if isinstance(error, SubmissionUncertain) else "nothing"


REFUSED_INPUT = f"refused: {FailureClass.INVALID_REQUEST}"
REFUSED_CONTENT = f"refused: {FailureClass.CONTENT_BLOCKED}"
REFUSED_FAULT = f"refused: {FailureClass.UPSTREAM_FAULT}"
TOO_FAST, NO_MONEY, BAD_KEY = "unavailable: rate_limited", "unavailable: funds", "unavailable: credentials"


def urls_of(update: ProviderUpdate) -> list[str | None]:
    """The addresses of the pictures."""
    return [output.url for output in update.outputs]
