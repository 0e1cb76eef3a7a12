"""Commands of the operator on a real database: keys, grants, the doctor, inner timelines."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from safelight.db.database import SESSION
from safelight.domain.keys import parse_key
from tests.cli.command import Command
from tests.client.fake_api import KEY, FakeApi


def falsify(url: str, statement: str) -> None:
    """Change rows past every trigger."""

    async def work() -> None:
        connection = await asyncpg.connect(url, server_settings=SESSION)
        await connection.execute("SET session_replication_role = replica")
        await connection.execute(statement)
        await connection.close()

    asyncio.run(work())


def test_a_key_is_printed_once_listed_without_its_secret_and_revoked(operator: Command) -> None:
    said = operator("keys", "create", "backend")
    key = parse_key(said.out.strip())
    assert key is not None
    (listed,) = operator("keys", "list", "--json").json["data"]
    assert (listed["id"], listed["account"], listed["name"], listed["revoked_at"]) == (
        key.id,
        "default",
        "backend",
        None,
    )
    assert key.secret not in operator("keys", "list").out
    assert operator("keys", "revoke", key.id).code == 0
    assert operator("keys", "list", "--json").json["data"][0]["revoked_at"] is not None


def test_what_is_not_there_is_said_in_one_line(operator: Command) -> None:
    for words in (
        ["keys", "revoke", "nope"],
        ["keys", "create", "--account", "shop"],
        ["credits", "grant", "1"],
    ):
        said = operator(*words, *(["--account", "shop"] if words[0] == "credits" else []))
        assert (said.code, len(said.err.splitlines())) == (1, 1), said


def test_an_account_is_made_with_its_first_key_and_gets_credits(operator: Command) -> None:
    assert operator("keys", "create", "--account", "shop", "--new-account").code == 0
    assert operator("credits", "grant", "500", "--account", "shop").out == "shop  500 available, 0 held\n"
    said = operator("credits", "grant", "--account", "shop", "--json", "--", "-20")
    assert said.json == {"account": "shop", "available": 480, "held": 0}
    refused = operator("credits", "grant", "--account", "shop", "--", "-500")
    assert (refused.code, refused.err) == (
        1,
        "safelight: more credits than are available cannot be taken back\n",
    )


def test_the_doctor_is_content_with_true_books(operator: Command) -> None:
    said = operator("doctor")
    assert (said.code, said.out, said.err) == (0, "16 checks, no findings\n", "")
    assert operator("doctor", "--no-bytes").out == "15 checks, no findings\n"


def test_the_doctor_prints_a_line_for_each_finding_and_fails(operator: Command, books_url: str) -> None:
    falsify(books_url, "UPDATE accounts SET available = available + 1, open_tasks = 9")
    said = operator("doctor")
    assert said.code == 1
    lines = said.out.splitlines()
    assert [line.partition(":")[0] for line in lines[:-1]] == ["balances", "open_tasks"]
    assert lines[-1] == "16 checks, 2 findings"
    told = operator("doctor", "--json")
    assert (told.code, [finding["check"] for finding in told.json["data"]]) == (1, ["balances", "open_tasks"])
    assert len(told.json["checks"]) == 16


def test_the_doctor_tells_of_reviews_and_does_not_fail_for_them(operator: Command, books_url: str) -> None:
    falsify(
        books_url,
        "UPDATE tasks SET state = 'review', version = 4, review_reason = 'no_progress',"
        " decide_by = clock_now() + interval '1 day' WHERE state = 'submitting';"
        "INSERT INTO task_events (task_id, account_id, version, source, target, attempt, cause)"
        " SELECT id, account_id, 3, 'submitting', 'uncertain', 1, 'test' FROM tasks WHERE state = 'review'"
        " UNION ALL"
        " SELECT id, account_id, 4, 'uncertain', 'review', 1, 'test' FROM tasks WHERE state = 'review'",
    )
    said = operator("doctor")
    assert (said.code, said.out.splitlines()[-1]) == (0, "16 checks, no findings")
    told = [line for line in said.out.splitlines() if line.startswith("reviews: ")]
    assert len(told) == 1
    assert "(for information)" in told[0]
    assert "no_progress" in told[0]


@pytest.mark.parametrize("is_reachable", [True, False])
def test_a_task_on_its_own_machine_shows_every_move_and_attempt(
    operator: Command, api: FakeApi, monkeypatch: pytest.MonkeyPatch, is_reachable: bool
) -> None:
    monkeypatch.setattr("safelight.client.pace.FIRST_GAP_S", 0.001)
    assert operator.books is not None
    (operator.data_dir / "key").write_text(KEY)
    (operator.data_dir / "url").write_text(api.url if is_reachable else "http://127.0.0.1:1")
    said = operator("tasks", "show", str(operator.books.succeeded))
    assert (said.code, said.err) == (0, "")
    moves = [line.split()[2] for line in said.out.splitlines() if line.strip().startswith("+")]
    assert moves == ["queued", "submitting", "archiving", "succeeded"]
    assert "archived, attempt 1" in said.out
    told = operator("tasks", "show", str(operator.books.succeeded), "--json").json
    assert [move["target"] for move in told["timeline"]] == moves
    assert [attempt["outcome"] for attempt in told["attempts"]] == ["succeeded"]
