"""Commands of the operator on a real database: keys, grants, the doctor, inner timelines."""

from __future__ import annotations

import asyncio
import os

import asyncpg
import pytest

from safelight.db.database import SESSION
from safelight.db.migrate import revisions
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


async def _fetch(url: str, statement: str) -> list[tuple[str, ...]]:
    connection = await asyncpg.connect(url, server_settings=SESSION)
    found = [tuple(row) for row in await connection.fetch(statement)]
    await connection.close()
    return found


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
        "safelight: More credits than are available cannot be taken back.\n",
    )


def test_the_doctor_is_content_with_true_books(operator: Command) -> None:
    (operator.data_dir / "secret").write_text("x" * 40)
    said = operator("doctor")
    lines = said.out.splitlines()
    assert (said.code, said.err) == (0, "")
    assert lines[-1] == f"{len(lines) - 1} checks, no findings"
    assert all(line.startswith("ok ") for line in lines[:-1])
    assert len(operator("doctor", "--no-bytes").out.splitlines()) == len(lines) - 1


def test_the_doctor_names_a_finding_below_its_check_with_what_settles_it(
    operator: Command, books_url: str
) -> None:
    falsify(books_url, "UPDATE accounts SET available = available + 1, open_tasks = 9")
    said = operator("doctor")
    assert said.code == 1
    lines = said.out.splitlines()
    bad = [line.split()[1] for line in lines if line.startswith("FINDING")]
    assert bad == ["balances", "open_tasks"]
    assert lines[-1].endswith("checks, 2 findings")
    assert any(line.startswith("    balances: account default: has ") for line in lines)
    assert any("→" in line and "safelight credits grant" in line for line in lines)
    told = operator("doctor", "--json")
    assert (told.code, told.json["is_ok"]) == (1, False)
    found = {check["name"] for check in told.json["checks"] if not check["is_ok"]}
    assert found == {"balances", "open_tasks"}
    assert all(check["covers"] and check["seconds"] >= 0 for check in told.json["checks"])


def test_the_doctor_asks_nothing_of_another_schema_and_mends_none(operator: Command, books_url: str) -> None:
    falsify(books_url, "UPDATE safelight.alembic_version SET version_num = '0001'")
    try:
        said = operator("doctor", "--repair")
    finally:
        falsify(books_url, f"UPDATE safelight.alembic_version SET version_num = '{revisions()[-1]}'")
    assert said.code == 1
    assert [line.split()[:2] for line in said.out.splitlines()[:1]] == [["FINDING", "schema"]]
    assert said.out.splitlines()[-1] == "1 checks, 1 finding"
    assert "safelight migrate" in said.out


def test_the_doctor_refuses_no_other_secret_but_says_so(
    operator: Command, books_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    falsify(books_url, "INSERT INTO installation (secret_key_id) VALUES ('another')")
    monkeypatch.setenv("SAFELIGHT_SECRET_KEY", "x" * 40)
    said = operator("doctor", "--no-bytes")
    assert said.code == 1
    assert "    secret: the secret key: is not the one that this database was made with" in said.out


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"SAFELIGHT_PUBLIC_URL": "https://127.0.0.1:8000"}, "which no provider can reach"),
        ({"SAFELIGHT_PUBLIC_URL": "https://pictures.internal"}, "which no provider can reach"),
        ({"SAFELIGHT_PUBLIC_URL": "http://pictures.example.com"}, "is not https"),
        ({"SAFELIGHT_TRUSTED_PROXIES": "*"}, "believes everybody"),
        ({"SAFELIGHT_TRUSTED_PROXIES": "10.0.0.1,proxy"}, "proxy is no address"),
        ({"SAFELIGHT_TRUSTED_PROXIES": "0.0.0.0/0"}, "believes everybody"),
    ],
)
def test_the_doctor_names_settings_that_cannot_work(
    operator: Command, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], words: str
) -> None:
    monkeypatch.setenv("SAFELIGHT_PROVIDER_FAL_API_KEY", "k")
    monkeypatch.setenv("SAFELIGHT_LAB_URL", "http://127.0.0.1:9")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    checks = {check["name"]: check for check in operator("doctor", "--no-bytes", "--json").json["checks"]}
    faults = [found["detail"] for found in checks["settings"]["findings"] if not found["is_information"]]
    assert len(faults) == 1
    assert words in faults[0]


def test_a_repair_wakes_what_is_due_deletes_what_is_nobodys_and_writes_it_down(
    operator: Command, books_url: str
) -> None:
    falsify(
        books_url,
        "UPDATE tasks SET wake_at = clock_now() - interval '10 minutes' WHERE state = 'queued';"
        "DELETE FROM pgqueuer.pgqueuer; DELETE FROM pgqueuer.pgqueuer_log;"
        "UPDATE receipts SET created_at = clock_now() - interval '40 days',"
        " expires_at = clock_now() - interval '10 days';"
        "UPDATE tasks SET created_at = clock_now() - interval '40 days',"
        " finished_at = clock_now() - interval '39 days' WHERE state IN ('succeeded', 'failed');"
        "UPDATE task_events SET created_at = clock_now() - interval '39 days'",
    )
    stray = operator.data_dir / "assets" / "somebody" / "0123456789abcdef.png"
    young = stray.with_name("fedcba9876543210.png")
    stray.parent.mkdir(parents=True)
    for path, days in ((stray, 3), (young, 1)):
        path.write_bytes(b"x")
        os.utime(path, (path.stat().st_mtime - days * 86_400,) * 2)
    said = operator("doctor", "--repair", "--json")
    assert said.code == 1
    found = {check["name"] for check in said.json["checks"] if not check["is_ok"]}
    assert found == {"wakeups", "strays"}
    assert {act["act"]: act["count"] for act in said.json["repaired"]} == {
        "woke what is due": 1,
        "deleted stray bytes": 1,
        "removed receipts that had expired": 2,
    }
    assert (stray.exists(), young.exists()) == (False, True)
    assert operator("doctor").code == 0
    lines = asyncio.run(_fetch(books_url, "SELECT actor, action FROM audit_lines ORDER BY id"))
    assert [action for _, action in lines] == ["doctor.wake", "doctor.delete_strays", "doctor.drop_receipts"]
    assert all(actor.startswith("os:") for actor, _ in lines)
    again = operator("doctor", "--repair")
    assert (again.code, [line for line in again.out.splitlines() if line.startswith("repaired")]) == (
        0,
        ["repaired  woke what is due (1): lab-callback"],
    )


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
    assert (said.code, said.out.splitlines()[-1].endswith("no findings")) == (0, True)
    told = [line for line in said.out.splitlines() if line.startswith("    reviews: ")]
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
