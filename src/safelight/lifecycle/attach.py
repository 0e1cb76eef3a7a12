"""Pictures that a person brings to a task: fetched, checked and put down before anything is decided."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import structlog

from safelight.assets.fetch import Fetcher
from safelight.assets.inline import decode_data_url
from safelight.assets.pictures import PicturePool
from safelight.assets.store import AssetStore, attached_key
from safelight.db.tasks import AttemptRow, TaskRow
from safelight.domain.provider import Output
from safelight.errors import AssetError, RequestError
from safelight.telemetry import point

log = structlog.get_logger()


class RulingRefused(RequestError):
    """422: what is wrong with which field of a decision; `faults` are pairs of a field and the end of a sentence."""

    def __init__(self, faults: Sequence[tuple[str, str]]) -> None:
        super().__init__(422, "validation-failed", "{}: {}".format(*faults[0]))
        self.faults = list(faults)


@dataclass(slots=True)
class Attached:
    """Where the pictures of a decision lie; those of `ours` were put there for it."""

    keys: list[str] = field(default_factory=list)
    ours: list[str] = field(default_factory=list)

    @property
    def outputs(self) -> list[Output]:
        """The pictures as outputs of an attempt."""
        return [Output(staged_key=key) for key in self.keys]


class Attach:
    """Puts down what a person gives, and what the provider gave already."""

    def __init__(self, store: AssetStore, pictures: PicturePool, fetcher: Fetcher, *, max_bytes: int) -> None:
        self._store = store
        self._pictures = pictures
        self._fetcher = fetcher
        self._max_bytes = max_bytes

    async def given(
        self, task: TaskRow, attempt: AttemptRow, urls: Sequence[str], files: Sequence[bytes]
    ) -> Attached:
        """Every picture that was given, https or data URL or bytes.

        Raises:
            RulingRefused: 422, one of them cannot be had or is no picture, or there are too many.
            RequestError: 503, our own store fails.
        """
        if len(urls) + len(files) > task.n:
            raise RulingRefused([("files" if files else "urls", f"the task asked for {task.n}")])
        sources: list[tuple[str, str | bytes]] = [(f"urls[{place}]", url) for place, url in enumerate(urls)]
        sources += [(f"files[{place}]", data) for place, data in enumerate(files)]
        attached = Attached()
        try:
            for name, source in sources:
                try:
                    data = await self._load(source)
                    await self._pictures.check(data)
                except AssetError as error:
                    raise RulingRefused([(name, f"is no picture that can be had: {error}")]) from None
                await self._put(attached, task, attempt, data)
        except RequestError:
            await self.forget(attached)
            raise
        return attached

    async def known(self, task: TaskRow, attempt: AttemptRow, outputs: Sequence[Output]) -> Attached:
        """Those of the outputs that can be had now; what is staged already stays where it is.

        Raises:
            RequestError: 409, none can be had; 503, our own store fails.
        """
        attached = Attached()
        for output in outputs[: task.n]:
            try:
                data = await self._load(output)
                await self._pictures.check(data)
            except AssetError as error:
                if error.reason == "storage":
                    raise _storage_fails() from error
                log.warning("output_not_accepted", task_id=str(task.id), reason=error.reason)
                continue
            if output.staged_key is not None:
                attached.keys.append(output.staged_key)
            else:
                await self._put(attached, task, attempt, data)
        if not attached.keys:
            raise RequestError(409, "nothing-to-accept", "No picture of this task can be had.")
        return attached

    async def forget(self, attached: Attached) -> None:
        """The decision did not come about: take back what was put down. What stays is a stray for a while."""
        for key in attached.ours:
            try:
                await self._store.delete(key)
            except AssetError as error:
                log.warning("attached_bytes_left", reason=error.reason)

    async def _load(self, source: str | bytes | Output) -> bytes:
        if isinstance(source, bytes):
            return source
        if isinstance(source, Output):
            if source.staged_key is not None:
                return await self._store.get(source.staged_key)
            source = source.url or ""
        if source[:5].lower() == "data:":
            return decode_data_url(source, max_bytes=self._max_bytes)
        return await self._fetcher.fetch(source)

    async def _put(self, attached: Attached, task: TaskRow, attempt: AttemptRow, data: bytes) -> None:
        key = attached_key(task.id, attempt.number)
        attached.ours.append(key)
        try:
            point("before_attach")
            await self._store.put(key, data)
            point("after_attach")
        except AssetError as error:
            raise _storage_fails() from error
        attached.keys.append(key)


def _storage_fails() -> RequestError:
    return RequestError(503, "unavailable", "Pictures cannot be stored right now.", retry_after_s=5)
