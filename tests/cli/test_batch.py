"""`safelight batch`: files of items, and what of them is refused before anything is sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from safelight.cli.batchitems import Pattern, file_name, fill, read_items
from tests.cli.command import Command

LAMPS = 'sku,colour\nL1,"red, dark"\nL2,grün\n'


def written(folder: Path, text: str, name: str = "items.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_row_is_an_item_and_its_columns_are_variables(data_dir: Path) -> None:
    path = written(data_dir, "\ufeff" + LAMPS)
    items = read_items(path, Pattern("a {{ colour }} lamp ({{sku}})", {"size": "64x64"}))
    assert [item["prompt"] for item in items] == ["a red, dark lamp (L1)", "a grün lamp (L2)"]
    assert items[0] == {
        "size": "64x64",
        "prompt": "a red, dark lamp (L1)",
        "metadata": {"row": {"sku": "L1", "colour": "red, dark"}},
    }


def test_lines_of_json_are_tasks_as_they_are_or_rows_for_a_prompt(data_dir: Path) -> None:
    path = written(data_dir, '{"prompt": "x", "n": 2}\n\n{"prompt": "y"}\n', "items.jsonl")
    assert read_items(path, Pattern()) == [{"prompt": "x", "n": 2}, {"prompt": "y"}]
    assert [item["prompt"] for item in read_items(path, Pattern("more {{prompt}}"))] == ["more x", "more y"]


@pytest.mark.parametrize(
    ("text", "name", "prompt", "words"),
    [
        (LAMPS, "items.csv", "a {{size}} lamp", "line 2: there is no 'size', only sku, colour"),
        (LAMPS, "items.csv", None, "line 2: there is no 'prompt'"),
        ("sku,colour\nL1\n", "items.csv", "{{sku}}", "line 2: as many fields as columns"),
        ("sku,colour\nL1,a,b\n", "items.csv", "{{sku}}", "line 2: as many fields as columns"),
        ("sku\n", "items.csv", "{{sku}}", "has no items"),
        ("", "items.jsonl", None, "has no items"),
        ("{}\nno\n", "items.jsonl", "x", "line 2 is not JSON"),
        ("[]\n", "items.jsonl", "x", "line 1 is no object"),
        ("a\n" + "b\n" * 10_001, "items.csv", "{{a}}", "has 10001 items"),
    ],
)
def test_a_file_that_does_not_fit_is_told_with_its_line(
    data_dir: Path, capsys: pytest.CaptureFixture[str], text: str, name: str, prompt: str | None, words: str
) -> None:
    with pytest.raises(typer.Exit) as ended:
        read_items(written(data_dir, text, name), Pattern(prompt))
    assert ended.value.exit_code == 2
    assert words in capsys.readouterr().err


def test_a_file_name_holds_nothing_that_leads_elsewhere() -> None:
    row = {"sku": "../../etc/passwd", "name": "Schuh Größe 42", "empty": "///"}
    assert file_name("{{sku}}", row, 0) == "etc-passwd"
    assert file_name("{{name}}", row, 0) == "Schuh-Größe-42"
    assert file_name("{{empty}}", row, 6) == "00007"
    assert file_name(None, row, 6) == "00007"
    assert fill("{{sku}}{{sku}}", {"sku": "{{sku}}"}, "") == "{{sku}}{{sku}}"


def test_a_folder_of_another_batch_is_left_alone(customer: Command, data_dir: Path) -> None:
    path = written(data_dir, LAMPS)
    folder = data_dir / "out"
    folder.mkdir()
    (folder / "batch.json").write_text(json.dumps({"key": "k", "digest": "other", "id": "b-1", "name": None}))
    said = customer("batch", "run", str(path), "--prompt", "{{sku}}", "--out", str(folder))
    assert (said.code, said.out) == (2, "")
    assert "belongs to another batch" in said.err
    said = customer("batch", "resume", "b-2", "--out", str(folder))
    assert said.code == 2
    assert "belongs to batch b-1" in said.err
