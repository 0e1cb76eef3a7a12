"""Hostile pictures in a process of little memory, and hostile names."""

from __future__ import annotations

from itertools import islice

from tests.proof.pictures import run
from tests.proof.pictures_corpus import KINDS, names, samples
from tests.proof.report import Size


def test_a_seed_makes_the_same_pictures_and_names_again() -> None:
    count = 3 * len(KINDS)
    assert [one.data for one in islice(samples(7), count)] == [one.data for one in islice(samples(7), count)]
    assert list(islice(names(7), 500)) == list(islice(names(7), 500))


async def test_no_hostile_picture_or_name_gets_further_than_its_refusal() -> None:
    report = await run(Size.CI, 1)
    assert report.failures == []
    assert report.tried >= 500
