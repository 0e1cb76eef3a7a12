"""One fault at every named point at the size of every test run."""

from __future__ import annotations

import random

from tests.proof import faults, faults_scenes
from tests.proof.faults_victim import Kind, Scene
from tests.proof.report import Size


async def test_after_a_fault_at_any_named_point_the_others_bring_everything_home() -> None:
    report = await faults.run(Size.CI, seed=20)
    assert report.failures == []
    assert report.figures["reached"] == report.figures["points"]
    assert report.tried == len(faults_scenes.SCENES) + len(faults.points())


def test_every_point_meets_every_kind_of_fault_in_the_proof() -> None:
    reached: dict[Scene, list[str]] = {
        faults_scenes.called_back: ["before_send", "after_send"],
        faults_scenes.polled: ["before_send"],
    }
    met = {
        (case.fault.point, case.fault.kind) for case in faults.cases(reached, Size.PROVE, random.Random(1))
    }
    assert met == {(name, kind) for name in ("before_send", "after_send") for kind in Kind}


def test_a_release_tries_all_ordered_pairs_of_points() -> None:
    reached: dict[Scene, list[str]] = {faults_scenes.called_back: ["before_send", "after_send"]}
    found = faults.cases(reached, Size.RELEASE, random.Random(1))
    pairs = {(case.fault.point, case.second.point) for case in found if case.second}
    assert len(pairs) == 4


def test_fault_points_are_found_by_their_names() -> None:
    assert {"before_send", "after_send", "before_settle_commit", "after_settle_commit"} <= faults.points()
