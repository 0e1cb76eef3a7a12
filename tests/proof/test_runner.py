"""The runner: what it says of layers that find something, break, are missing or try nothing."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from tests.proof import __main__ as runner
from tests.proof import schema
from tests.proof.report import LayerReport, Size


def layer(**told: Any) -> Any:
    async def run(size: Size, seed: int) -> LayerReport:
        return LayerReport("model", seed, **told)

    return run


async def broken(size: Size, seed: int) -> LayerReport:
    raise ValueError("the layer's own fault")


@pytest.fixture
def build(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Puts a layer in the place of the one that would be loaded."""

    def place(made: Any) -> None:
        monkeypatch.setattr(runner, "import_module", lambda _: SimpleNamespace(run=made))

    return place


def test_a_good_layer_ends_with_zero_and_its_seed_in_the_table(build: Any, capsys: Any) -> None:
    build(layer(tried=3, figures={"steps": 40}))
    assert runner.main(["--only", "model", "--seed", "7"]) == 0
    out = capsys.readouterr().out
    assert "steps 40" in out
    assert out.splitlines()[1].split()[-1] == "7"


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (layer(tried=3, failures=["seed 7: a credit too many"]), "a credit too many"),
        (layer(), "nothing was tried"),
        (broken, "the layer's own fault"),
    ],
    ids=["it found something", "it tried nothing", "it broke"],
)
def test_a_layer_that_is_not_good_ends_with_one(build: Any, capsys: Any, made: Any, words: str) -> None:
    build(made)
    assert runner.main(["--only", "model", "--seed", "7"]) == 1
    assert words in capsys.readouterr().out


def test_a_layer_that_nobody_has_built_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "find_spec", lambda _: None)
    assert runner.main(["--only", "growth"]) == 1
    assert "there is no layer tests/proof/growth.py" in capsys.readouterr().out


def test_the_document_for_programs_has_every_row(build: Any, capsys: Any) -> None:
    build(layer(tried=3))
    assert runner.main(["--only", "model,races", "--seed", "7", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["layers"]
    assert [(row["tried"], row["seed"]) for row in rows] == [(3, 7), (3, 7)]


def test_tests_of_the_database_are_counted_and_those_that_fail_or_are_left_out_named() -> None:
    report = LayerReport("schema", 1)
    schema.read_results(
        report,
        "<testsuites><testsuite><testcase classname='a' name='good'/>"
        "<testcase classname='a' name='bad'><failure/></testcase>"
        "<testcase classname='a' name='left'><skipped/></testcase></testsuite></testsuites>",
    )
    assert (report.tried, report.failures) == (3, ["a::bad", "a::left"])
