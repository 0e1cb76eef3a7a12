"""`safelight tasks` and the read-only side of `credits`: what customers see."""

from __future__ import annotations

import pytest

from tests.cli.command import Command
from tests.client.fake_api import FakeApi


def test_a_list_goes_on_over_pages_until_it_is_long_enough(customer: Command, api: FakeApi) -> None:
    said = customer("tasks", "list", "--status", "ready")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()[2:]] == ["task-1", "task-2"]
    assert [query for _, _, query in api.heard] == [
        {"status": "ready", "limit": "20"},
        {"status": "ready", "limit": "19", "cursor": "more"},
    ]


def test_a_prompt_cannot_steer_the_terminal(customer: Command) -> None:
    assert "\x1b" not in customer("tasks", "list").out


def test_a_list_as_json_can_be_gone_on_with(customer: Command) -> None:
    listed = customer("tasks", "list", "--json", "--limit", "1").json
    assert [task["id"] for task in listed["data"]] == ["task-1"]
    assert listed["next_cursor"] == "more"


def test_a_task_is_shown_with_its_public_timeline(customer: Command, api: FakeApi) -> None:
    stages = [
        {"stage": "waiting", "at": "2026-01-01T12:00:00Z"},
        {"stage": "drawing", "at": "2026-01-01T12:00:02Z"},
    ]
    api.looks = [{"timeline": stages}]
    said = customer("tasks", "show", "task-1")
    assert said.code == 0
    assert "prompt    a red shoe" in said.out
    assert [line.split() for line in said.out.splitlines()[-2:]] == [
        ["+0.000", "s", "waiting"],
        ["+2.000", "s", "drawing"],
    ]


def test_a_task_without_stages_is_shown_with_beginning_and_end(customer: Command) -> None:
    lines = customer("tasks", "show", "task-1").out.splitlines()
    assert [line.split()[-1] for line in lines[-2:]] == ["accepted", "ready"]


def test_a_task_as_json_is_the_answer_of_the_service(customer: Command, api: FakeApi) -> None:
    assert customer("tasks", "show", "task-1", "--json").json == api.task()


@pytest.mark.parametrize(
    "words", [["show", "task-9"], ["show", "../x"], ["cancel", "task-9"], ["wait", "task-9"]]
)
def test_a_task_that_is_not_there_is_one_line(customer: Command, words: list[str]) -> None:
    said = customer("tasks", *words)
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("safelight: not-found: ")
    assert len(said.err.splitlines()) == 1


def test_a_cancel_says_what_became_of_it(customer: Command, api: FakeApi) -> None:
    api.looks = [api.processing()]
    assert customer("tasks", "cancel", "task-1").out == "task-1  processing  cancel requested\n"
    api.submits = [409]
    said = customer("tasks", "cancel", "task-1")
    assert (said.code, "not-cancelable" in said.err) == (1, True)


def test_an_erasure_says_so(customer: Command, api: FakeApi) -> None:
    assert customer("tasks", "erase", "task-1").out == "task-1  ready  erased\n"
    assert customer("tasks", "erase", "task-1", "--json").json["prompt"] == ""
    api.submits = [409]
    said = customer("tasks", "erase", "task-1")
    assert (said.code, "not-erasable" in said.err) == (1, True)


def test_balance_and_entries_are_printed(customer: Command) -> None:
    assert customer("credits", "balance").out == "990 available, 10 held\n"
    assert customer("credits", "balance", "--json").json == {"available": 990, "held": 10}
    assert "2026-01-01 12:00:00Z   grant   1000" in customer("credits", "entries").out
    assert customer("credits", "entries", "--json").json["data"][0]["note"] == "hello"
