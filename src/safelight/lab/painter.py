"""The painter: draws in a small bounded pool and remembers the last few pictures."""

import asyncio
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from safelight.lab.job import Job
from safelight.lab.pictures import PRE_DRAWN, draw, is_pre_drawn

THREADS = 2
KEPT_BYTES = 48 << 20


class Painter:
    """Pictures of jobs, drawn off the event loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="lab-painter")
        self._kept: OrderedDict[tuple[str, int], bytes] = OrderedDict()
        self._kept_bytes = 0

    async def picture(self, job: Job, index: int) -> bytes:
        """The picture number `index` of the job, in its format."""
        if job.fate.is_small or is_pre_drawn(job.width, job.height):
            return _draw(job, index)
        place = (job.id, index)
        kept = self._kept.get(place)
        if kept is not None:
            self._kept.move_to_end(place)
            return kept
        loop = asyncio.get_running_loop()
        picture = await loop.run_in_executor(self._pool, _draw, job, index)
        self._keep(place, picture)
        return picture

    def close(self) -> None:
        """Finish what is being drawn and stop."""
        self._pool.shutdown(cancel_futures=True)

    def _keep(self, place: tuple[str, int], picture: bytes) -> None:
        if place in self._kept:
            return
        self._kept[place] = picture
        self._kept_bytes += len(picture)
        while self._kept_bytes > KEPT_BYTES:
            self._kept_bytes -= len(self._kept.popitem(last=False)[1])


def _draw(job: Job, index: int) -> bytes:
    width, height = PRE_DRAWN if job.fate.is_small else (job.width, job.height)
    salt = "".join((*job.inputs, job.mask or ""))
    return draw(job.prompt, index=index, width=width, height=height, salt=salt, format_name=job.format)
