"""A table of a thousand products through `safelight batch run`, broken off in the middle and gone on with.

    .venv/bin/python bench/batch.py
    .venv/bin/python bench/batch.py --products 200 --model lab-callback

On a scratch installation with its lab. `batch run` gets Ctrl-C (SIGINT) once half of the pictures are ready;
`batch resume` follows to the end, and `batch results` brings the zip. Then everything is counted: files, lines of the
manifest, pictures in the zip, credits, what the lab billed, and how many were at work together. Exits with 1 if any
count is not the right one.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import shutil
import signal
import sys
import time
import zipfile
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp

from safelight.cli.measure.instance import new_data_dir
from safelight.cli.output import print_table
from safelight.cli.rehearsal.plan import Plan
from safelight.cli.rehearsal.scratch import GRANTED, Scratch, scratch
from safelight.cli.running import INTERRUPTED
from safelight.client import AsyncClient

AT_WORK = """
SELECT max(running) FROM (
    SELECT sum(step) OVER (ORDER BY moment, step) AS running FROM (
        SELECT min(created_at) FILTER (WHERE target = 'submitting') AS moment, 1 AS step
        FROM task_events WHERE task_id IN (SELECT id FROM tasks WHERE batch_id = $1) GROUP BY task_id
        UNION ALL
        SELECT finished_at, -1 FROM tasks WHERE batch_id = $1
    ) AS steps
) AS path
"""
"""The most that were at work together, by their histories."""


class Commands:
    """Runs the installed command against the scratch installation."""

    def __init__(self, place: Scratch) -> None:
        self._environment = place.environment | {
            "SAFELIGHT_URL": place.url,
            "SAFELIGHT_API_KEY": place.key,
            "NO_COLOR": "1",
        }

    async def begin(self, *words: str) -> asyncio.subprocess.Process:
        """Start `safelight batch …`."""
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "safelight",
            "batch",
            *words,
            env=self._environment,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *words: str) -> str:
        """Run it to its end, which must be a good one; what it says."""
        out, errors = await (process := await self.begin(*words)).communicate()
        if process.returncode:
            raise SystemExit(f"safelight batch {' '.join(words)}: {errors.decode()}")
        return out.decode()


def write_table(path: Path, products: int) -> None:
    """So many products, with a comma, quotation marks and letters beyond ASCII."""
    with path.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("sku", "colour", "product"))
        rows.writerows((f"S{number:04}", "rouge, foncé", f"shoe “{number}”") for number in range(products))


async def interrupt_half_way(
    commands: Commands, words: list[str], place: Scratch, products: int
) -> tuple[str, int]:
    """Begin the run and send SIGINT once half is ready; the batch's id, and how many were ready then."""
    running = await commands.begin(*words)
    async with AsyncClient(place.url, place.key) as client:
        while True:
            if running.returncode is not None:
                raise SystemExit(f"the run ended too early: {(await running.communicate())[1].decode()}")
            found = (await client.list_batches()).data
            if found and found[0].ready >= products // 2:
                break
            await asyncio.sleep(0.1)
    running.send_signal(signal.SIGINT)
    await running.communicate()
    if (code := await running.wait()) != INTERRUPTED:
        raise SystemExit(f"an interrupted run ends with {INTERRUPTED}, and this one did with {code}")
    return found[0].id, found[0].ready


def count_files(out: Path, archive: Path) -> dict[str, Any]:
    """What came home."""
    with zipfile.ZipFile(archive) as opened:
        is_whole = opened.testzip() is None
        zipped = [name for name in opened.namelist() if name.endswith(".png")]
    return {
        "pictures in the folder": len(list(out.glob("*.png"))),
        "lines of the manifest": len((out / "manifest.jsonl").read_text(encoding="utf-8").splitlines()),
        "pictures in the zip": len(zipped) if is_whole else "the zip is damaged",
    }


async def count(place: Scratch, batch_id: str, out: Path, archive: Path) -> dict[str, Any]:
    """What there is, on every side."""
    async with place.books.connection() as connection:
        at_work = await connection.fetchval(AT_WORK, UUID(batch_id))
    async with AsyncClient(place.url, place.key) as client:
        batch, balance = await client.get_batch(batch_id), await client.balance()
    async with aiohttp.ClientSession() as session, session.get(f"{place.lab.url}/lab/ledger") as answer:
        lab = await answer.json()
    return {
        **await asyncio.to_thread(count_files, out, archive),
        "items that are ready": batch.ready,
        "credits captured": batch.credits.captured,
        "credits gone from the balance": GRANTED - balance.available,
        "credits still held": balance.held,
        "pictures that the lab billed": lab["billed"],
        "at work together, at most": at_work,
    }


async def rehearse(place: Scratch, asked: argparse.Namespace, folder: Path) -> int:
    """Run, break off, go on, fetch, count."""
    commands, table, out, archive = (
        Commands(place),
        folder / "products.csv",
        folder / "out",
        folder / "all.zip",
    )
    write_table(table, asked.products)
    words = ["run", str(table), "--prompt", "a {{colour}} {{product}} on white", "--name", "{{sku}}", "--size", "64x64",
             "--model", asked.model, "--at-once", str(asked.at_once), "--out", str(out)]  # fmt: skip
    began = time.monotonic()
    batch_id, ready = await interrupt_half_way(commands, words, place, asked.products)
    half_s = time.monotonic() - began
    await commands.run("resume", batch_id, "--out", str(out))
    whole_s = time.monotonic() - began
    await commands.run("results", batch_id, "-o", str(archive))
    zip_s = time.monotonic() - began - whole_s
    counts = await count(place, batch_id, out, archive)
    right = dict.fromkeys(counts, asked.products) | {
        "credits still held": 0,
        "at work together, at most": asked.at_once,
    }
    print_table(("count", "found", "right"), [(name, str(counts[name]), str(right[name])) for name in counts])
    timed = [
        (f"interrupted with {ready} ready", f"{half_s:.1f}"),
        ("all ready and saved", f"{whole_s:.1f}"),
        (f"the zip, {archive.stat().st_size / 1e6:.1f} MB", f"{zip_s:.1f}"),
    ]
    print_table(("seconds from the start; for the zip, its own", ""), timed)
    return 0 if counts == right else 1


async def main() -> int:
    """Rehearse and say how it went."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--products", type=int, default=1_000)
    parser.add_argument("--at-once", type=int, default=5)
    parser.add_argument("--model", default="lab-sync")
    asked = parser.parse_args()
    folder = new_data_dir("safelight-batch-")
    try:
        async with scratch(Plan(workers=1, latency_s=(0.0, 0.2))) as place:
            return await rehearse(place, asked, folder)
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
