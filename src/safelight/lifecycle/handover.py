"""The input pictures of a task that is being sent: our own copies, in the form that its provider takes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from uuid import UUID

from safelight.assets.inputlinks import InputLink
from safelight.db import uploads
from safelight.db.tasks import TaskRow
from safelight.db.uploads import UploadRow
from safelight.domain.failure import FailureClass
from safelight.domain.provider import Capabilities, InputImage, MaskStyle, Provider
from safelight.errors import AssetError, ProviderRefused
from safelight.lifecycle.context import Context
from safelight.lifecycle.inputs import needs_public_url

LOAD_S = 8.0
"""How long reading may take: what the lease of a send leaves beside the call and the wait before it."""
LINK_S = 3_600
"""How long past the deadline of its attempt an address is good: late runs may still fetch their inputs."""
PUBLIC_URL_NEEDED = "public_url_needed"


@dataclass(frozen=True, slots=True)
class Pictures:
    """What a provider is given; the mask is in its own style."""

    images: tuple[InputImage, ...] = ()
    mask: InputImage | None = None


class Handover:
    """Loads inputs at send time; no database connection is held while bytes are read."""

    def __init__(self, context: Context) -> None:
        self._context = context

    async def load(self, provider: Provider, task: TaskRow) -> Pictures:
        """The inputs of a task, read from our storage and addressed below our public URL if there is one.

        Raises:
            AssetError: they cannot be read; `storage` if that may pass.
            ProviderRefused: the provider takes addresses alone, and we have none to give.
        """
        if not task.images:
            return Pictures()
        capabilities = provider.capabilities
        if needs_public_url(capabilities) and self._context.settings.public_url is None:
            raise ProviderRefused(
                "pictures are taken by address alone, and there is no public_url",
                failure_class=FailureClass.ENVIRONMENT,
                failure_code=PUBLIC_URL_NEEDED,
                provider=provider.name,
            )
        try:
            async with asyncio.timeout(LOAD_S):
                return await self._load(capabilities, task)
        except TimeoutError:
            raise AssetError("storage", "the inputs came too slowly", is_retryable=True) from None

    async def _load(self, capabilities: Capabilities, task: TaskRow) -> Pictures:
        wanted = {*task.images, *([task.mask] if task.mask else [])}
        async with self._context.database.connection() as connection:
            rows = await uploads.read(connection, task.account_id, wanted)
        data: dict[UUID, bytes] = {}
        if capabilities.needs_image_data:
            found = await asyncio.gather(*(self._bytes_of(rows, upload_id) for upload_id in wanted))
            data = dict(zip(wanted, found, strict=True))
        images = tuple(self._image(task, _row_of(rows, one), data.get(one, b"")) for one in task.images)
        if task.mask is None:
            return Pictures(images)
        mask = data.get(task.mask, b"")
        if mask:
            mask = await self._context.pictures.mask(mask, capabilities.mask_style)
        row = _row_of(rows, task.mask)
        return Pictures(images, self._image(task, row, mask, mask_style=capabilities.mask_style))

    async def _bytes_of(self, rows: Mapping[UUID, UploadRow], upload_id: UUID) -> bytes:
        row = _row_of(rows, upload_id)
        data = await self._context.store.get(row.store_key)
        if len(data) != row.size_bytes:
            raise AssetError("damaged", f"upload {upload_id} has another length", is_retryable=False)
        return data

    def _image(
        self, task: TaskRow, row: UploadRow, data: bytes, *, mask_style: MaskStyle | None = None
    ) -> InputImage:
        content_type = "image/png" if mask_style else row.content_type
        public_url = self._context.settings.public_url
        if public_url is None or task.deadline_at is None:
            return InputImage(content_type, data)
        # Counted from the attempt's deadline: a second send of it then carries the very same address.
        expires_at = int(task.deadline_at.timestamp()) + LINK_S
        link = InputLink(task.account_id, row.id, mask_style, expires_at)
        word = self._context.links.word(link, content_type)
        return InputImage(content_type, data, f"{public_url.rstrip('/')}/inputs/{word}")


def _row_of(rows: Mapping[UUID, UploadRow], upload_id: UUID) -> UploadRow:
    row = rows.get(upload_id)
    if row is None:
        raise AssetError("missing", f"upload {upload_id} is gone", is_retryable=False)
    return row
