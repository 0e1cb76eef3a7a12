"""The door to pictures: checks, thumbnails and masks in a bounded pool beside the event loop, with a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import TypeVar

from safelight.assets.checking import Picture, PictureLimits, check_picture, make_thumbnail, pixels_claimed
from safelight.assets.inline import decode_base64, decode_data_url
from safelight.assets.masks import make_mask
from safelight.domain.provider import MaskStyle
from safelight.errors import AssetError

__all__ = [
    "Picture",
    "PictureLimits",
    "PicturePool",
    "check_picture",
    "decode_base64",
    "decode_data_url",
    "make_mask",
    "make_thumbnail",
]

T = TypeVar("T")

_INLINE_BYTES = 65_536
_INLINE_PIXELS = 16_384


class PicturePool:
    """Checks and shrinks pictures on `threads` threads (Pillow lets go of the interpreter while it works).

    A decoder that crashes takes the process with it: callers count their tries before they call.
    """

    def __init__(
        self, *, threads: int = 2, timeout_s: float = 10.0, limits: PictureLimits | None = None
    ) -> None:
        self._limits = limits or PictureLimits()
        self._timeout_s = timeout_s
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="safelight-pictures")
        self._free = asyncio.Semaphore(threads)

    async def check(self, data: bytes) -> Picture:
        """As `check_picture`; AssetError `timeout` after `timeout_s` of work."""
        if len(data) <= _INLINE_BYTES and (pixels_claimed(data) or _INLINE_PIXELS + 1) <= _INLINE_PIXELS:
            # A thread hop costs more than decoding a small PNG.
            return check_picture(data, limits=self._limits)
        return await self._run(partial(check_picture, data, limits=self._limits))

    async def thumbnail(self, data: bytes, *, side: int = 384) -> bytes:
        """As `make_thumbnail`; AssetError `timeout` after `timeout_s` of work."""
        return await self._run(partial(make_thumbnail, data, side=side))

    async def mask(self, data: bytes, style: MaskStyle) -> bytes:
        """As `make_mask`; AssetError `timeout` after `timeout_s` of work."""
        return await self._run(partial(make_mask, data, style))

    async def aclose(self) -> None:
        """Take no more work; what runs is left to end by itself."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _run(self, work: Callable[[], T]) -> T:
        # Wait here, not in the executor's queue: the deadline counts work, not waiting.
        await self._free.acquire()
        loop = asyncio.get_running_loop()
        job = self._threads.submit(work)
        job.add_done_callback(partial(self._give_back, loop))
        try:
            return await asyncio.wait_for(asyncio.wrap_future(job), self._timeout_s)
        except TimeoutError:
            raise AssetError("timeout", "the picture took too long to decode", is_retryable=True) from None

    def _give_back(self, loop: asyncio.AbstractEventLoop, job: Future[T]) -> None:
        """Free the place when the thread is really done, which may be long after the deadline."""
        with suppress(RuntimeError):  # the loop may be gone
            loop.call_soon_threadsafe(self._free.release)
