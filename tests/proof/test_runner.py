"""The runner: what it says of layers that find something, break, are missing or try nothing."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.proof import __main__ as runner
from tests.proof import schema
from tests.proof.child import run_child
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


class Children:
    """Stands for the processes of the layers; knows which were begun and how many ran at a time."""

    def __init__(self, ends: dict[str, tuple[int, str]]) -> None:
        self._ends = ends
        self.begun: list[str] = []
        self.most = self._running = 0

    async def run(self, arguments: Sequence[str], *_: object, **__: object) -> tuple[int, str]:
        name = next(word for word in arguments if word.startswith("--only=")).removeprefix("--only=")
        self.begun.append(name)
        self._running += 1
        self.most = max(self.most, self._running)
        await asyncio.sleep(0.01)
        self._running -= 1
        report = asdict(LayerReport(name, 7, tried=3))
        return self._ends.get(name, (0, json.dumps({"layers": [{**report, "seconds": 0.1}]})))


def test_two_layers_run_at_a_time_the_longest_first_and_the_rows_stand_as_ever(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    children = Children({})
    monkeypatch.setattr(runner, "run_child", children.run)
    assert runner.main(["--seed", "7", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["layers"]
    assert [(row["layer"], row["tried"], row["seed"]) for row in rows] == [
        (name, 3, 7) for name in runner.LAYERS
    ]
    assert children.most == 2
    assert set(children.begun[:2]) == set(runner.LONG)
    assert sorted(children.begun) == sorted(runner.LAYERS)


@pytest.mark.parametrize("end", [(-9, ""), (1, "Traceback"), (0, '{"layers": []}'), (0, '{"layers": [{}]}')])
def test_a_layer_whose_process_ends_without_a_report_has_failed_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], end: tuple[int, str]
) -> None:
    monkeypatch.setattr(runner, "run_child", Children({"races": end}).run)
    assert runner.main(["--only", "model,races,kills", "--seed", "7", "--json"]) == 1
    rows = json.loads(capsys.readouterr().out)["layers"]
    assert [(row["layer"], row["tried"], len(row["failures"])) for row in rows] == [
        ("model", 3, 0),
        ("races", 0, 1),
        ("kills", 3, 0),
    ]
    assert f"ended with {end[0]} and without a report" in rows[1]["failures"][0]


async def test_a_layer_in_a_process_of_its_own_tells_what_it_tried() -> None:
    (row,) = await runner.run_apart(["pictures"], Size.CI, 7)
    assert row.report.failures == []
    assert (row.report.layer, row.report.seed) == ("pictures", 7)
    assert row.report.tried >= 700
    assert row.report.figures


async def test_an_interrupted_run_waits_until_every_child_has_said_goodbye(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun, gone = [], []

    async def child(arguments: Sequence[str], *_: object, **__: object) -> tuple[int, str]:
        begun.append(arguments)
        goodbye_s = 0.05 * len(begun)
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(goodbye_s)
            gone.append(arguments)
        raise AssertionError("nobody interrupted it")

    monkeypatch.setattr(runner, "run_child", child)
    running = asyncio.create_task(runner.run_apart(["model", "races", "kills"], Size.CI, 7))
    while len(begun) < 2:  # noqa: ASYNC110 - counted where no event reaches
        await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert gone == begun
    assert len(gone) == 2


async def test_a_child_that_hangs_is_interrupted_and_not_left_behind(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = (
        f"import os, pathlib, time; pathlib.Path({str(note)!r}).write_text(str(os.getpid())); time.sleep(600)"
    )
    with pytest.raises(TimeoutError):
        await run_child(["-c", code], os.environ, timeout_s=5.0, stderr=asyncio.subprocess.DEVNULL)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_tests_of_the_database_are_counted_and_those_that_fail_or_are_left_out_named() -> None:
    report = LayerReport("schema", 1)
    schema.read_results(
        report,
        "<testsuites><testsuite><testcase classname='a' name='good'/>"
        "<testcase classname='a' name='bad'><failure/></testcase>"
        "<testcase classname='a' name='left'><skipped/></testcase></testsuite></testsuites>",
    )
    assert (report.tried, report.failures) == (3, ["a::bad", "a::left"])
