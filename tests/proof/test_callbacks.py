"""Two thousand bad callbacks of every kind, at every kind of proof."""

from __future__ import annotations

from tests.proof.callbacks import SIZES, run
from tests.proof.callbacks_forged import KINDS
from tests.proof.report import Size


async def test_no_bad_callback_changes_a_row_or_is_an_error_of_ours() -> None:
    report = await run(Size.CI, 1)
    assert report.failures == []
    assert report.tried >= SIZES[Size.CI] >= 2_000
    assert report.figures["kinds"] == f"{len(KINDS)} of {len(KINDS)}", (
        "a kind that was never sent proves nothing"
    )
