"""Says what each answer of an upstream means: news, a definite no, or nothing that can be used."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import structlog

from safelight.domain.provider import (
    AttemptRef,
    Origin,
    ProviderUpdate,
    RecordPage,
    Submission,
    UpdateStatus,
    UpstreamRecord,
)
from safelight.errors import CallbackRejected
from safelight.providers.answers import AnswerReader
from safelight.providers.declaration import Call, Declaration, Listing, LookUp, Phase, Submit
from safelight.providers.dialect import Dialect
from safelight.providers.documents import Unreadable, parse_object, pick, read_time
from safelight.providers.exchange import Answered
from safelight.providers.failures import ErrorReader, Judgement
from safelight.providers.redaction import Redactor

log = structlog.get_logger()


class Interpreter:
    """Reads the answers and callbacks of one provider; it sends nothing and keeps nothing of a task."""

    def __init__(self, declaration: Declaration, redactor: Redactor, *, name: str) -> None:
        self._name = name
        self._declaration = declaration
        self.errors = ErrorReader(name, declaration.errors, redactor)
        self.reader = AnswerReader(name, declaration.failures, redactor)

    def submitted(self, call: Submit, answer: Answered, submission: Submission) -> ProviderUpdate:
        """What an answered submit says; raises the three errors of `Provider.submit`."""
        address = submission.callback_url
        token = urlsplit(address).path.rpartition("/")[2] if address else None
        try:
            document = self._document("submit", call, answer)
            if document is None:
                raise self.errors.submit_error(answer, address, token)
            dialect = self._submit_dialect(call)
            update = self.reader.read(document, dialect, Origin.ANSWER, http_status=answer.status)
            self._check_echo(document, dialect, submission.reference)
            self._check_use(update)
        except Unreadable as error:
            raise self.errors.unreadable_submit(error.reason, answer, address, token) from None
        self._tell_if_bare(update, document)
        return update

    def own_record(self, phase: Phase, call: Call, answer: Answered, attempt: AttemptRef) -> ProviderUpdate:
        """What the answer says about this attempt; raises ProviderError."""
        dialect = self._dialect(call)
        judged = self.errors.judge(phase, answer)
        if judged is not None and judged.ends_task:
            return self._ended(judged, answer)
        try:
            document = self._document(phase, call, answer)
            if document is None:
                raise self.errors.call_error(phase, answer)
            update = self.reader.read(document, dialect, Origin.POLL, http_status=answer.status)
            self._check_echo(document, dialect, attempt.reference)
            if update.provider_ref not in (None, attempt.provider_ref):
                raise Unreadable("another_record")
        except Unreadable as error:
            raise self.errors.unreadable_call(phase, error.reason, answer) from None
        if phase != "poll" or self._declaration.result is None:
            self._tell_if_bare(update, document)
        return update

    def _ended(self, judged: Judgement, answer: Answered) -> ProviderUpdate:
        """An error answer in which the upstream says that the attempt itself has failed."""
        is_blocked = judged.outcome == "content_blocked"
        return ProviderUpdate(
            status=UpdateStatus.BLOCKED if is_blocked else UpdateStatus.FAILED,
            origin=Origin.POLL,
            upstream_status=f"http_{answer.status}",
            failure=judged.failure,
            excerpt=self.errors.excerpt(answer),
        )

    def found(self, call: LookUp, answer: Answered, attempt: AttemptRef) -> ProviderUpdate | None:
        """The attempt's record among those answered; None where it is not; raises ProviderError."""
        judged = self.errors.judge("look_up", answer)
        if judged is not None and judged.outcome == "not_found":
            return None
        dialect = self._dialect(call)
        try:
            records = self._records("look_up", call, call.records, answer)
            # An upstream that does not know the filter answers with strangers.
            own = [one for one in records if self.reader.reference_of(one, dialect) == attempt.reference]
            if not own:
                return None
            update = self.reader.read(own[0], dialect, Origin.LOOK_UP)
            if update.provider_ref is None:
                raise Unreadable("bad_provider_ref")
        except Unreadable as error:
            raise self.errors.unreadable_call("look_up", error.reason, answer) from None
        if len(own) > 1:
            log.warning("reference_found_twice", provider=self._name, reference=attempt.reference)
        return update

    def canceled(self, call: Call, answer: Answered, attempt: AttemptRef) -> bool:
        """Whether the upstream confirms a cancel; raises ProviderError where it says neither."""
        if answer.status not in call.accepted and self.errors.is_definite_no("cancel", answer):
            return False
        return self.own_record("cancel", call, answer, attempt).status is UpdateStatus.CANCELED

    def page(self, call: Listing, answer: Answered, since: datetime, cursor: str | None) -> RecordPage:
        """One page of records; one unreadable record spoils it, since a gap would look like a loss."""
        dialect = self._dialect(call)
        try:
            records = self._records("list", call, call.records, answer)
            lines = tuple(self._line(record, dialect) for record in records)
            following = _following(call, parse_object(answer.body, takes_list=True), len(records), cursor)
        except Unreadable as error:
            raise self.errors.unreadable_call("list", error.reason, answer) from None
        if call.newest_first and lines and lines[-1].created_at < since:
            following = None
        return RecordPage(lines, following)

    def notice(self, raw: bytes) -> ProviderUpdate:
        """A verified callback. One that is genuine but unusable is a hint: the next look decides.

        Raises:
            CallbackRejected: it is not a JSON object (status 400).
        """
        try:
            document = parse_object(raw)
        except Unreadable as error:
            if error.reason != "duplicate_keys":
                raise CallbackRejected(error.reason, status=400) from None
            return self._unusable(error.reason, ())
        try:
            update = self.reader.read(document, self._callback_dialect(), Origin.CALLBACK)
        except Unreadable as error:
            return self._unusable(error.reason, document)
        self._tell_if_bare(update, document)
        return update

    def _unusable(self, reason: str, document: Mapping[str, Any] | tuple[()]) -> ProviderUpdate:
        log.warning("callback_unusable", provider=self._name, reason=reason, keys=_names(document))
        return ProviderUpdate(status=UpdateStatus.HINT, origin=Origin.CALLBACK)

    def _tell_if_bare(self, update: ProviderUpdate, document: Mapping[str, Any]) -> None:
        """A success without a picture and without a reason may have them where the declaration does not look."""
        if update.status is UpdateStatus.SUCCEEDED and not update.outputs:
            log.warning("success_without_pictures", provider=self._name, keys=_names(document))

    def _document(self, phase: Phase, call: Call, answer: Answered) -> dict[str, Any] | None:
        """The answer's JSON; None where the call did not succeed; raises Unreadable."""
        if answer.status not in call.accepted or self.errors.judge(phase, answer) is not None:
            return None
        is_bare = not answer.body and call.success_if is None
        if is_bare and self._dialect(call).by_http(answer.status) is not None:
            return {}  # a 204: its status has said everything
        document = parse_object(answer.body, takes_list=True)
        return document if call.success_if is None or pick(call.success_if, document) else None

    def _records(self, phase: Phase, call: Call, place: str, answer: Answered) -> list[Mapping[str, Any]]:
        document = self._document(phase, call, answer)
        if document is None:
            raise self.errors.call_error(phase, answer)
        records = pick(place, document)
        if not isinstance(records, list) or not all(isinstance(record, Mapping) for record in records):
            raise Unreadable("no_records")
        return records

    def _line(self, record: Mapping[str, Any], dialect: Dialect) -> UpstreamRecord:
        update = self.reader.read(record, dialect, Origin.RECONCILIATION)
        if update.provider_ref is None:
            raise Unreadable("bad_provider_ref")
        inner = self.reader.record_of(record, dialect)
        return UpstreamRecord(
            provider_ref=update.provider_ref,
            reference=self.reader.reference_of(record, dialect),
            created_at=read_time(pick(dialect.created_at, inner), dialect.created_at_format),
            update=update,
            prompt=self.reader.text_of(record, dialect, dialect.prompt),
            upstream_model=self.reader.text_of(record, dialect, dialect.model),
            callback_url=self.reader.text_of(record, dialect, dialect.callback_url),
        )

    def _check_echo(self, document: Mapping[str, Any], dialect: Dialect, reference: str) -> None:
        """A cache or a proxy may hand us the answer to somebody else's call."""
        if self.reader.reference_of(document, dialect) not in (None, reference):
            raise Unreadable("another_record")

    def _check_use(self, update: ProviderUpdate) -> None:
        """Refuse an acceptance that could never be followed up."""
        is_open = update.status in (UpdateStatus.QUEUED, UpdateStatus.RUNNING)
        if self._declaration.is_synchronous and is_open:
            raise Unreadable("unfinished")
        if not self._declaration.is_synchronous and update.provider_ref is None:
            raise Unreadable("bad_provider_ref")

    def _dialect(self, call: Call) -> Dialect:
        return self._declaration.answer.overridden_by(call.answer)

    def _submit_dialect(self, call: Submit) -> Dialect:
        """An asynchronous upstream may accept without a word about the state: then it is in its line."""
        dialect = self._dialect(call)
        if self._declaration.is_synchronous or dialect.status_if_absent is not None:
            return dialect
        return dialect.model_copy(update={"status_if_absent": UpdateStatus.QUEUED})

    def _callback_dialect(self) -> Dialect:
        poll, callback = self._declaration.poll, self._declaration.callback
        dialect = self._declaration.answer.overridden_by(poll.answer if poll else None)
        dialect = dialect.model_copy(update={"statuses_by_http": ()})  # a callback has no status of its own
        return dialect.overridden_by(callback.answer if callback else None)


def _names(document: Mapping[str, Any] | tuple[()]) -> list[str]:
    """The names of some members, for a log line: never their values."""
    return [name[:64] for name in sorted(document)[:20] if name.isidentifier()]


def _following(call: Listing, document: Mapping[str, Any], count: int, cursor: str | None) -> str | None:
    """Where the next page begins; None after the last one."""
    if call.paging == "cursor":
        following = pick(call.next_cursor, document)
        return None if following in (None, "", False) else _read_cursor(following, call.next_parameter)
    has_more = bool(pick(call.has_more, document)) if call.has_more else count >= call.limit
    if not has_more or not count:
        return None
    is_page = call.paging == "page"
    return str(int(cursor or (call.first_page if is_page else 0)) + (1 if is_page else count))


def _read_cursor(value: Any, parameter: str | None) -> str:
    if parameter is not None:
        named = parse_qs(urlsplit(value).query).get(parameter) if isinstance(value, str) else None
        value = named[0] if named else None
    if isinstance(value, bool) or not isinstance(value, str | int) or len(str(value)) > 1_024:
        raise Unreadable("bad_cursor")
    return str(value)
