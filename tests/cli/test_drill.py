"""The drill: what it refuses, and that its judge is not easily content."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from safelight.cli.rehearsal import judge
from safelight.cli.rehearsal.customers import Receipts
from safelight.cli.rehearsal.judge import Found
from safelight.cli.rehearsal.plan import BLOWS, MOODS, Fault, Plan
from safelight.cli.rehearsal.scratch import GRANTED
from safelight.cli.rehearsal.watch import Look, not_flat
from safelight.lab.knobs import Knobs
from tests.cli.command import Command


def item(reference: str, *, times: int = 1, outcome: str = "done") -> dict[str, Any]:
    """A line of the lab's ledger."""
    return {"reference": reference, "times_accepted": times, "outcome": outcome, "done_at": 1.0}


def look(at_s: float, **used: float) -> Look:
    """What an even load uses, but for what is said."""
    usual: dict[str, Any] = {
        "rss_mb": 120.0, "files": 40, "connections": 20, "tasks": 1, "dead": 0.1, "tables_mb": 5.0, "queue_kb": 200.0,
    }  # fmt: skip
    return Look(at_s=at_s, **{**usual, **used})


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--faults", "kills,floods"], "'floods' is not a valid Fault; there are kills, pauses"),
        (["--minutes", "0"], "greater than or equal to 0.05"),
        (["--rate", "0"], "greater than or equal to 0.01"),
    ],
)
def test_a_drill_that_cannot_be_is_refused_at_once(data_dir: Path, words: list[str], said: str) -> None:
    refused = Command(data_dir)("drill", *words)
    assert refused.code == 2
    assert said in refused.err


def test_a_database_that_is_not_empty_is_not_touched(operator: Command, books_url: str) -> None:
    refused = operator("drill", "--database-url", books_url)
    assert refused.code == 2
    assert "needs an empty database of its own" in refused.err


def test_the_server_of_somebody_else_is_never_killed() -> None:
    assert Fault.DATABASE in Plan().blows
    assert Fault.DATABASE not in Plan(database_url="postgresql://db.internal/scratch").blows


def test_every_fault_is_a_blow_or_a_mood_and_every_mood_is_one_that_the_lab_knows() -> None:
    assert set(Fault) == set(BLOWS) | set(MOODS)
    for moods in MOODS.values():
        for mood in moods:
            assert Knobs().merged({**Knobs().model_dump(), **mood}) != Knobs()


@pytest.mark.parametrize(
    ("receipts", "known", "reason"),
    [
        (Receipts(ids={"a": "1", "b": "2"}), {"1"}, "1 tasks were accepted and are lost: 2"),
        (Receipts(ids={"a": "1"}, split_keys=["a"]), {"1", "2"}, "1 keys got two tasks: a"),
        (Receipts(ids={"a": "1"}, unanswered=["b"]), {"1", "2"}, "1 submits were never answered"),
        (Receipts(ids={"a": "1"}), {"1", "2"}, "1 tasks exist that no customer asked for"),
    ],
)
def test_the_customers_own_log_is_a_witness(receipts: Receipts, known: set[str], reason: str) -> None:
    found = Found()
    judge._judge_customers(found, receipts, known)
    assert reason in found.reasons


@pytest.mark.parametrize(
    ("items", "reason"),
    [
        ([item("aa-1", times=2)], "1 references were accepted twice: aa-1"),
        ([item("bb-1")], "1 calls were made without an intent: bb-1"),
        ([item("aa-1"), item("aa-2")], "1 tasks were drawn twice: aa"),
    ],
)
def test_the_labs_ledger_is_a_witness(items: list[dict[str, Any]], reason: str) -> None:
    found = Found()
    judge._judge_lab(found, items, {"aa-1", "aa-2"})
    assert found.reasons == [reason]
    content = Found()
    judge._judge_lab(content, [item("aa-1"), item("aa-2", outcome="failed")], {"aa-1", "aa-2", "aa-3"})
    assert content.reasons == []


def test_credits_that_do_not_add_up_are_a_reason() -> None:
    found = Found(captured=3, billed_upstream=3)
    judge._judge_money(found, {"available": GRANTED - 4, "held": 1})  # type: ignore[arg-type] # a row is a mapping
    assert found.reasons == []
    judge._judge_money(found, {"available": GRANTED, "held": 0})  # type: ignore[arg-type] # a row is a mapping
    assert len(found.reasons) == 1
    dear = Found(captured=4, billed_upstream=3)
    judge._judge_money(dear, {"available": GRANTED - 4, "held": 0})  # type: ignore[arg-type] # a row is a mapping
    assert dear.reasons == ["customers paid for 4 pictures, and the lab made 3"]


@pytest.mark.parametrize(
    ("name", "last"),
    [("rss_mb", 900.0), ("files", 400), ("connections", 90), ("queue_kb", 90_000.0), ("dead", 0.9)],
)
def test_what_grows_under_an_even_load_is_a_reason(name: str, last: float) -> None:
    flat = [look(float(at)) for at in range(40)]
    assert not_flat(flat) == []
    (grown,) = not_flat([*flat[:25], *(look(float(at), **{name: last}) for at in range(25, 40))])
    assert grown.startswith(f"{name} grew from ")
