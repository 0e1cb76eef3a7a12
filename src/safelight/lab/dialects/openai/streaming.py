"""OpenAI's streams: partial pictures while a job is drawn, then the whole ones."""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from safelight.lab.job import Job
from safelight.lab.painter import Painter
from safelight.lab.speech.reply import Ending


def usage(job: Job, pictures: int) -> dict[str, Any]:
    """What was used, in tokens; the numbers are only plausible."""
    text, seen, drawn = len(job.prompt) // 4 + 1, 300 * len(job.inputs), 1000 * pictures
    return {
        "input_tokens": text + seen,
        "input_tokens_details": {"text_tokens": text, "image_tokens": seen},
        "output_tokens": drawn,
        "total_tokens": text + seen + drawn,
    }


async def events(job: Job, painter: Painter, ending: Ending | None) -> AsyncIterator[bytes]:
    """The partial pictures, spread over the time of drawing, and one last event for each picture."""
    word = "image_generation" if job.operation == "generate" else "image_edit"
    count = job.details["partial_images"]
    for index in range(count):
        await asyncio.sleep(max(0.0, job.starts_at + job.fate.latency_s * index / (count + 1) - time.time()))
        sketch = await painter.picture(job, job.n + index)
        yield _event(f"{word}.partial_image", job, sketch, partial_image_index=index)
    await job.ended.wait()
    if ending is not None and ending.reply is not None:
        # How a stream that has begun tells an error is not documented; the client reads it so.
        yield _line("error", {"type": "error", **ending.reply.body})
        return
    for index in range(job.delivered):
        picture = await painter.picture(job, index)
        yield _event(f"{word}.completed", job, picture, usage=usage(job, 1))


def _event(name: str, job: Job, picture: bytes, **more: Any) -> bytes:
    body = {
        "type": name,
        "b64_json": base64.b64encode(picture).decode(),
        "created_at": int(time.time()),
        "size": f"{job.width}x{job.height}",
        **job.details["look"],
        **more,
    }
    return _line(name, body)


def _line(name: str, body: dict[str, Any]) -> bytes:
    return f"event: {name}\ndata: {json.dumps(body)}\n\n".encode()
