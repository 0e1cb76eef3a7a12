"""Many tasks against a misbehaving lab, with the service killed in between; then everybody's books are compared.

Run it by hand with `python -m tests.acceptance.rehearsal --tasks 200 --kills 10 --knobs '{"callback_loss": 0.3}'`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import shutil
import sys
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from tests.acceptance.installed import Installed
from tests.places import new_data_dir

MODELS = ("lab-callback", "lab-poll", "lab-sync")
QUIET_S = 8.0
"""No task has ended for so long: what is left waits for a time-out, and the clock is moved."""
STEP_S = 60.0


@dataclass
class Report:
    """What came of a rehearsal."""

    tasks: int
    seconds: float = 0.0
    kills: int = 0
    ready: int = 0
    failed: dict[str, int] = field(default_factory=dict)
    review: dict[str, int] = field(default_factory=dict)
    attempts: int = 0
    accepted: int = 0
    billed: int = 0
    accepted_twice: list[str] = field(default_factory=list)
    available: int = 0
    held: int = 0
    captured: int = 0
    polls: int = 0
    lost: list[str] = field(default_factory=list)
    doctor: str = ""
    doctor_code: int = -1


async def rehearse(
    *, tasks: int, kills: int, knobs: dict[str, Any], seed: int, size: str = "64x64"
) -> Report:
    """Submit the tasks, kill and restart the service, wait for every end, and report."""
    random.seed(seed)
    data_dir = new_data_dir()
    service = Installed(data_dir, knobs=knobs)
    report = Report(tasks=tasks)
    try:
        await service.start()
        began = time.monotonic()
        submitting = asyncio.create_task(_submit_all(service, tasks, size))
        for _ in range(kills):
            await asyncio.sleep(random.uniform(0.2, 2.5))
            await service.kill()
            report.kills += 1
            await service.start()
        ids = await asyncio.wait_for(submitting, 300)
        await wait_for_ends(service, set(ids))
        report.seconds = time.monotonic() - began
        await _read_books(service, ids, report)
        doctor = await asyncio.to_thread(service.run, "doctor")
        report.doctor, report.doctor_code = doctor.stdout + doctor.stderr, doctor.returncode
        return report
    finally:
        await service.stop()
        shutil.rmtree(data_dir, ignore_errors=True)
        service.log.unlink(missing_ok=True)


async def _submit_all(service: Installed, tasks: int, size: str) -> list[str]:
    room = asyncio.Semaphore(16)

    async def submit(number: int) -> str:
        body = {"model": MODELS[number % 3], "prompt": f"a red shoe, number {number}", "size": size}
        key = uuid.uuid4().hex
        async with room:
            while True:
                found = await _try_submit(service, body, key)
                if found is not None:
                    return found
                await asyncio.sleep(0.2)

    return list(await asyncio.gather(*(submit(number) for number in range(tasks))))


async def _try_submit(service: Installed, body: dict[str, Any], key: str) -> str | None:
    """One try; None where the customer heard nothing or was asked to come again."""
    try:
        async with (
            service.customer() as customer,
            customer.post(f"{service.url}/v1/tasks", json=body, headers={"Idempotency-Key": key}) as answer,
        ):
            if answer.status == 202:
                receipt = await answer.json()
                return str(receipt["id"])
            assert answer.status in (409, 429, 503), await answer.text()
    except (OSError, aiohttp.ClientError, TimeoutError):
        pass
    return None


async def wait_for_ends(service: Installed, open_ids: set[str]) -> None:
    """Until every task is terminal or in review; when nothing ends any more, time is moved to its next time-out."""
    changed_at = time.monotonic()
    async with service.database() as database:
        while open_ids:
            async with database.connection() as connection:
                rows = await connection.fetch(
                    "SELECT id FROM tasks WHERE finished_at IS NOT NULL OR state = 'review'"
                )
            before = len(open_ids)
            open_ids -= {str(row["id"]) for row in rows}
            if len(open_ids) < before:
                changed_at = time.monotonic()
            elif time.monotonic() - changed_at > QUIET_S:
                await service.pass_time(STEP_S)
                changed_at = time.monotonic()
            await asyncio.sleep(0.2)


async def _read_books(service: Installed, ids: list[str], report: Report) -> None:
    async with service.database() as database, database.connection() as connection:
        rows = await connection.fetch("SELECT id, state, failure_code, review_reason FROM tasks ORDER BY id")
        report.attempts = await connection.fetchval("SELECT count(*) FROM attempts")
        account = await connection.fetchrow("SELECT available, held FROM accounts WHERE name = 'default'")
        report.captured = await connection.fetchval(
            "SELECT coalesce(sum(captured), 0)::bigint FROM settlements"
        )
    report.available, report.held = account["available"], account["held"]
    known = {str(row["id"]) for row in rows}
    report.lost = sorted(set(ids) - known)
    for row in rows:
        if row["state"] == "succeeded":
            report.ready += 1
        elif row["state"] == "review":
            report.review[row["review_reason"]] = report.review.get(row["review_reason"], 0) + 1
        else:
            code = f"{row['state']}:{row['failure_code']}"
            report.failed[code] = report.failed.get(code, 0) + 1
    ledger = await service.lab_ledger()
    report.accepted, report.billed, report.polls = ledger["accepted"], ledger["billed"], ledger["polls"]
    report.accepted_twice = [item["reference"] for item in ledger["items"] if item["times_accepted"] > 1]


def main() -> None:
    """The command line of a rehearsal."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--tasks", type=int, default=200)
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--knobs", default="{}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--size", default="64x64")
    chosen = parser.parse_args()
    report = asyncio.run(
        rehearse(
            tasks=chosen.tasks,
            kills=chosen.kills,
            knobs=json.loads(chosen.knobs),
            seed=chosen.seed,
            size=chosen.size,
        )
    )
    sys.stdout.write(json.dumps(report.__dict__, indent=2) + "\n")


if __name__ == "__main__":
    main()
