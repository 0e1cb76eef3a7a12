"""`safelight submit` and `tasks wait`: from the prompt to the file."""

from __future__ import annotations

import json
import os
import pty
import signal
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.client.fake_api import PICTURE, FakeApi


def test_a_submit_prints_the_id_and_ends(customer: Command, api: FakeApi) -> None:
    said = customer("submit", "a red shoe")
    assert (said.code, said.out, said.err) == (0, "task-1  processing  1 credit held\n", "")
    assert json.loads(api.bodies[0]) == {"operation": "generate", "prompt": "a red shoe", "n": 1}


def test_every_option_arrives_in_the_body(customer: Command, api: FakeApi) -> None:
    options = ["--options", '{"a": 1, "b": 2}', "--option", "b=3", "--option", 'lab={"fail": 1}']
    said = customer("submit", "shoe", "-n", "2", "--model", "lab-poll", "--size", "64x64", *options)
    assert said.code == 0
    body = json.loads(api.bodies[0])
    assert body["options"] == {"a": 1, "b": 3, "lab": {"fail": 1}}
    assert (body["n"], body["model"], body["size"]) == (2, "lab-poll", "64x64")


def test_pictures_are_uploaded_and_make_it_an_edit(customer: Command, api: FakeApi, tmp_path: Path) -> None:
    (tmp_path / "shoe.png").write_bytes(PICTURE)
    (tmp_path / "mask.png").write_bytes(b"a mask")
    url = "https://a.example.com/x.png"
    pictures = ["--image", str(tmp_path / "shoe.png"), "--image", url, "--mask", str(tmp_path / "mask.png")]
    assert customer("submit", "make it blue", *pictures).code == 0
    body = json.loads(api.bodies[0])
    assert (body["operation"], body["images"][1], len(body["images"])) == ("edit", url, 2)
    assert [data for _, data in api.uploaded] == [PICTURE, b"a mask"]


def test_a_picture_that_is_not_there_is_told_without_a_submit(
    customer: Command, api: FakeApi, tmp_path: Path
) -> None:
    said = customer("submit", "make it blue", "--image", str(tmp_path / "none.png"))
    assert (said.code, said.out, api.bodies) == (1, "", [])
    assert "none.png cannot be read: No such file" in said.err
    assert "--idempotency-key" not in said.err


def test_one_key_goes_with_every_try(customer: Command, api: FakeApi) -> None:
    api.submits = ["drop", 503, 429]
    assert customer("submit", "a red shoe", "--idempotency-key", "order-1001").code == 0
    assert api.keys == ["order-1001"] * 4


def test_a_picture_is_waited_for_and_saved(customer: Command, api: FakeApi, tmp_path: Path) -> None:
    api.looks = [api.processing("waiting"), api.processing(percent=50), {}]
    said = customer("submit", "a red shoe", "--wait", "-o", str(tmp_path / "shoe.png"))
    assert said.code == 0
    assert "task-1  ready  1 picture, 1 credit, 9.0 s" in said.out
    assert f"{tmp_path / 'shoe.png'}  64×64" in said.out
    assert said.err == ""
    assert (tmp_path / "shoe.png").read_bytes() == PICTURE


def test_naming_a_file_is_asking_to_wait(customer: Command, tmp_path: Path) -> None:
    (tmp_path / "shoe.png").write_bytes(b"an older picture")
    assert customer("submit", "a red shoe", "-o", str(tmp_path / "shoe.png")).code == 0
    assert (tmp_path / "shoe.png").read_bytes() == PICTURE


def test_several_pictures_are_numbered(customer: Command, api: FakeApi, tmp_path: Path) -> None:
    api.n = 3
    said = customer("submit", "a red shoe", "-n", "3", "-o", str(tmp_path / "my.red.shoe.png"))
    assert said.code == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["my.red.shoe-1.png", "my.red.shoe-2.png", "my.red.shoe-3.png"]


def test_some_of_several_pictures_are_told_as_such(customer: Command, api: FakeApi, tmp_path: Path) -> None:
    api.looks = [{"n": 3}]
    said = customer("submit", "a red shoe", "-n", "3", "-o", str(tmp_path / "shoe.png"))
    assert (said.code, "1 of 3 pictures" in said.out) == (0, True)
    assert [path.name for path in tmp_path.iterdir()] == ["shoe-1.png"]


def test_a_failed_task_is_exit_code_1_and_says_why(customer: Command, api: FakeApi) -> None:
    api.looks = [api.failed()]
    said = customer("submit", "a red shoe", "--wait")
    assert (said.code, said.out) == (1, "")
    assert said.err == "safelight: task task-1 failed: moderated: Change it.\n"


def test_json_is_all_that_is_printed_even_about_a_failure(customer: Command, api: FakeApi) -> None:
    assert customer("submit", "x", "--json").json["id"] == "task-1"
    assert customer("submit", "x", "--wait", "--json").json["assets"][0]["id"] == "asset-0"
    api.looks = [api.failed()]
    said = customer("submit", "x", "--wait", "--json")
    assert (said.code, said.err, said.json["failure"]["code"]) == (1, "", "moderated")


def test_a_refusal_is_one_line_with_its_code(customer: Command, api: FakeApi) -> None:
    api.submits = [422]
    said = customer("submit", "")
    assert (said.code, said.out) == (1, "")
    assert said.err == "safelight: told-so: As it was told. (request request-1)\n"


def test_a_submit_without_an_answer_says_how_to_find_out(
    customer: Command, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("safelight.client.pace.FIRST_GAP_S", 0.001)
    api.submits = ["drop"] * 50
    said = customer("submit", "a red shoe", "--idempotency-key", "order-1001")
    assert said.code == 1
    assert "Does `safelight serve` run?" in said.err
    assert "--idempotency-key order-1001" in said.err


def test_a_wrong_key_is_refused(customer: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFELIGHT_API_KEY", "sl_live_another")
    said = customer("submit", "a red shoe")
    assert (said.code, "unauthorized" in said.err) == (1, True)
    assert "sl_live_another" not in said.err


def test_the_address_comes_from_the_flag_before_the_data_directory(customer: Command, api: FakeApi) -> None:
    (customer.data_dir / "url").write_text("http://127.0.0.1:1\n")
    assert customer("submit", "a red shoe", "--url", api.url).code == 0


def test_an_interrupted_wait_shows_its_progress_and_says_how_to_resume(
    customer: Command, api: FakeApi
) -> None:
    api.looks = [api.processing(percent=40)]
    terminal, slave = pty.openpty()
    process = customer.start("submit", "a red shoe", "--wait", stderr=slave)
    os.close(slave)
    seen = _read_until(terminal, "40 %")
    assert "drawing" in seen
    process.send_signal(signal.SIGINT)
    after = _read_until(terminal, "tasks wait task-1")
    out, _ = process.communicate(timeout=300)
    os.close(terminal)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in after


def test_a_task_is_waited_for_again(customer: Command, api: FakeApi, tmp_path: Path) -> None:
    api.looks = [api.processing(), {}]
    said = customer("tasks", "wait", "task-1", "-o", str(tmp_path / "shoe.png"))
    assert (said.code, "ready" in said.out) == (0, True)
    assert (tmp_path / "shoe.png").read_bytes() == PICTURE


def _read_until(terminal: int, words: str) -> str:
    seen = ""
    while words not in seen:
        try:
            seen += os.read(terminal, 65_536).decode(errors="replace")
        except OSError:
            break
    assert words in seen, seen
    return seen
