"""The workbench of a conformance run: the provider under test, the lab as its upstream, and a mailbox."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import aiohttp
from pydantic import SecretStr
from structlog.testing import capture_logs

from safelight.cli.conformance.mailbox import Mailbox, picture
from safelight.domain.provider import (
    AttemptRef,
    Capabilities,
    InputImage,
    MaskStyle,
    ProviderUpdate,
    Submission,
    UpdateStatus,
)
from safelight.errors import ProviderError, ProviderRefused, ProviderUnavailable, SubmissionUncertain
from safelight.providers import DeclaredProvider, build_provider
from safelight.providers.declaration import Declaration, DeclaredModel
from safelight.providers.signatures import Ed25519Jwks

PATIENCE_S = 2.0
"""Replaces every longer time-out of the declaration, so that a run does not take hours."""
OPEN = frozenset({UpdateStatus.QUEUED, UpdateStatus.RUNNING})
ENDED_WITHIN_S = 8.0
PROMPT = "a red fox in the snow"


class Nonconformity(Exception):
    """The provider does not do what its upstream asks for; the text says what, in one sentence."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a submit, in one of six words."""

    word: str
    """`accepted`, `done`, `failed`, `blocked`, `turned_away` or `uncertain`."""
    reason: str = ""
    retry_after_s: float | None = None
    update: ProviderUpdate | None = None
    code: str = ""


@dataclass
class Workbench:
    """Everything that a case needs. `told` collects what the provider said, to be searched for secrets."""

    declaration: Declaration
    dialect: Mapping[str, Any]
    lab_url: str
    session: aiohttp.ClientSession
    mailbox: Mailbox
    told: list[str] = field(default_factory=list)
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(secrets.randbits(100)))
    """For references: several workbenches may share one lab, which knows an attempt by its reference."""

    def __post_init__(self) -> None:
        self.provider = self.built()

    @property
    def name(self) -> str:
        """The dialect's name."""
        return str(self.dialect["name"])

    @property
    def features(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.dialect["features"]
        return found

    @property
    def capabilities(self) -> Capabilities:
        return self.provider.capabilities

    def built(
        self,
        *,
        patience_s: float = PATIENCE_S,
        credentials: Mapping[str, str] | None = None,
        base_url: str | None = None,
    ) -> DeclaredProvider:
        """The provider with the lab's credentials, or with some of them replaced; an empty one is left out."""
        known = {**self.dialect["credentials"], **(credentials or {})}
        return build_provider(
            impatient(self.declaration, patience_s),
            credentials={name: SecretStr(value) for name, value in known.items() if value},
            session=self.session,
            base_url=base_url or lab_address(self.declaration, self.lab_url, self.name),
            jwks_url=f"{self.lab_url}/{self.name}{_jwks_path(self.declaration)}",
        )

    async def turn(self, **knobs: Any) -> None:
        """Set the lab's knobs, all others back to a lab that draws at once and errs in nothing."""
        calm = {
            "reset": True,
            "latency_s": [0, 0],
            "small_pictures": True,
            "callback_urls": self._account_urls(),
        }
        async with self.session.post(f"{self.lab_url}/lab/knobs", json={**calm, **knobs}) as answer:
            if answer.status != 200:
                raise Nonconformity(f"the lab does not take its knobs: {await answer.text()}")

    async def ledger(self, *, last: int = 0) -> Any:
        """What the lab has accepted, as the independent witness: the totals, and so many of the last items."""
        async with self.session.get(f"{self.lab_url}/lab/ledger", params={"last": last}) as answer:
            return await answer.json()

    async def witness(self) -> Mapping[str, Any]:
        """The lab's line about the last submit that it accepted."""
        items = (await self.ledger(last=1))["items"]
        if not items:
            raise Nonconformity("the lab has accepted nothing")
        found: Mapping[str, Any] = items[-1]
        return found

    async def accepted(self) -> int:
        """How many submits the lab has accepted."""
        return int((await self.ledger())["accepted"])

    @property
    def models(self) -> tuple[DeclaredModel, ...]:
        """The declared models that are not retired yet."""
        today = datetime.now(UTC).date()
        return tuple(
            model for model in self.declaration.models if model.retires_on is None or model.retires_on > today
        )

    @property
    def doubts_faults(self) -> bool:
        """Whether the declaration says of some fault that it may hide an acceptance: the safe reading."""
        return any(rule.outcome == "ambiguous" for rule in self.declaration.errors.rules)

    def model(self, operation: str = "generate", *, has_mask: bool = False) -> DeclaredModel | None:
        """The first declared model that does this."""
        fitting = (
            model
            for model in self.models
            if operation in model.operations and (model.takes_mask or not has_mask)
        )
        return next(fitting, None)

    def submission(self, model: DeclaredModel | None = None, **changes: Any) -> Submission:
        """A plain submission of one picture by a model, with a reference of its own."""
        model = model or self.model() or self.models[0]
        operation = changes.get("operation") or model.operations[0]
        values: dict[str, Any] = {
            "reference": f"{next(self._numbers):028x}-1",
            "upstream_model": model.upstream_model or model.name,
            "operation": operation,
            "prompt": PROMPT,
            "n": 1,
            **_first_shape(model),
            "images": self.images(1) if operation == "edit" else (),
            "options": {},
            "callback_url": None,
        }
        values |= changes
        if self.capabilities.takes_callback_url and "callback_url" not in changes:
            values["callback_url"] = self.callback_url(values["reference"])
        return Submission(**values)

    def callback_path(self, reference: str) -> str:
        """Where callbacks about this attempt arrive."""
        token = hashlib.sha256(reference.encode()).hexdigest()
        is_own = self.capabilities.takes_callback_url
        return f"/callbacks/{self.name}/{token}" if is_own else f"/callbacks/{self.name}"

    def callback_url(self, reference: str) -> str:
        return f"{self.mailbox.url}{self.callback_path(reference)}"

    def images(self, count: int) -> tuple[InputImage, ...]:
        """Pictures for an edit, each another one."""
        return tuple(self.image(f"input-{number}") for number in range(count))

    def mask(self) -> InputImage:
        """A mask in the upstream's style."""
        names = {MaskStyle.WHITE: "white", MaskStyle.BLACK: "black", MaskStyle.CLEAR: "clear"}
        return self.image(names[self.capabilities.mask_style])

    def image(self, name: str) -> InputImage:
        """One of the mailbox's pictures."""
        return InputImage("image/png", picture(name), f"{self.mailbox.url}/pictures/{name}.png")

    async def submit(self, submission: Submission, provider: DeclaredProvider | None = None) -> Outcome:
        """Send it once, and say what came of it."""
        if not self.capabilities.takes_callback_url:
            self.mailbox.received.clear()  # all attempts of the account share one address
        try:
            update = await (provider or self.provider).submit(submission)
        except ProviderError as error:
            self.hear(error)
            return _outcome_of(error)
        self.note(update)
        words = {
            UpdateStatus.SUCCEEDED: "done",
            UpdateStatus.BLOCKED: "blocked",
            UpdateStatus.FAILED: "failed",
        }
        failure = update.failure
        return Outcome(
            words.get(update.status, "accepted"),
            failure.failure_class if failure else "",
            code=failure.code if failure else "",
            update=update,
        )

    async def started(
        self, submission: Submission | None = None, **changes: Any
    ) -> tuple[Submission, AttemptRef, Outcome]:
        """Submit what must be accepted; the attempt as it is spoken of afterwards."""
        submission = submission or self.submission(**changes)
        outcome = await self.submit(submission)
        if outcome.update is None or outcome.word not in ("accepted", "done"):
            raise Nonconformity(f"a plain submit is {outcome.word} {outcome.reason}: {self.told[-1:]}")
        return submission, self.attempt(submission, outcome.update), outcome

    def attempt(self, submission: Submission, update: ProviderUpdate | None) -> AttemptRef:
        return AttemptRef(
            reference=submission.reference,
            provider_ref=update.provider_ref if update else None,
            upstream_model=submission.upstream_model,
            operation=submission.operation,
            links=update.links if update else {},
        )

    async def look(self, attempt: AttemptRef) -> ProviderUpdate:
        """One poll, which must say something."""
        try:
            update = await self.provider.poll(attempt)
        except ProviderError as error:
            self.hear(error)
            raise Nonconformity(f"a poll says nothing: {error} {error.excerpt}") from None
        self.note(update)
        return update

    async def finish(self, attempt: AttemptRef, outcome: Outcome) -> ProviderUpdate:
        """The last word about an attempt: that of the submit, or that of the poll which finds it ended."""
        if outcome.update is not None and outcome.update.status not in OPEN:
            return outcome.update
        try:
            async with asyncio.timeout(ENDED_WITHIN_S):
                while (update := await self.look(attempt)).status in OPEN:  # noqa: ASYNC110 - only a look tells
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise Nonconformity("polls never say that the attempt has ended") from None
        return update

    def note(self, update: ProviderUpdate) -> None:
        self.told += [update.excerpt, update.upstream_status, repr(update.failure), update.provider_ref or ""]

    def hear(self, error: ProviderError) -> None:
        self.told.append(f"{error} {error!r} {error.excerpt}")

    def _account_urls(self) -> dict[str, str]:
        return {self.name: f"{self.mailbox.url}/callbacks/{self.name}"}


def impatient(declaration: Declaration, patience_s: float) -> Declaration:
    """The declaration with shorter time-outs and otherwise the same."""
    submit = declaration.submit
    variants = tuple(
        one.model_copy(update={"timeout_s": patience_s}) if one.timeout_s else one for one in submit.variants
    )
    changes: dict[str, Any] = {
        "submit": submit.model_copy(
            update={"timeout_s": min(patience_s, submit.timeout_s), "variants": variants}
        )
    }
    for name in ("poll", "result", "look_up", "listing", "cancel"):
        call = getattr(declaration, name)
        if call is not None:
            changes[name] = call.model_copy(update={"timeout_s": min(patience_s, call.timeout_s)})
    return declaration.model_copy(update=changes)


def lab_address(declaration: Declaration, lab_url: str, dialect: str) -> str:
    """Where the lab plays this upstream: below the dialect's name the paths are the upstream's own."""
    address = declaration.hosts.get(declaration.region) or declaration.base_url or ""
    return f"{lab_url}/{dialect}{urlsplit(address).path.rstrip('/')}"


def _jwks_path(declaration: Declaration) -> str:
    signature = declaration.callback.signature if declaration.callback else None
    return urlsplit(signature.jwks_url).path if isinstance(signature, Ed25519Jwks) else ""


def expect(condition: object, message: str) -> None:
    """Raise Nonconformity with the message unless the condition holds."""
    if not condition:
        raise Nonconformity(message)


@contextmanager
def known_words() -> Iterator[None]:
    """What is read inside must need no warning: no word that is not declared, no good end without its pictures.

    A provider tells of each unknown word once in an hour.
    """
    with capture_logs() as logs:
        yield
    is_bare = any(line["event"] == "success_without_pictures" for line in logs)
    expect(not is_bare, "a good end is read without its pictures")
    unknown = {line.get("upstream_status") for line in logs if line["event"] == "unknown_upstream_status"}
    expect(not unknown, f"unknown are {', '.join(map(str, unknown))}")


def without_links(attempt: AttemptRef) -> AttemptRef:
    """The attempt as it is known where the submit's answer was lost."""
    return replace(attempt, links={})


def _first_shape(model: DeclaredModel) -> dict[str, str | None]:
    size = next((size for size in model.sizes if size), None)
    ratio = next((ratio for ratio in model.aspect_ratios if ratio), None)
    return {"size": size, "aspect_ratio": None if size else ratio}


def _outcome_of(error: ProviderError) -> Outcome:
    if isinstance(error, SubmissionUncertain):
        return Outcome("uncertain")
    if isinstance(error, ProviderUnavailable):
        return Outcome("turned_away", error.reason, error.retry_after_s)
    if isinstance(error, ProviderRefused):
        is_blocked = error.failure_class == "content_blocked"
        return Outcome(
            "blocked" if is_blocked else "failed",
            error.failure_class,
            error.retry_after_s,
            code=error.failure_code,
        )
    raise Nonconformity(f"a submit raises {type(error).__name__}, which says nothing about it")
