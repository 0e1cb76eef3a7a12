"""Reads an upstream's records into updates, in the dialect that its declaration describes."""

from __future__ import annotations

import binascii
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import structlog
from prometheus_client import Counter

from safelight.domain.failure import Failure, FailureClass
from safelight.domain.provider import Origin, Output, ProviderUpdate, UpdateStatus
from safelight.providers.dialect import Dialect, FailureRule
from safelight.providers.documents import (
    Unreadable,
    decoded,
    pick,
    read_amount,
    read_percent,
    read_position,
    read_ref,
)
from safelight.providers.matching import Pick, fold
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

    def read(
        self, answer: Mapping[str, Any], dialect: Dialect, origin: Origin, *, http_status: int | None = None
    ) -> ProviderUpdate:
        """One answer's record as an update.

        Raises:
            Unreadable: no usable status, a provider_ref or an output that is not one.
        """
        record = self.record_of(answer, dialect)
        word = pick(dialect.status, record)
        status = self._status(word, dialect, http_status)
        if dialect.failed_if is not None and is_true(pick(dialect.failed_if, record)):
            status = UpdateStatus.FAILED
        found = read_outputs(record, dialect) if status is UpdateStatus.SUCCEEDED else NO_OUTPUTS
        failure = self._failure(status, record, dialect, found)
        message = pick(dialect.error_message, record)
        return ProviderUpdate(
            status=_status_with(failure, status),
            origin=origin,
            provider_ref=self.ref_of(record, dialect),
            upstream_status=self._redactor.excerpt(str(word))[:_WORD_CHARS] if _is_word(word) else "",
            outputs=found.pictures,
            failure=failure,
            percent=read_percent(pick(dialect.percent, record), dialect.percent_full),
            position=read_position(pick(dialect.position, record)),
            run_s=read_amount(pick(dialect.run_s, record)),
            cost=_cost(record, dialect),
            excerpt=self._redactor.excerpt(message) if isinstance(message, str) else "",
            links=_links(record, dialect),
        )

    def record_of(self, answer: Mapping[str, Any], dialect: Dialect) -> Mapping[str, Any]:
        """The record inside an answer; raises Unreadable where there is none."""
        whole = decoded(dict(answer), dialect.decode) if dialect.decode else answer
        record = whole if dialect.record is None else pick(dialect.record, whole)
        if not isinstance(record, Mapping):
            raise Unreadable("no_record")
        return record

    def ref_of(self, record: Mapping[str, Any], dialect: Dialect) -> str | None:
        """The record's provider_ref; None where it carries none."""
        value = pick(dialect.provider_ref, record)
        return None if value is None else read_ref(value)

    def reference_of(self, answer: Mapping[str, Any], dialect: Dialect) -> str | None:
        """Our own reference as the upstream echoes it."""
        return self.text_of(answer, dialect, dialect.reference)

    def text_of(self, answer: Mapping[str, Any], dialect: Dialect, place: Pick | None) -> str | None:
        """A text that the record carries; None where it carries none."""
        value = pick(place, self.record_of(answer, dialect))
        return value if isinstance(value, str) and value else None

    def _status(self, word: Any, dialect: Dialect, http_status: int | None) -> UpdateStatus:
        by_http = dialect.by_http(http_status)
        if by_http is not None:
            return by_http
        if word is None and dialect.status_if_absent is not None:
            return dialect.status_if_absent
        if not _is_word(word):
            raise Unreadable("no_status")
        known = {fold(spelling): status for spelling, status in dialect.statuses.items()}
        status = known.get(fold(str(word)))
        if status is not None:
            return status
        self.note_unknown(str(word))
        return UpdateStatus.RUNNING

    def note_unknown(self, word: str) -> None:
        """Count every time, log once an hour for a word: a stuck task repeats it at every look."""
        word = self._redactor.excerpt(word)[:_WORD_CHARS]
        UNKNOWN_STATUSES.labels(self._provider).inc()
        now = time.monotonic()
        if now - self._logged_at.get(word, -_SILENT_S) < _SILENT_S:
            return
        if len(self._logged_at) >= _REMEMBERED_WORDS:
            self._logged_at.clear()
        self._logged_at[word] = now
        log.warning("unknown_upstream_status", provider=self._provider, upstream_status=word)

    def _failure(
        self, status: UpdateStatus, record: Mapping[str, Any], dialect: Dialect, found: FoundOutputs
    ) -> Failure | None:
        """Why there are no pictures. A success without any has failed where the record says why."""
        if status is UpdateStatus.BLOCKED:
            return CONTENT_BLOCKED
        if status is UpdateStatus.FAILED:
            return self._by_rule(pick(dialect.error_code, record), record) or GENERATION_FAILED
        if status is not UpdateStatus.SUCCEEDED or found.pictures:
            return None
        if found.is_blocked:
            return CONTENT_BLOCKED
        reasons = [reason for code in found.error_codes if (reason := self._by_rule(code, record))]
        by_record = self._by_rule(pick(dialect.error_code, record), record)
        return by_record or _worst(reasons) or (GENERATION_FAILED if found.error_codes else None)

    def _by_rule(self, code: Any, record: Mapping[str, Any]) -> Failure | None:
        for rule in self._failures:
            if rule.fits(code if rule.path is None else pick(rule.path, record)):
                return Failure(rule.failure_class, rule.code)
        return None


@dataclass(frozen=True, slots=True)
class FoundOutputs:
    """What a finished record holds: its pictures, and why others are not there."""

    pictures: tuple[Output, ...] = ()
    error_codes: tuple[Any, ...] = ()
    is_blocked: bool = False


NO_OUTPUTS = FoundOutputs()


def read_outputs(record: Mapping[str, Any], dialect: Dialect) -> FoundOutputs:
    """The pictures of a finished record, all of them; raises Unreadable where one is not usable."""
    if dialect.outputs is None:
        return NO_OUTPUTS
    items = pick(dialect.outputs.items, record)
    pictures: list[Output] = []
    error_codes: list[Any] = []
    is_blocked = False
    for item in items if isinstance(items, list) else [] if items is None else [items]:
        url, text = pick(dialect.outputs.url, item), pick(dialect.outputs.base64, item)
        if dialect.outputs.blocked_if is not None and is_true(pick(dialect.outputs.blocked_if, item)):
            is_blocked = True
        elif url:
            pictures.append(_from_url(url))
        elif text:
            pictures.append(Output(data=decode_base64(text)))
        elif (code := pick(dialect.outputs.error_code, item)) is not None:
            error_codes.append(code)
    return FoundOutputs(tuple(pictures), tuple(error_codes), is_blocked)


def is_true(value: Any) -> bool:
    """Whether a condition holds: what it picks is there and neither empty, nor zero, nor false."""
    return bool(value)


def _is_word(word: Any) -> bool:
    """A status is a word, or a number that stands for one."""
    if isinstance(word, bool):
        return False
    return isinstance(word, int) or (isinstance(word, str) and bool(word.strip()))


def _status_with(failure: Failure | None, status: UpdateStatus) -> UpdateStatus:
    if failure is None:
        return status
    is_blocked = failure.failure_class is FailureClass.CONTENT_BLOCKED
    return UpdateStatus.BLOCKED if is_blocked else UpdateStatus.FAILED


def _worst(reasons: list[Failure]) -> Failure | None:
    """Of the reasons of several pictures the one that the customer can do most about."""
    order = (FailureClass.CONTENT_BLOCKED, FailureClass.INVALID_REQUEST, FailureClass.UPSTREAM_FAULT)
    return min(reasons, key=lambda reason: order.index(reason.failure_class), default=None)


def _cost(record: Mapping[str, Any], dialect: Dialect) -> float | None:
    """What the upstream keeps: charged less given back, never below zero."""
    charged = read_amount(pick(dialect.cost, record))
    given_back = read_amount(pick(dialect.refunded, record))
    return None if charged is None else max(0.0, charged - (given_back or 0.0))


def _links(record: Mapping[str, Any], dialect: Dialect) -> dict[str, str]:
    found = {name: pick(place, record) for name, place in dialect.links.items()}
    return {name: url for name, url in found.items() if isinstance(url, str) and len(url) <= _URL_CHARS}


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
