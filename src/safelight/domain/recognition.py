"""Which record of a provider's list is an attempt's: by an exact key, else by a prompt that is unique both ways."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID

from safelight.domain.provider import UpstreamRecord

Owner = tuple[UUID, int]
"""A task and the number of its attempt."""
TokenReader = Callable[[str], Owner | None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """The attempt that is looked for."""

    owner: Owner
    reference: str
    prompt: str
    upstream_model: str


class Sight(StrEnum):
    """What a list says about an attempt."""

    FOUND = "found"
    ABSENT = "absent"
    """Every record of a complete list is certainly another's."""
    UNCLEAR = "unclear"
    """It proves nothing: several records could be it, or the list is not complete."""


@dataclass(frozen=True, slots=True)
class Recognition:
    """The verdict; `record` is there if it was found."""

    sight: Sight
    record: UpstreamRecord | None = None


UNCLEAR = Recognition(Sight.UNCLEAR)


def recognise(
    records: Sequence[UpstreamRecord],
    wanted: Wanted,
    *,
    is_complete: bool,
    read_token: TokenReader,
    taken: Collection[str] = (),
    has_rival: bool = False,
) -> Recognition:
    """Find an attempt among the records of the time when it was sent.

    `taken` are provider_refs of other attempts; `has_rival` says that another attempt, whose record is not known
    either, was sent with the same prompt at about the same time.
    """
    exact = [record for record in records if _is_its_own(record, wanted, read_token)]
    if exact:
        # Two with one key are both ours; the first is taken, and reconciliation finds the other.
        return Recognition(Sight.FOUND, min(exact, key=lambda record: record.created_at))
    if not is_complete:
        return UNCLEAR
    nameless = [record for record in records if record.provider_ref not in taken and not _is_named(record)]
    if any(record.prompt is None for record in nameless):
        return UNCLEAR
    fitting = [record for record in nameless if _fits(record, wanted)]
    if not fitting:
        return Recognition(Sight.ABSENT)
    return Recognition(Sight.FOUND, fitting[0]) if len(fitting) == 1 and not has_rival else UNCLEAR


def owner_by_token(record: UpstreamRecord, read_token: TokenReader) -> Owner | None:
    """The attempt that the record's callback address names; None where it carries none of ours."""
    return read_token(record.callback_url.rpartition("/")[2]) if record.callback_url else None


def _is_its_own(record: UpstreamRecord, wanted: Wanted, read_token: TokenReader) -> bool:
    return record.reference == wanted.reference or owner_by_token(record, read_token) == wanted.owner


def _is_named(record: UpstreamRecord) -> bool:
    return record.reference is not None or record.callback_url is not None


def _fits(record: UpstreamRecord, wanted: Wanted) -> bool:
    return record.prompt == wanted.prompt and record.upstream_model in (None, wanted.upstream_model)
