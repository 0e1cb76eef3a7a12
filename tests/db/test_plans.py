"""At 100,000 rows the daily statements go by their indexes, with the values known and without."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from uuid import UUID

import asyncpg
import pytest

from safelight.assets.store import AssetStore
from safelight.db.audit import FIRST, LAST, RANGE_SESSION, RANGES
from safelight.db.database import SESSION, Database
from safelight.db.statements import Statement, statements
from safelight.lifecycle.accept import ROUTE
from safelight.lifecycle.checks import CHECKS, AskedOf
from safelight.lifecycle.doctor import Books, _values
from tests.db.growth import BIG, Grown, grow
from tests.world import Server


@pytest.fixture(scope="module")
def grown(server: Server) -> Iterator[Grown]:
    async def prepare() -> Grown:
        url = await server.clone()
        connection = await asyncpg.connect(url, server_settings={**SESSION, "statement_timeout": "120s"})
        made = await grow(connection, url)
        await connection.close()
        return made

    made = asyncio.run(prepare())
    yield made
    asyncio.run(server.drop(made.url))


@pytest.fixture
async def connection(grown: Grown) -> AsyncIterator[asyncpg.Connection]:
    made = await asyncpg.connect(grown.url, server_settings=SESSION)
    yield made
    await made.close()


@dataclass(frozen=True, slots=True)
class Plan:
    """What the planner does, node by node; `blocks` is what it read where it was carried out."""

    nodes: list[dict[str, Any]]

    @property
    def indexes(self) -> set[str]:
        return {node["Index Name"] for node in self.nodes if "Index Name" in node}

    @property
    def read_whole(self) -> set[str]:
        return {node["Relation Name"] for node in self.nodes if node["Node Type"] == "Seq Scan"} & BIG

    @property
    def blocks(self) -> int:
        top = self.nodes[0]
        return int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])


def nodes_of(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from nodes_of(child)


async def plan_of(
    connection: asyncpg.Connection, statement: Statement, values: dict[str, Any], *, is_generic: bool
) -> Plan:
    """The plan as the server makes it at a first call, or as it keeps it after some."""
    if is_generic:
        await connection.execute("SET plan_cache_mode = force_generic_plan")
        await connection.execute(f"PREPARE kept AS {statement.sql}")
        call = f"kept({', '.join(['NULL'] * len(statement.names))})" if statement.names else "kept"
        text = await connection.fetchval(f"EXPLAIN (FORMAT JSON) EXECUTE {call}")
    else:
        given = [values[name] for name in statement.names]
        text = await connection.fetchval(f"EXPLAIN (FORMAT JSON) {statement.sql}", *given)
    return Plan(list(nodes_of(json.loads(text)[0]["Plan"])))


async def carried_out(connection: asyncpg.Connection, statement: Statement, values: dict[str, Any]) -> Plan:
    """Carry a statement out, and undo it."""
    given = [values[name] for name in statement.names]
    transaction = connection.transaction()
    await transaction.start()
    try:
        text = await connection.fetchval(
            f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {statement.sql}", *given
        )
    finally:
        await transaction.rollback()
    return Plan(list(nodes_of(json.loads(text)[0]["Plan"])))


ARCHIVING = {"target": "archiving", "cause": "poll", "wake_in_s": 1.0}
FAILED = {
    "target": "failed", "captured": 0, "released": 2, "failure_class": "environment", "failure_code": "x",
    "cause": "poll", "assets": [],
}  # fmt: skip
DUPLICATE = {
    "provider": "lab-callback", "attempt": 1, "verdict": "duplicate", "upstream_status": "done", "body": "e30=",
}  # fmt: skip


NO_FILTER = ("after", "after_at", "before", "kind", "reason", "verdict", "states", "state", "model")


def values_of(grown: Grown) -> dict[str, Any]:
    """A sensible value for every parameter that the statements have."""
    running = [UUID(found) for found in grown.samples["running"][:16]]
    moves = [{"id": str(found), "version": 3, "source": "running"} for found in running]
    numbers = [{"task_id": str(found), "number": 1} for found in running]
    return {
        **dict.fromkeys(NO_FILTER),
        "account_id": UUID(grown.ordinary_account),
        "account_ids": [UUID(grown.ordinary_account)] * 16,
        "after_number": 0,
        "after_id": UUID(int=0),
        "answer_in_s": 60.0,
        "attempt": 1,
        "attempts": [1] * 16,
        "calls_free": 16,
        "cap": 50,
        "days": 1,
        "grace_s": 60.0,
        "decided_by": "admin:test",
        "decision": "check_again",
        "gap_s": 2.0,
        "id": running[0],
        "ids": running,
        "images_free": 100,
        "is_idle": False,
        "is_open": True,
        "is_stuck": False,
        "keep_s": 3_600.0,
        "keys": [f"key-{number}" for number in range(100, 116)],
        "lease_s": 60.0,
        "looks": 4,
        "note": "",
        "object": "task:0",
        "reason_code": "",
        "start_in_s": 60.0,
        "version": 3,
        "most": 1_000,
        "moves": json.dumps([{**move, **ARCHIVING} for move in moves]),
        "endings": json.dumps([{**move, **FAILED} for move in moves]),
        "patches": json.dumps(numbers),
        "notes": json.dumps([{"id": str(found), "version": 3, "percent": 5} for found in running]),
        "callbacks": json.dumps([{**DUPLICATE, "task_id": str(found)} for found in running]),
        "names": ["lab-callback", "lab-poll", "lab-sync"],
        "number": 1,
        "numbers": [1] * 16,
        "overdue_s": 0.0,
        "prompt": "a red shoe on white, number 500",
        "provider": "lab-callback",
        "provider_ref": "job-500",
        "providers": ["lab-callback", "lab-poll", "lab-sync"],
        "recent": 20,
        "references": ["x-1", "x-2", "x-3"],
        "since": datetime.now(UTC) - timedelta(hours=1),
        "until": datetime.now(UTC),
        "refs": ["job-500", "job-600", "job-601"],
        "room": 50,
        "retired": [],
        "route": ROUTE,
        "task_id": running[0],
        "task_ids": running,
        "upstream_model": "lab-callback",
        "upstream_models": ["lab-callback"],
        "window_s": 1.0,
        "upstream_statuses": ["done"] * 16,
    }


ITEMS = {
    "tasks.move": "moves",
    "ledger.settle": "endings",
    "tasks.patch_attempts": "patches",
    "tasks.note_progress": "notes",
    "inbox.insert_callbacks": "callbacks",
}

INTENDED = [
    ("tasks.claim_fairest", {"tasks_waiting", "tasks_upstream", "attempts_pkey"}),
    ("tasks.claim_looks", {"tasks_to_look_at", "tasks_pkey", "attempts_pkey"}),
    ("tasks.claim_copies", {"tasks_to_copy", "tasks_pkey", "attempts_pkey"}),
    ("tasks.past_start", {"tasks_start_by"}),
    ("tasks.capacity_taken", {"tasks_upstream", "attempts_sent"}),
    ("tasks.run_times", {"attempts_run_times"}),
    ("tasks.callback_share", {"attempts_noticed"}),
    ("tasks.stuck_share", set()),
    ("tasks.find_receipts", {"receipts_pkey"}),
    ("tasks.forget_receipts", {"receipts_pkey"}),
    ("tasks.lock_tasks", {"tasks_pkey"}),
    ("tasks.accounts_of_tasks", {"tasks_pkey"}),
    ("tasks.read_attempts", {"attempts_pkey"}),
    ("tasks.read_task", {"tasks_pkey", "attempts_pkey"}),
    ("tasks.attempt_of_provider_ref", {"attempts_provider_ref"}),
    ("tasks.taken_provider_refs", {"attempts_provider_ref"}),
    ("tasks.move", {"tasks_pkey"}),
    ("tasks.patch_attempts", {"attempts_pkey"}),
    ("tasks.note_progress", {"tasks_pkey"}),
    ("tasks.bring_look_forward", {"tasks_pkey", "attempts_pkey"}),
    ("tasks.claim_copy", {"tasks_pkey", "attempts_pkey"}),
    ("tasks.renew_copies", {"tasks_pkey"}),
    ("tasks.has_due_copies", {"tasks_to_copy"}),
    ("tasks.note_decode", {"tasks_pkey"}),
    ("tasks.forget_decode", {"tasks_pkey"}),
    ("tasks.request_cancel", {"tasks_pkey"}),
    ("tasks.note_send", {"tasks_pkey", "attempts_pkey"}),
    ("tasks.provider_of_attempt", {"attempts_pkey"}),
    ("tasks.staged_outputs", {"tasks_pkey", "attempts_pkey"}),
    ("tasks.loads", {"tasks_upstream"}),
    ("tasks.lock_waiting", {"tasks_waiting_due"}),
    ("queue.providers_with_due_tasks", set()),
    ("ledger.lock_accounts", set()),
    ("ledger.settle", {"tasks_pkey"}),
    ("inbox.applied_before", {"callbacks_applied_once"}),
    ("inbox.insert_callbacks", {"callbacks_task"}),
    ("inbox.observed_before", {"callbacks_task"}),
    ("reconciliation.first_days", {"attempts_sent"}),
    (
        "reconciliation.match_records",
        {"attempts_provider_ref", "attempts_reference_key", "attempts_pkey", "tasks_pkey"},
    ),
    ("reconciliation.attempts_of_window", {"attempts_sent", "tasks_pkey"}),
    ("reconciliation.span_of_attempt", {"attempts_pkey", "tasks_pkey"}),
    ("reconciliation.has_rival", {"attempts_sent"}),
    ("reconciliation.unanswered", {"attempts_sent"}),
    ("notices.shares", {"attempts_noticed", "callbacks_task"}),
    ("inbox.unmatched", {"callbacks_unmatched"}),
    ("inbox.count_unmatched", {"callbacks_unmatched"}),
    ("inbox.drop_unmatched", {"callbacks_unmatched"}),
    ("views.ended_tasks", {"tasks_pkey"}),
    ("views.list_tasks", {"tasks_account"}),
    ("views.list_changed_tasks", {"tasks_finished_of_account"}),
    ("views.read_tasks", {"settlements_pkey", "assets_task_id_position_key"}),
    ("views.list_entries", {"entries_account"}),
    ("views.list_events", {"task_events_task_id_version_key"}),
    ("views.read_asset", {"assets_pkey"}),
    ("views.read_balance", set()),
    ("views.read_upload", set()),
    ("uploads.claim_expired", {"tasks_open_images", "tasks_open_mask"}),
    ("views.open_tasks_by_state", {"tasks_open_of_account"}),
    ("views.provider_health", {"tasks_upstream"}),
    ("views.gates", set()),
    ("decisions.insert_decision", {"tasks_in_review"}),
    ("decisions.decision_about", set()),
    ("decisions.is_check_asked", set()),
    ("decisions.look_now", {"tasks_in_review"}),
    ("decisions.renew_start", {"tasks_pkey"}),
    ("decisions.renew_copies", {"tasks_pkey"}),
    ("decisions.orphan_outputs", set()),
    ("decisions.providers_to_look_at", {"tasks_to_look_at"}),
    ("adminviews.reviews_by_reason", {"tasks_in_review"}),
    ("adminviews.list_reviews", {"tasks_in_review", "attempts_pkey"}),
    ("adminviews.list_tasks", set()),
    ("adminviews.read_whole_task", {"tasks_pkey"}),
    ("adminviews.attempts_of_task", {"attempts_pkey"}),
    ("adminviews.notices_of_task", {"callbacks_task"}),
    ("adminviews.entries_of_task", {"entries_once_per_task"}),
    ("adminviews.assets_of_task", {"assets_task_id_position_key"}),
    ("adminviews.inputs_of_task", {"tasks_pkey"}),
    ("adminviews.pictures_of_task", {"assets_task_id_position_key", "tasks_pkey"}),
    ("adminviews.decisions_of_task", set()),
    ("adminviews.losses_of_task", set()),
    ("adminviews.findings_of_task", set()),
    ("adminviews.list_findings", set()),
    ("adminviews.list_open_findings", set()),
    ("adminviews.list_notices", {"callbacks_pkey"}),
    ("adminviews.list_notices_of_provider", set()),
    ("adminviews.list_audit", set()),
    ("adminviews.list_audit_of", set()),
    ("adminviews.list_accounts_after", set()),
    ("adminviews.read_account", set()),
]


def named(name: str, values: dict[str, Any]) -> tuple[Statement, dict[str, Any]]:
    file, _, which = name.partition(".")
    statement: Statement = getattr(statements(file), which)
    return statement, {**values, "items": values.get(ITEMS.get(name, ""))}


def test_every_statement_of_the_daily_work_has_its_plan_tested() -> None:
    tested = {name for name, _ in INTENDED}
    files = ("tasks", "ledger", "inbox", "views", "decisions", "adminviews")
    found = {f"{file}.{name}" for file in files for name in statements(file).names()}
    assert found - tested == {"tasks.insert_accepted", "ledger.insert_entry"}  # they only write


@pytest.mark.parametrize("is_generic", [False, True], ids=["values known", "any values"])
@pytest.mark.parametrize(("name", "intended"), INTENDED, ids=[name for name, _ in INTENDED])
async def test_a_statement_goes_by_its_index(
    grown: Grown, connection: asyncpg.Connection, name: str, intended: set[str], is_generic: bool
) -> None:
    statement, values = named(name, values_of(grown))
    plan = await plan_of(connection, statement, values, is_generic=is_generic)
    assert plan.read_whole == set()
    assert intended - plan.indexes == set()


BOUNDS = [
    # Blocks of 8 kB that one call may touch: with room for growth, and far from reading a table.
    ("tasks.claim_fairest", {}, 4_000),
    ("tasks.claim_looks", {}, 3_000),
    ("tasks.claim_copies", {}, 3_000),
    ("tasks.past_start", {}, 300),
    ("tasks.capacity_taken", {}, 300),
    ("tasks.run_times", {}, 1_000),
    ("tasks.callback_share", {}, 100),
    ("tasks.loads", {}, 3_000),
    ("tasks.lock_waiting", {}, 500),
    ("tasks.find_receipts", {}, 200),
    ("tasks.move", {}, 2_000),
    ("ledger.settle", {}, 2_500),
    ("queue.providers_with_due_tasks", {}, 300),
    ("queue.providers_with_due_tasks", {"providers": ["lab-sync"], "overdue_s": 700.0}, 300),
    ("inbox.applied_before", {}, 200),
    ("views.list_tasks", {}, 1_000),
    ("views.list_entries", {}, 200),
]


@pytest.mark.parametrize(("name", "other", "bound"), BOUNDS, ids=[name for name, _, _ in BOUNDS])
async def test_a_statement_touches_few_blocks(
    grown: Grown, connection: asyncpg.Connection, name: str, other: dict[str, Any], bound: int
) -> None:
    statement, values = named(name, values_of(grown))
    plan = await carried_out(connection, statement, {**values, **other})
    assert plan.blocks <= bound


RANGE_BLOCKS = 20_000
"""What a question of the doctor may touch for one range of tasks, most blocks of it again and again."""
RANGED = [check.name for check in CHECKS if check.asked_of is AskedOf.TASKS]


async def asked_of_a_range(connection: asyncpg.Connection, question: str, after: UUID) -> Plan:
    """Ask a question of the doctor about the range of tasks behind `after`."""
    nothing = Books(cast("Database", None), cast("AssetStore", None))  # no value is read from these
    values = _values(nothing)
    bounds = await statements("audit").task_range.row(connection, after=after, room=RANGES["task"])
    upto = bounds["upto"] if bounds and bounds["rows"] == RANGES["task"] else LAST
    statement: Statement = getattr(statements("audit"), question)
    given = {**values, "after": after, "upto": upto}
    async with connection.transaction():
        await connection.execute(RANGE_SESSION)
        return await carried_out(connection, statement, {name: given[name] for name in statement.names})


@pytest.mark.parametrize("question", RANGED)
async def test_a_question_of_the_doctor_touches_what_its_range_needs(
    grown: Grown, connection: asyncpg.Connection, question: str
) -> None:
    plan = await asked_of_a_range(connection, question, UUID(grown.samples["succeeded"][-1]))
    assert plan.blocks <= RANGE_BLOCKS
    assert plan.read_whole == set()


_MISJUDGED = """
SELECT pg_restore_attribute_stats(
    'schemaname', 'safelight', 'relname', relname::text, 'attname', attname::text, 'inherited', false,
    'null_frac', 0.0::real, 'avg_width', 16, 'n_distinct', -1.0::real, 'histogram_bounds', $1::text)
FROM pg_attribute JOIN pg_class ON pg_class.oid = attrelid
WHERE relnamespace = 'safelight'::regnamespace AND relkind = 'r' AND atttypid = 'uuid'::regtype
  AND attname IN ('id', 'task_id')
"""


@pytest.mark.parametrize("question", RANGED)
async def test_a_question_of_the_doctor_keeps_its_cost_when_its_range_is_taken_for_one_row(
    grown: Grown, connection: asyncpg.Connection, question: str
) -> None:
    """The planner cannot tell ids apart that lie between the same two of its sample."""
    transaction = connection.transaction()
    await transaction.start()
    try:
        assert all(row[0] for row in await connection.fetch(_MISJUDGED, f"{{{FIRST},{LAST}}}"))
        plan = await asked_of_a_range(connection, question, UUID(grown.samples["succeeded"][-1]))
    finally:
        await transaction.rollback()
    assert plan.blocks <= RANGE_BLOCKS
    assert plan.read_whole == set()


async def test_ten_thousand_waiting_tasks_of_one_account_cost_a_claim_no_more_than_its_room(
    grown: Grown, connection: asyncpg.Connection
) -> None:
    statement, values = named("tasks.claim_fairest", values_of(grown))
    plan = await carried_out(connection, statement, {**values, "calls_free": 1})
    read = [node for node in plan.nodes if node.get("Index Name") == "tasks_waiting"]
    # Each account offers one row at most: what is read grows with the accounts that wait, not with their tasks.
    assert read
    assert max(node["Actual Rows"] * node["Actual Loops"] for node in read) < 200
    assert plan.blocks < 1_000


async def test_tasks_that_wait_for_their_back_off_are_passed_by_in_the_index(
    grown: Grown, connection: asyncpg.Connection
) -> None:
    """One account's 10,000 tasks that are not due yet: none of their rows is read to find what else is due."""
    statement, values = named("tasks.claim_fairest", values_of(grown))
    transaction = connection.transaction()
    await transaction.start()
    try:
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(
            "UPDATE tasks SET wake_at = clock_now() + interval '10 minutes' WHERE account_id = $1"
            " AND state IN ('queued', 'retrying')",
            UUID(grown.busiest_account),
        )
        given = [values[name] for name in statement.names]
        text = await connection.fetchval(
            f"EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) {statement.sql}", *given
        )
    finally:
        await transaction.rollback()
    read = [
        node
        for node in nodes_of(json.loads(text)[0]["Plan"])
        if node.get("Index Name") == "tasks_waiting" and "wake_at <= " in node["Index Cond"]
    ]
    assert read
    assert sum(node.get("Rows Removed by Filter", 0) for node in read) == 0
    assert sum(node["Shared Hit Blocks"] + node["Shared Read Blocks"] for node in read) < 2_000


async def test_one_accounts_ten_thousand_tasks_do_not_go_before_anothers_first(
    grown: Grown, connection: asyncpg.Connection
) -> None:
    statement, values = named("tasks.claim_fairest", {**values_of(grown), "calls_free": 10})
    transaction = connection.transaction()
    await transaction.start()
    try:
        claimed = await statement.rows(connection, **{name: values[name] for name in statement.names})
    finally:
        await transaction.rollback()
    assert len(claimed) == 10
    owners = [str(row["account_id"]) for row in claimed]
    assert len(set(owners)) > 1
