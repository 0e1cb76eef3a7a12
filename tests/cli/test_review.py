"""Commands of whoever decides: reviews, the audit log, and keys of operators, on a real database."""

from __future__ import annotations

import asyncio
import getpass
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from safelight.db import admin, tasks
from safelight.db.database import Database
from safelight.domain.keys import ADMIN_PREFIX, ID_LENGTH, parse_key
from tests.cli.books import png
from tests.cli.command import Command
from tests.cli.conftest import opened
from tests.cli.test_operator import falsify

ME = f"os:{getpass.getuser()}"


def ask(url: str, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    """Rows of the command's database."""

    async def work() -> list[tuple[Any, ...]]:
        async with opened(url) as database, database.connection() as connection:
            return [tuple(row) for row in await connection.fetch(sql, *values)]

    return asyncio.run(work())


@pytest.fixture
def waiting(operator: Command, books_url: str) -> str:
    """A task in review, its submit uncertain."""
    assert operator.books is not None
    task_id = operator.books.submitting

    async def work() -> None:
        async with opened(books_url) as database, database.transaction() as connection:
            move = {
                "id": task_id,
                "version": 2,
                "source": "submitting",
                "target": "uncertain",
                "cause": "test",
            }
            await tasks.move(connection, [{**move, "wake_in_s": 60.0}])
            review = {**move, "version": 3, "source": "uncertain", "target": "review", "wake_in_s": 600.0}
            await tasks.move(
                connection, [{**review, "review_reason": "submit_uncertain", "decide_in_s": 3_600.0}]
            )

    asyncio.run(work())
    return str(task_id)


def test_what_waits_is_listed_with_its_reason_and_shown_whole(operator: Command, waiting: str) -> None:
    (listed,) = operator("review", "list", "--json").json["data"]
    assert (listed["id"], listed["version"], listed["review_reason"]) == (waiting, 4, "submit_uncertain")
    assert waiting in operator("review", "list").out
    assert operator("review", "list", "--reason", "deadline", "--json").json["data"] == []
    assert operator("review", "list", "--provider", "fal", "--json").json["data"] == []
    said = operator("review", "show", waiting)
    assert said.code == 0
    for words in ("state          review", "submit_uncertain", "attempts", "events", "entries"):
        assert words in said.out, words
    shown = operator("review", "show", waiting, "--json").json
    assert [event["target"] for event in shown["events"]] == ["queued", "submitting", "uncertain", "review"]


@pytest.mark.parametrize(
    ("words", "decision", "state", "reason_code"),
    [
        (["check-again"], "check_again", "review", ""),
        (
            ["resubmit", "--reason", "proved_absent", "--note", "not in today's list"],
            "resubmit",
            "retrying",
            "proved_absent",
        ),
        (["fail"], "fail_and_release", "failed", "operator_decision"),
        (["fail", "--reason", "no_result"], "fail_and_release", "failed", "no_result"),
    ],
)
def test_a_decision_is_carried_out_and_names_the_os_user(
    operator: Command,
    waiting: str,
    books_url: str,
    words: list[str],
    decision: str,
    state: str,
    reason_code: str,
) -> None:
    name, *rest = words
    said = operator("review", name, waiting, *rest)
    assert (said.code, said.out) == (0, f"{waiting}  {decision}: {state}\n"), said.err
    assert ask(books_url, "SELECT state FROM tasks WHERE id = $1", UUID(waiting)) == [(state,)]
    made = ask(books_url, "SELECT decision, reason_code, decided_by, version FROM decisions")
    assert made == [(decision, reason_code, ME, 4)]
    lines = ask(books_url, "SELECT actor, action, object FROM audit_lines")
    assert lines == [(ME, f"review.{decision}", f"task:{waiting}")]
    assert operator("doctor", "--no-bytes").code == 0


def test_files_are_attached_and_wait_to_be_archived(
    operator: Command, waiting: str, books_url: str, tmp_path: Path
) -> None:
    for number in (1, 2):
        (tmp_path / f"{number}.png").write_bytes(png(8 + number))
    said = operator("review", "attach", waiting, str(tmp_path / "1.png"), str(tmp_path / "2.png"), "--json")
    assert (said.code, said.json["state"]) == (0, "archiving"), said.err
    ((outputs,),) = ask(books_url, "SELECT outputs FROM attempts WHERE task_id = $1", UUID(waiting))
    keys = [output["staged_key"] for output in json.loads(outputs)]
    assert [(operator.data_dir / "assets" / key).read_bytes() for key in keys] == [png(9), png(10)]


def test_what_is_no_picture_is_refused_in_one_line(operator: Command, waiting: str, tmp_path: Path) -> None:
    (tmp_path / "x.png").write_bytes(b"<html>")
    said = operator("review", "attach", waiting, str(tmp_path / "x.png"))
    assert (said.code, len(said.err.splitlines())) == (1, 1)
    assert said.err.startswith("safelight: files[0]: is no picture that can be had")
    said = operator("review", "attach", waiting, "https://10.0.0.1/x.png")
    assert (said.code, "urls[0]" in said.err) == (1, True)
    said = operator("review", "accept", waiting)
    assert (said.code, said.err) == (1, "safelight: No picture of this task can be had.\n")


def test_a_version_that_has_passed_and_a_second_decision_are_refused(operator: Command, waiting: str) -> None:
    stale = operator("review", "fail", waiting, "--version", "3")
    assert (stale.code, "moved on from version 3 to 4" in stale.err) == (1, True)
    assert operator("review", "fail", waiting, "--version", "4").code == 0
    second = operator("review", "fail", waiting, "--version", "4")
    assert (second.code, f"{ME} has decided this already" in second.err) == (1, True)
    assert "nothing to decide" in operator("review", "check-again", waiting).err


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["show", "nonsense"], 2, "is no id of a task"),
        (["show", "01a228d0-0000-7000-8000-000000000000"], 1, "there is no such task"),
        (["fail", "01a228d0-0000-7000-8000-000000000000"], 1, "There is no such task."),
        (["resubmit", "01a228d0-0000-7000-8000-000000000000"], 2, "Missing option"),
        (["attach", "01a228d0-0000-7000-8000-000000000000", "/nowhere.png"], 2, "cannot be read"),
        (["attach", "01a228d0-0000-7000-8000-000000000000", "/dev/zero"], 2, "Not a regular file"),
        (["attach", "01a228d0-0000-7000-8000-000000000000", "/"], 2, "Not a regular file"),
        (["attach", "01a228d0-0000-7000-8000-000000000000", "a.png", "https://x.example/b"], 2, "not both"),
        (["fail", "01a228d0-0000-7000-8000-000000000000", "--reason", "boredom"], 2, "Invalid value"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    operator: Command, words: list[str], code: int, complaint: str
) -> None:
    said = operator("review", *words)
    assert (said.code, complaint in said.err) == (code, True), said.err
    assert "Traceback" not in said.err


def test_a_file_that_is_too_large_is_not_read(operator: Command, tmp_path: Path) -> None:
    path = tmp_path / "large.png"
    with path.open("wb") as file:
        file.truncate(50 * 1024 * 1024 + 1)
    said = operator("review", "attach", "01a228d0-0000-7000-8000-000000000000", str(path))
    assert (said.code, f"{path} is larger than 52,428,800 bytes" in said.err) == (2, True), said.err


def test_a_resubmit_needs_words_that_say_something(operator: Command, waiting: str) -> None:
    said = operator("review", "resubmit", waiting, "--reason", "risk_accepted", "--note", "why not")
    assert (said.code, said.err.startswith("safelight: note: must say in at least 10")) == (1, True)


# ---------------------------------------------------------------------------- the audit log


def test_every_change_by_command_is_in_the_audit_log(operator: Command, books_url: str) -> None:
    assert operator("keys", "create", "till", "--account", "shop", "--new-account").code == 0
    assert operator("credits", "grant", "500", "--account", "shop", "--note", "invoice 7").code == 0
    (key,) = operator("keys", "list", "--account", "shop", "--json").json["data"]
    assert operator("keys", "revoke", key["id"]).code == 0
    found = operator("audit", "list", "--json").json["data"]
    assert [line["action"] for line in found] == [
        "key.revoke",
        "credits.grant",
        "key.create",
        "account.create",
    ]
    assert {line["actor"] for line in found} == {ME}
    assert found[1]["detail"] == {"amount": 500, "reason": "invoice 7"}
    (line,) = operator("audit", "list", "--object", found[1]["object"], "--limit", "1", "--json").json["data"]
    assert line["action"] == "credits.grant"
    assert "credits.grant" in operator("audit", "list").out


def test_the_audit_log_is_verified_and_a_changed_line_is_named(operator: Command, books_url: str) -> None:
    for number in range(4):
        assert operator("credits", "grant", "5", "--note", f"invoice {number}").code == 0
    said = operator("audit", "verify")
    assert said.code == 0
    assert said.out.startswith("4 lines are as they were written; the last hash is ")
    falsify(
        books_url,
        "UPDATE audit_lines SET detail = replace(detail, '\"amount\": 5', '\"amount\": 6') WHERE id = 3",
    )
    said = operator("audit", "verify")
    assert (said.code, said.out) == (1, "line 3: its hash does not cover what it says\n")
    told = operator("audit", "verify", "--json")
    assert (told.code, told.json["broken_id"], told.json["lines"]) == (1, 3, 2)


# ---------------------------------------------------------------------------- keys of operators


def test_an_operator_s_key_is_printed_once_listed_without_its_secret_and_revoked(operator: Command) -> None:
    said = operator("admin-keys", "create", "night shift")
    key = parse_key(said.out.strip(), ADMIN_PREFIX)
    assert key is not None
    assert parse_key(said.out.strip()) is None
    (listed,) = operator("admin-keys", "list", "--json").json["data"]
    assert (listed["id"], listed["name"], listed["revoked_at"]) == (key.id, "night shift", None)
    assert key.secret not in operator("admin-keys", "list").out
    assert operator("admin-keys", "revoke", key.id).out == f"{key.id}  revoked\n"
    assert operator("admin-keys", "list", "--json").json["data"][0]["revoked_at"] is not None
    nobody = operator("admin-keys", "revoke", "nobody")
    assert (nobody.code, nobody.err) == (1, "safelight: There is no such key.\n")
    assert operator("admin-keys", "create", "--json").json["key"].startswith(ADMIN_PREFIX)


def test_the_first_start_makes_one_operator_s_key_that_only_its_owner_can_read(
    operator: Command, books_url: str
) -> None:
    from safelight.lifecycle.administration import Administration
    from safelight.service import _make_first_admin_key

    class Started:
        """As much of a running service as a first start needs."""

        def __init__(self, database: Database) -> None:
            self.administration = Administration(database, b"p" * 32, b"a" * 32)
            self.settings = type("Settings", (), {"data_dir": operator.data_dir})

    async def start() -> int:
        async with opened(books_url) as database:
            await _make_first_admin_key(Started(database))  # type: ignore[arg-type]  # as much of it as is needed
            async with database.connection() as connection:
                return len(await admin.list_admin_keys(connection))

    path = operator.data_dir / "admin_key"
    assert asyncio.run(start()) == 1
    text = path.read_text().strip()
    assert parse_key(text, ADMIN_PREFIX) is not None
    assert path.stat().st_mode & 0o777 == 0o600
    assert asyncio.run(start()) == 1, "another start makes none"
    path.unlink()
    assert asyncio.run(start()) == 1, "and neither does one after the file was taken away"
    assert not path.exists()
    (listed,) = operator("admin-keys", "list", "--json").json["data"]
    assert listed["id"] == text.removeprefix(ADMIN_PREFIX)[:ID_LENGTH]
