"""Requests made from our own document."""

from __future__ import annotations

from tests.proof.openapi import run
from tests.proof.report import Size


async def test_no_request_of_our_document_is_an_error_of_ours_or_answered_otherwise_than_described() -> None:
    report = await run(Size.CI, 1)
    assert report.failures == []
    assert report.tried >= 200
    assert 0 < int(report.figures["refused"]) < report.tried
