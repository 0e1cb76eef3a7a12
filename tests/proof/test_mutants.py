"""The mutants of the day are caught; every one of them still fits the code."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE
from tests.proof.mutants import MUTANTS, copied, run, share_of
from tests.proof.mutants_form import Edit, Mutant
from tests.proof.report import Size


async def test_the_mutants_of_the_day_are_caught() -> None:
    report = await run(Size.CI, 1)
    assert report.failures == []
    assert report.tried == len(share_of(datetime.now(UTC)))


@pytest.mark.parametrize("mutant", MUTANTS, ids=[mutant.name for mutant in MUTANTS])
def test_a_mutant_fits_the_code_as_it_is(mutant: Mutant) -> None:
    for edit in mutant.edits:
        assert (PACKAGE / edit.file).read_text().count(edit.old) == 1, edit.file


def test_there_are_as_many_mutants_as_promised() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 25


def test_an_edit_that_does_not_fit_is_told(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="0 times"):
        copied(tmp_path, (Edit("errors.py", "what nobody wrote", ""),))


def test_every_mutant_has_its_day() -> None:
    days = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(days=day) for day in range(len(MUTANTS))]
    assert {mutant.name for day in days for mutant in share_of(day)} == {mutant.name for mutant in MUTANTS}
