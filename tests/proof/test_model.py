"""The model at the size of every test run, and the plays that failed once."""

from __future__ import annotations

from pathlib import Path

import pytest

from safelight.domain.ids import new_id
from safelight.domain.task import State
from tests.proof import model, model_steps, model_truth
from tests.proof.model_steps import Step
from tests.proof.report import Size


async def test_verbs_in_any_order_keep_to_the_model_and_everything_comes_home() -> None:
    report = await model.run(Size.CI, seed=20)
    assert report.failures == []
    assert report.tried >= model.PLAYS[Size.CI]
    assert int(report.figures["steps"]) > report.tried


def test_a_step_is_read_as_it_was_written() -> None:
    steps = [
        Step("wait", {"seconds": -3600}),
        Step("dispatch", {"shape": "lab-sync", "fate": "lost_slow"}),
        Step("sweep", {}),
    ]
    assert [model_steps.parse(str(step)) for step in steps] == steps


def test_a_play_that_failed_is_kept_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_steps, "REGRESSIONS", tmp_path / "kept")
    steps = [Step("accept", {"shape": "lab-poll", "n": 2, "key": 0}), Step("archive", {"is_full": 1})]
    path = model_steps.keep("seed-7", steps, "the balance")
    assert path.read_text().splitlines()[0] == "# the balance"
    assert model_steps.read(path) == steps


def test_a_new_attempt_beside_a_living_one_is_seen() -> None:
    known = model_truth.Known(new_id(), "lab-poll", 1, State.RETRYING, number=1)
    witness = {known.reference: {"outcome": "done"}}
    fault = model_truth.judge(known, State.SUBMITTING, 2, witness, is_declined=False)
    assert fault == "made attempt 2 while the one before is done upstream"
