"""Which record of a list is an attempt's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from safelight.domain.provider import Origin, ProviderUpdate, UpdateStatus, UpstreamRecord
from safelight.domain.recognition import Owner, Recognition, Sight, Wanted, recognise

AT = datetime(2026, 11, 28, 12, tzinfo=UTC)
MINE = (UUID(int=1), 1)
WANTED = Wanted(MINE, "reference-1", "a red shoe", "photon-1")
ADDRESS = "https://ours.example/callbacks/luma/"


def read_token(token: str) -> Owner | None:
    return {"mine": MINE, "other": (UUID(int=2), 1)}.get(token)


def record(ref: str, **more: Any) -> UpstreamRecord:
    update = ProviderUpdate(UpdateStatus.RUNNING, Origin.RECONCILIATION, ref)
    return UpstreamRecord(ref, **{"reference": None, "created_at": AT, "update": update, **more})


def seen(*records: UpstreamRecord, is_complete: bool = True, **more: Any) -> Recognition:
    return recognise(records, WANTED, is_complete=is_complete, read_token=read_token, **more)


@pytest.mark.parametrize("is_complete", [True, False])
@pytest.mark.parametrize(
    "key", [{"reference": "reference-1"}, {"callback_url": f"{ADDRESS}mine"}], ids=["reference", "address"]
)
def test_an_exact_key_is_believed_whatever_else_there_is(key: dict[str, str], is_complete: bool) -> None:
    found = seen(
        record("a", prompt="a red shoe"), record("b", **key), is_complete=is_complete, has_rival=True
    )
    assert found.record is not None
    assert found.record.provider_ref == "b"


def test_of_two_records_under_one_key_the_first_is_taken() -> None:
    later = record("b", reference="reference-1", created_at=AT + timedelta(seconds=1))
    found = seen(later, record("a", reference="reference-1"))
    assert found.record is not None
    assert found.record.provider_ref == "a"


FITS = record("a", prompt="a red shoe", upstream_model="photon-1")


@pytest.mark.parametrize(
    ("records", "more", "sight"),
    [
        ([FITS], {}, Sight.FOUND),
        ([record("a", prompt="a red shoe")], {}, Sight.FOUND),
        ([FITS], {"is_complete": False}, Sight.UNCLEAR),
        ([FITS], {"has_rival": True}, Sight.UNCLEAR),
        ([FITS], {"taken": {"a"}}, Sight.ABSENT),
        ([FITS, record("b", prompt="a red shoe")], {}, Sight.UNCLEAR),
        ([FITS, record("b", prompt="a red shoe")], {"taken": {"b"}}, Sight.FOUND),
        ([FITS, record("b")], {}, Sight.UNCLEAR),
        ([record("a", prompt="a red shoe ")], {}, Sight.ABSENT),
        ([record("a", prompt="a red shoe", upstream_model="photon-2")], {}, Sight.ABSENT),
        ([record("a", prompt="a red shoe", callback_url=f"{ADDRESS}other")], {}, Sight.ABSENT),
        ([record("a", prompt="a red shoe", callback_url="https://theirs.example/x")], {}, Sight.ABSENT),
        ([record("a", prompt="a red shoe", reference="reference-2")], {}, Sight.ABSENT),
        ([], {}, Sight.ABSENT),
        ([], {"is_complete": False}, Sight.UNCLEAR),
    ],
)
def test_a_prompt_counts_only_if_it_is_unique_both_ways(
    records: list[UpstreamRecord], more: dict[str, Any], sight: Sight
) -> None:
    found = seen(*records, **more)
    assert found.sight is sight
    assert (found.record is not None) == (sight is Sight.FOUND)
