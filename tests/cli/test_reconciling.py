"""`safelight reconcile` and `safelight notices` on a real database; the provider cannot be reached."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from safelight.db.database import SESSION
from tests.cli.command import Command

NOBODY = "http://127.0.0.1:9"


def change(url: str, *statements: str) -> None:
    """Change rows past every trigger."""

    async def work() -> None:
        connection = await asyncpg.connect(url, server_settings=SESSION)
        await connection.execute("SET session_replication_role = replica")
        for statement in statements:
            await connection.execute(statement)
        await connection.close()

    asyncio.run(work())


@pytest.fixture
def yesterday(operator: Command, books_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A day that is over, on which every attempt was sent; the lab is configured, and not there."""
    monkeypatch.setenv("SAFELIGHT_LAB_URL", NOBODY)
    change(books_url, "UPDATE attempts SET sent_at = sent_at - interval '1 day', provider_ref = NULL")
    return str(datetime.now(UTC).date() - timedelta(days=1))


def test_a_day_of_a_provider_that_keeps_nothing_is_reconciled_and_its_report_kept(
    operator: Command, books_url: str, yesterday: str
) -> None:
    change(books_url, "UPDATE attempts SET provider = 'lab-sync'", "UPDATE tasks SET provider = 'lab-sync'")
    words = ("reconcile", "--provider", "lab-sync", "--day", yesterday)
    preview = operator.apart(*words, "--dry-run", "--json")
    assert (preview.code, preview.json["is_dry_run"], preview.json["counts"]) == (0, True, {"attempts": 3})
    assert operator("reconcile", "reports", "--json").json == {"data": []}
    said = operator.apart(*words)
    assert said.code == 0
    assert said.out.splitlines()[0].startswith(f"lab-sync {yesterday}, by none: complete, in ")
    (report,) = operator("reconcile", "reports", "--provider", "lab-sync", "--json").json["data"]
    assert (report["mode"], report["counts"], report["findings"]) == ("none", {"attempts": 3}, [])
    assert "lab-sync" in operator("reconcile", "reports").out


def test_the_lab_that_serve_starts_is_asked_without_being_named(
    operator: Command, yesterday: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAFELIGHT_LAB_URL")
    monkeypatch.setenv("SAFELIGHT_LAB_PORT", "9")
    said = operator.apart("reconcile", "--provider", "lab-poll", "--day", yesterday)
    assert (said.code, "goes on at" in said.out) == (1, True), "there it was asked, and nobody answered"
    assert operator("notices", "report", "--provider", "lab-callback").code == 0
    monkeypatch.setenv("SAFELIGHT_LAB_PORT", "0")
    said = operator.apart("reconcile", "--provider", "lab-poll", "--day", yesterday)
    assert (said.code, "SAFELIGHT_LAB_URL" in said.err) == (2, True)


def test_a_provider_that_cannot_be_asked_is_said_and_the_run_goes_on_later(
    operator: Command, yesterday: str
) -> None:
    words = ("reconcile", "--provider", "lab-poll", "--day", yesterday)
    assert operator.apart(*words, "--dry-run").code == 1
    said = operator.apart(*words)
    assert said.code == 1
    assert "goes on at" in said.out
    (report,) = operator("reconcile", "reports", "--json").json["data"]
    assert (report["finished_at"], report["goes_on_at"] is None) == (None, False)


@pytest.mark.parametrize(
    ("words", "code", "complaint"),
    [
        (["reconcile"], 2, "say --provider and --day"),
        (["reconcile", "--provider", "lab-poll", "--day", "soon"], 2, "a day is written as"),
        (["reconcile", "--provider", "fal", "--day", "2026-01-01"], 2, "provider 'fal' is not configured"),
        (["reconcile", "--provider", "lab-poll", "--day", "2999-01-01"], 2, "has not begun yet"),
        (["reconcile", "--provider", "lab-poll", "--day", "9999-12-31"], 2, "has not begun yet"),
        (["reconcile", "--provider", "lab-poll", "--day", "0001-01-01"], 2, "is too long ago"),
        (["notices", "report", "--provider", "fal"], 1, "no provider 'fal' is configured"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(
    operator: Command, monkeypatch: pytest.MonkeyPatch, words: list[str], code: int, complaint: str
) -> None:
    monkeypatch.setenv("SAFELIGHT_LAB_URL", NOBODY)
    said = operator.apart(*words)
    assert (said.code, said.out) == (code, ""), said.err
    assert complaint in said.err


def test_the_lab_that_serve_has_started_is_asked_wherever_it_answers(
    operator: Command, yesterday: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAFELIGHT_LAB_URL")
    monkeypatch.setenv("SAFELIGHT_LAB_PORT", "0")
    words = ("reconcile", "--provider", "lab-poll", "--day", yesterday, "--dry-run")
    assert "the lab has no fixed port" in operator.apart(*words).err
    (operator.data_dir / "lab-url").write_text(f"{NOBODY}\n")
    said = operator.apart(*words)
    assert "lab-poll could not be reached" in said.err


def test_the_report_about_callbacks_counts_and_says_what_applying_would_change(
    operator: Command, books_url: str, yesterday: str
) -> None:
    (operator.data_dir / "safelight.toml").write_text('[providers.lab-callback]\nmode = "observe"\n')
    change(
        books_url,
        "UPDATE attempts SET accepted_at = sent_at, noticed_by = 'poll', ended_at = clock_now() - interval '1 hour'"
        " WHERE outcome = 'succeeded'",
        "INSERT INTO callbacks (provider, task_id, attempt, upstream_status, verdict, body, would_be, received_at)"
        " SELECT provider, task_id, number, 'done', 'would_apply', '', 'archiving', ended_at - interval '30 seconds'"
        " FROM attempts WHERE outcome = 'succeeded'",
        "INSERT INTO callback_counts VALUES"
        " ('lab-callback', (clock_now() AT TIME ZONE 'UTC')::date, 'wrong_signature', 2),"
        " ('lab-callback', (clock_now() AT TIME ZONE 'UTC')::date, 'unknown', 1)",
    )
    said = operator("notices", "report", "--provider", "lab-callback")
    assert said.code == 0
    assert said.out.splitlines()[0] == "lab-callback, mode observe, the last 7 days: 4 callbacks"
    for line in (
        "  would have been applied: 1 (25.0%)",
        "  forged or unreadable: 2 (50.0%)",
        "    wrong_signature: 2",
        "  callback against the look that found the end (1): median 30.0 s sooner, p95 30.0 s sooner",
        "applied, they would have told of 1 ends sooner: by 30.0 s (median), 30.0 s (p95)",
    ):
        assert line in said.out.splitlines(), said.out
    found = operator("notices", "report", "--provider", "lab-callback", "--json").json
    assert (found["unknown"], found["finished"]["sooner"]) == (1, 1)
