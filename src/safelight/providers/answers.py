"""Reads an upstream's records into updates, in the dialect that its declaration describes."""

from __future__ import annotations

import binascii
import time
from collections.abc import Mapping
from typing import Any

import structlog
from prometheus_client import Counter

from safelight.domain.failure import Failure, FailureClass
from safelight.domain.provider import Origin, Output, ProviderUpdate, UpdateStatus
from safelight.providers.declaration import Dialect, FailureRule
from safelight.providers.documents import (
    Unreadable,
    pick,
    read_amount,
    read_percent,
    read_position,
    read_ref,
)
from safelight.providers.matching import fold
from safelight.providers.redaction import Redactor

UNKNOWN_STATUSES = Counter(
    "safelight_unknown_upstream_statuses_total", "Status words that no declaration knows.", ["provider"]
)

GENERATION_FAILED = Failure(FailureClass.UPSTREAM_FAULT, "generation_failed")
CONTENT_BLOCKED = Failure(FailureClass.CONTENT_BLOCKED, "content_blocked")

_WORD_CHARS = 64
_URL_CHARS = 8_192
_SILENT_S = 3_600.0
_REMEMBERED_WORDS = 100
_URL_SAFE = str.maketrans("-_", "+/")

log = structlog.get_logger()


class AnswerReader:
    """Reads the records of one provider. It keeps nothing but which unknown words it has logged."""

    def __init__(self, provider: str, failures: tuple[FailureRule, ...], redactor: Redactor) -> None:
        self._provider = provider
        self._failures = failures
        self._redactor = redactor
        self._logged_at: dict[str, float] = {}

    def read(self, answer: Mapping[str, Any], dialect: Dialect, origin: Origin) -> ProviderUpdate:
        """One answer's record as an update.

        Raises:
            Unreadable: no usable status, a provider_ref or an output that is not one.
        """
        record = self.record_of(answer, dialect)
        word = pick(dialect.status, record)
        status = self._status(word, dialect)
        message = pick(dialect.error_message, record)
        return ProviderUpdate(
            status=status,
            origin=origin,
            provider_ref=self.ref_of(record, dialect),
            upstream_status=self._redactor.excerpt(word)[:_WORD_CHARS] if isinstance(word, str) else "",
            outputs=read_outputs(record, dialect) if status is UpdateStatus.SUCCEEDED else (),
            failure=self._failure(status, record, dialect),
            percent=read_percent(pick(dialect.percent, record), dialect.percent_full),
            position=read_position(pick(dialect.position, record)),
            run_s=read_amount(pick(dialect.run_s, record)),
            cost=read_amount(pick(dialect.cost, record)),
            excerpt=self._redactor.excerpt(message) if isinstance(message, str) else "",
        )

    def record_of(self, answer: Mapping[str, Any], dialect: Dialect) -> Mapping[str, Any]:
        """The record inside an answer; raises Unreadable where there is none."""
        record = answer if dialect.record is None else pick(dialect.record, answer)
        if not isinstance(record, Mapping):
            raise Unreadable("no_record")
        return record

    def ref_of(self, record: Mapping[str, Any], dialect: Dialect) -> str | None:
        """The record's provider_ref; None where it carries none."""
        value = pick(dialect.provider_ref, record)
        return None if value is None else read_ref(value)

    def reference_of(self, answer: Mapping[str, Any], dialect: Dialect) -> str | None:
        """Our own reference as the upstream echoes it."""
        value = pick(dialect.reference, self.record_of(answer, dialect))
        return value if isinstance(value, str) and value else None

    def has_status(self, answer: Mapping[str, Any], dialect: Dialect) -> bool:
        word = pick(dialect.status, self.record_of(answer, dialect))
        return isinstance(word, str) and bool(word.strip())

    def _status(self, word: Any, dialect: Dialect) -> UpdateStatus:
        if word is None and dialect.status_if_absent is not None:
            return dialect.status_if_absent
        if not isinstance(word, str) or not word.strip():
            raise Unreadable("no_status")
        known = {fold(spelling): status for spelling, status in dialect.statuses.items()}
        status = known.get(fold(word))
        if status is not None:
            return status
        self._note_unknown(self._redactor.excerpt(word)[:_WORD_CHARS])
        return UpdateStatus.RUNNING

    def _note_unknown(self, word: str) -> None:
        """Count every time, log once an hour for a word: a stuck task repeats it at every look."""
        UNKNOWN_STATUSES.labels(self._provider).inc()
        now = time.monotonic()
        if now - self._logged_at.get(word, -_SILENT_S) < _SILENT_S:
            return
        if len(self._logged_at) >= _REMEMBERED_WORDS:
            self._logged_at.clear()
        self._logged_at[word] = now
        log.warning("unknown_upstream_status", provider=self._provider, upstream_status=word)

    def _failure(self, status: UpdateStatus, record: Mapping[str, Any], dialect: Dialect) -> Failure | None:
        if status is UpdateStatus.BLOCKED:
            return CONTENT_BLOCKED
        if status is not UpdateStatus.FAILED:
            return None
        code = pick(dialect.error_code, record)
        for rule in self._failures:
            if rule.fits(code if rule.path is None else pick(rule.path, record)):
                return Failure(rule.failure_class, rule.code)
        return GENERATION_FAILED


def read_outputs(record: Mapping[str, Any], dialect: Dialect) -> tuple[Output, ...]:
    """The pictures of a finished record, all of them; raises Unreadable where one is not usable."""
    if dialect.outputs is None:
        return ()
    items = pick(dialect.outputs.items, record)
    if items is None:
        return ()
    outputs = []
    for item in items if isinstance(items, list) else [items]:
        url, text = pick(dialect.outputs.url, item), pick(dialect.outputs.base64, item)
        if url:
            outputs.append(_from_url(url))
        elif text:
            outputs.append(Output(data=decode_base64(text)))
    return tuple(outputs)


def _from_url(url: Any) -> Output:
    if isinstance(url, str) and url[:5].lower() == "data:":
        return Output(data=decode_base64(url))
    if (
        not isinstance(url, str)
        or len(url) > _URL_CHARS
        or not url.lower().startswith(("https://", "http://"))
    ):
        raise Unreadable("bad_output_url")
    return Output(url=url)


def decode_base64(text: Any) -> bytes:
    """Decode base64 with or without a data: prefix, white space and URL-safe letters; raises Unreadable."""
    if not isinstance(text, str):
        raise Unreadable("bad_base64")
    text = text.strip()
    if text[:5].lower() == "data:":
        head, _, text = text.partition(",")
        if not head.lower().endswith(";base64"):
            raise Unreadable("bad_base64")
    try:
        data = binascii.a2b_base64("".join(text.split()).translate(_URL_SAFE), strict_mode=True)
    except ValueError:
        raise Unreadable("bad_base64") from None
    if not data:
        raise Unreadable("bad_base64")
    return data
