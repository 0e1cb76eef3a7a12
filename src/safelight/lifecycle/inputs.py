"""The input pictures of a submit: found, fetched and checked before anything is charged."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import structlog

from safelight.assets.fetch import Fetcher
from safelight.assets.inline import decode_data_url
from safelight.assets.reading import FetchLimits
from safelight.db.uploads import UploadRow
from safelight.domain.provider import Capabilities, Provider
from safelight.errors import AssetError, RequestError
from safelight.lifecycle.uploads import KEEP_INPUT_S, Uploads
from safelight.settings import Settings

log = structlog.get_logger()

FETCH_S = 20.0
"""How long all inputs of one submit may take to arrive."""
UPLOAD_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)

UNREACHED = (
    "cannot be fetched: it must lie at a public https address, answer quickly, and be {limit} bytes at most"
)
"""One text for everything that a network can do, so that nobody can probe what lies behind us."""
NO_UPLOAD = "is no upload of yours, or has expired"
NO_ADDRESS = "this model needs a public address of this installation, and it has none"
_REFUSALS = {
    "not_an_image": "is not a picture of a type that is taken: PNG, JPEG, WebP or AVIF",
    "truncated": "is a picture that is cut off or damaged",
    "too_large": "is a picture with too many bytes, pixels or frames",
    "timeout": "is a picture that takes too long to decode",
}


def refusal_of(error: AssetError) -> str | None:
    """Why a picture is not taken, as the end of a sentence; None if that is our own trouble."""
    return _REFUSALS.get(error.reason)


class InputsRefused(RequestError):
    """422: what is wrong with which input; `faults` are pairs of a field and the end of a sentence."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__(422, "validation-failed", "{}: {}".format(*faults[0]))
        self.faults = list(faults)


@dataclass(frozen=True, slots=True)
class Sources:
    """Inputs as a customer names them: upload ids, https URLs or data URLs."""

    images: Sequence[str]
    mask: str | None = None

    def by_field(self) -> dict[str, str]:
        """Each source by the field that it stands in."""
        named = {f"images[{place}]": text for place, text in enumerate(self.images)}
        return {**named, "mask": self.mask} if self.mask is not None else named


@dataclass(frozen=True, slots=True)
class Taken:
    """The same inputs as uploads."""

    images: tuple[UUID, ...]
    mask: UUID | None


class Inputs:
    """Takes in what a submit names, so that a task refers to nothing but our own copies."""

    def __init__(
        self, uploads_of: Uploads, fetcher: Fetcher, settings: Settings, providers: Mapping[str, Provider]
    ) -> None:
        self._uploads = uploads_of
        self._fetcher = fetcher
        self._settings = settings
        self._providers = providers

    async def take(self, account_id: UUID, sources: Sources, *, providers: Sequence[str]) -> Taken:
        """Find, fetch and check every input; nothing is charged yet. One of `providers` will be given them.

        Raises:
            InputsRefused: 422 with each fault.
            RequestError: 429 too many at once, 503 our own storage fails.
        """
        self._check_address(providers)
        named = sources.by_field()
        found = await self._find(account_id, named)
        others = sorted(set(named.values()) - found.keys())
        until = asyncio.get_running_loop().time() + FETCH_S
        taken = await asyncio.gather(
            *(self._take(account_id, text, until) for text in others), return_exceptions=True
        )
        found.update(zip(others, map(_row_or_fault, taken), strict=True))
        return _judge(named, found)

    def _check_address(self, providers: Sequence[str]) -> None:
        able = [self._providers[name].capabilities for name in providers if name in self._providers]
        if able and self._settings.public_url is None and all(map(needs_public_url, able)):
            raise InputsRefused([("images", NO_ADDRESS)])

    async def _find(self, account_id: UUID, named: Mapping[str, str]) -> dict[str, UploadRow | str]:
        """Uploads by the text that names them; a wrong one ends it all before anything is fetched."""
        ids = {text: UUID(text) for text in named.values() if UPLOAD_ID.fullmatch(text)}
        if not ids:
            return {}
        rows = await self._uploads.use(account_id, ids.values())
        faults = [
            (field, NO_UPLOAD) for field, text in named.items() if text in ids and ids[text] not in rows
        ]
        if faults:
            raise InputsRefused(faults)
        return {text: rows[upload_id] for text, upload_id in ids.items()}

    async def _take(self, account_id: UUID, text: str, until: float) -> UploadRow:
        left_s = until - asyncio.get_running_loop().time()
        async with self._uploads.places.take(account_id, within_s=left_s):
            data = await self._read(text, until)
            return await self._uploads.keep(account_id, data, keep_s=KEEP_INPUT_S)

    async def _read(self, text: str, until: float) -> bytes:
        limit = self._settings.max_upload_bytes
        if text[:5].lower() == "data:":
            return decode_data_url(text, max_bytes=limit)
        try:
            async with asyncio.timeout_at(until):
                return await self._fetcher.fetch(text)
        except (AssetError, TimeoutError) as error:
            log.info("input_not_fetched", reason=getattr(error, "reason", "timeout"))
            raise AssetError("unreached", UNREACHED.format(limit=limit), is_retryable=False) from None


def limits_of_inputs(settings: Settings) -> FetchLimits:
    """What one input may take to be fetched: whoever submits is waiting."""
    return FetchLimits(
        max_bytes=settings.max_upload_bytes, first_byte_s=10.0, total_s=FETCH_S, rate_window_s=5.0
    )


def _row_or_fault(taken: UploadRow | BaseException) -> UploadRow | str:
    if isinstance(taken, UploadRow):
        return taken
    if isinstance(taken, AssetError):
        fault = str(taken) if taken.reason == "unreached" else refusal_of(taken)
        if fault is not None:
            return fault
        log.error("input_not_stored", reason=taken.reason)
        raise RequestError(
            503, "unavailable", "Pictures cannot be stored right now.", retry_after_s=5
        ) from taken
    if isinstance(taken, RequestError) and taken.status == 413:
        return f"finds no space. {taken.detail}"
    raise taken


def _judge(named: Mapping[str, str], found: Mapping[str, UploadRow | str]) -> Taken:
    rows: dict[str, UploadRow] = {}
    faults: list[tuple[str, str]] = []
    for field, text in named.items():
        one = found[text]
        if isinstance(one, UploadRow):
            rows[field] = one
        else:
            faults.append((field, one))
    mask, first = rows.get("mask"), rows.get("images[0]")
    if mask and first and (mask.width, mask.height) != (first.width, first.height):
        words = f"has {mask.width}x{mask.height} pixels; the first image has {first.width}x{first.height}"
        faults.append(("mask", words))
    if faults:
        raise InputsRefused(faults)
    return Taken(tuple(row.id for field, row in rows.items() if field != "mask"), mask.id if mask else None)


def needs_public_url(capabilities: Capabilities) -> bool:
    """Whether a provider takes pictures by their addresses alone."""
    return capabilities.needs_image_urls and not capabilities.needs_image_data
