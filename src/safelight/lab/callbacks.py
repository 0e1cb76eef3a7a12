"""Callbacks: signed notices to the caller's URL, retried, copied, replayed, forged."""

import asyncio
import json
import time
from typing import Any

from safelight.lab.job import Job
from safelight.lab.signatures import Parcel
from safelight.lab.voice import Notice, Voice, Voices
from safelight.lab.wire import Wire

_encode = json.JSONEncoder(separators=(",", ":")).encode
Sent = tuple[bytes, dict[str, str]]


class Callbacks:
    """Sends notices in their upstream's voice over shared, bounded connections."""

    def __init__(self, voices: Voices) -> None:
        self._voices = voices
        self._wire = Wire()

    async def send(self, job: Job, moment: str, tried: asyncio.Event) -> Sent | None:
        """Send a notice until it is taken or given up; `tried` is set after the first try.

        Returns what was sent last, body and headers.
        """
        voice = self._voices(job.dialect)
        sent: Sent | None = None
        for gap_s in (0.0, *voice.retry_gaps_s):
            if tried.is_set():
                await asyncio.sleep(gap_s)
            # Worded again at every try, so that its URLs and its signature are fresh.
            notice = voice.notice(job, moment)
            sent = None if notice is None else self._sealed(voice, job, notice)
            is_taken = sent is None or await self._try(voice, job, sent)
            tried.set()
            if is_taken:
                break
        return sent

    async def replay(self, job: Job, sent: Sent) -> None:
        """Send once more what was sent before: the same bytes and signature."""
        await self._post(self._voices(job.dialect), job, sent)

    async def forge(self, job: Job) -> None:
        """Send a notice that is not genuine, once."""
        voice = self._voices(job.dialect)
        notice = voice.notice(job, "forged")
        if notice is not None:
            await self._post(voice, job, _forged(voice, job, notice))

    def close(self) -> None:
        """Close the connections."""
        self._wire.close()

    async def _try(self, voice: Voice, job: Job, sent: Sent) -> bool:
        copies = job.fate.callback_copies
        if copies == 1:
            return await self._post(voice, job, sent)
        return all(await asyncio.gather(*(self._post(voice, job, sent) for _ in range(copies))))

    async def _post(self, voice: Voice, job: Job, sent: Sent) -> bool:
        body, headers = sent
        try:
            return voice.is_taken(await self._wire.post(str(job.callback_url), body, headers))
        except (OSError, ValueError):
            return False

    def _sealed(self, voice: Voice, job: Job, notice: Notice) -> Sent:
        fate = job.fate
        parcel = _parcel(job, notice, age_s=fate.callback_stale_s or 0)
        headers = {"Content-Type": "application/json", **notice.headers}
        if not fate.is_unsigned:
            headers |= voice.scheme(job).headers(parcel, fate.secret_rotated)
        body = _reserialised(notice.body) if fate.is_reserialised else parcel.body
        return body, headers


def _parcel(job: Job, notice: Notice, *, age_s: float = 0) -> Parcel:
    return Parcel(notice.id, int(time.time() - age_s), _encode(notice.body).encode(), job.id)


def _reserialised(body: Any) -> bytes:
    """The same JSON in other bytes, as something between the two ends may write it."""
    return json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False).encode()


def _forged(voice: Voice, job: Job, notice: Notice) -> Sent:
    parcel, scheme, kind = _parcel(job, notice), voice.scheme(job), job.fate.forgery
    headers: dict[str, str] = {}
    if kind == "wrong":
        headers = scheme.headers(Parcel(parcel.id, parcel.at, parcel.body + b" ", parcel.job_id))
    elif kind == "wrong_key":
        headers = scheme.forged(parcel)
    elif kind == "non_ascii":
        headers = scheme.headers(parcel)
        if scheme.signature:
            headers[scheme.signature] = "ß" + headers[scheme.signature][1:]
    # A static token does not depend on the message: only another token is a wrong one.
    if kind == "wrong" and headers == scheme.headers(parcel):
        headers = scheme.forged(parcel)
    return parcel.body, {"Content-Type": "application/json", **headers}
