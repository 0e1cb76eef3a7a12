"""What must hold after every test, whatever happened in it: read from the rows and from the lab's own ledger."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from itertools import pairwise

from safelight.domain.failure import MAX_ATTEMPTS, MAX_ATTEMPTS_IN_ALL
from safelight.domain.task import TERMINAL, TRANSITIONS, WAITING, State
from tests.world import World

_BALANCES = """
SELECT name FROM accounts
LEFT JOIN (SELECT account_id, sum(available_delta) AS available, sum(held_delta) AS held
           FROM entries GROUP BY account_id) AS posted ON posted.account_id = accounts.id
WHERE (accounts.available, accounts.held) IS DISTINCT FROM (coalesce(posted.available, 0), coalesce(posted.held, 0))
   OR accounts.available < 0 OR accounts.held < 0
   OR accounts.held <> (SELECT coalesce(sum(held), 0) FROM tasks
                        WHERE account_id = accounts.id AND finished_at IS NULL)
   OR accounts.open_tasks <> (SELECT count(*) FROM tasks WHERE account_id = accounts.id AND finished_at IS NULL)
"""
_SETTLEMENTS = """
SELECT tasks.id, tasks.state, tasks.held, settlements.captured, settlements.released,
       (SELECT count(*) FROM assets WHERE task_id = tasks.id) * tasks.unit_price AS worth
FROM tasks LEFT JOIN settlements ON settlements.task_id = tasks.id
"""


# Only what had a chance counts; the keys of a provider are one.
_TOO_MANY = """
SELECT task_id, provider, made FROM (
    SELECT task_id, regexp_replace(provider, '-[0-9]+$', '') AS provider, count(*) AS made,
           sum(count(*)) OVER (PARTITION BY task_id) AS in_all
    FROM attempts WHERE sends > throttled OR accepted_at IS NOT NULL GROUP BY 1, 2, upstream_model
) AS counted WHERE made > $1 OR in_all > $2
"""
_STRAYED = """
SELECT tasks.id, tasks.provider, attempts.provider FROM tasks
JOIN attempts ON attempts.task_id = tasks.id AND attempts.number = tasks.attempt
WHERE (tasks.provider, tasks.upstream_model) <> (attempts.provider, attempts.upstream_model)
  AND tasks.state NOT IN ('queued', 'retrying', 'failed', 'canceled')
"""


async def assert_books(world: World) -> None:
    """Money, states, history and generations are in order."""
    assert await world.rows(_BALANCES) == [], "a balance is not the sum of its entries and holds"
    for row in await world.rows(_SETTLEMENTS):
        is_ended = State(row["state"]) in TERMINAL
        assert is_ended == (row["captured"] is not None), f"{row['state']} and settlement of {row['id']}"
        if is_ended:
            assert row["captured"] + row["released"] == row["held"]
            assert row["captured"] == (row["worth"] if row["state"] == "succeeded" else 0)
            assert (row["captured"] > 0) == (row["state"] == "succeeded")
    await _assert_histories(world)
    await _assert_attempts(world)
    for item in (await world.lab_ledger())["items"]:
        assert item["times_accepted"] == 1, f"{item['reference']} was generated twice"


async def history(world: World, task_id: object) -> list[str]:
    """The states a task went through, in order."""
    rows = await world.rows("SELECT target FROM task_events WHERE task_id = $1 ORDER BY version", task_id)
    return [row["target"] for row in rows]


async def fingerprint(world: World, *, without: Sequence[str] = ()) -> str:
    """One hash over every row of every table but the mere counts: equal only if nothing at all was changed."""
    tables = await world.rows(
        "SELECT schemaname, tablename FROM pg_tables WHERE schemaname IN ('safelight', 'pgqueuer')"
        " AND tablename <> ALL($1::text[]) ORDER BY 1, 2",
        ["callback_counts", *without],
    )
    digest = hashlib.sha256()
    for table in tables:
        name = f'"{table["schemaname"]}"."{table["tablename"]}"'
        whole = f"SELECT string_agg(one::text, '|' ORDER BY one::text) FROM {name} AS one"
        digest.update(f"{name}:{await world.value(whole)};".encode())
    return digest.hexdigest()


async def _assert_histories(world: World) -> None:
    rows = await world.rows(
        "SELECT tasks.id, tasks.state, tasks.version AS last, event.version, event.source, event.target"
        " FROM tasks JOIN task_events AS event ON event.task_id = tasks.id ORDER BY tasks.id, event.version"
    )
    paths: dict[object, list[tuple[str | None, str]]] = {}
    for row in rows:
        path = paths.setdefault(row["id"], [])
        path.append((row["source"], row["target"]))
        assert row["version"] == len(path), f"the history of {row['id']} jumps"
        if row["version"] == row["last"]:
            assert row["target"] == row["state"]
    for path in paths.values():
        assert path[0] == (None, "queued")
        for (_, before), (source, target) in pairwise(path):
            assert source == before
            is_reroute = source == target and State(target) in WAITING
            assert is_reroute or State(target) in TRANSITIONS[State(before)], (
                f"{before} to {target} in {path}"
            )
        assert sum(State(target) in TERMINAL for _, target in path) <= 1


async def _assert_attempts(world: World) -> None:
    assert await world.rows(_TOO_MANY, MAX_ATTEMPTS, MAX_ATTEMPTS_IN_ALL) == [], (
        "more attempts than a task may have"
    )
    assert await world.rows(_STRAYED) == [], "a task stands at another provider than its attempt"
    rows = await world.rows(
        "SELECT tasks.id, tasks.attempt, count(attempts.number) AS made, max(attempts.number) AS highest,"
        "       count(*) FILTER (WHERE attempts.number < tasks.attempt AND attempts.outcome IS NULL) AS left_open,"
        "       max(attempts.sends - attempts.throttled) AS sends"
        " FROM tasks LEFT JOIN attempts ON attempts.task_id = tasks.id GROUP BY tasks.id"
    )
    for row in rows:
        assert row["made"] == row["attempt"] == (row["highest"] or 0)
        assert row["left_open"] == 0, f"an earlier attempt of {row['id']} was never proved over"
        assert (row["sends"] or 0) <= 5
