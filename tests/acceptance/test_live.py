"""Live events and batches with the installed command: killed in the middle, and nothing lost or told twice."""

from __future__ import annotations

import asyncio
import csv
import json
import zipfile
from pathlib import Path

import pytest
from PIL import Image

from safelight.client import AsyncClient, Event
from tests.acceptance.installed import Installed

PRODUCTS = 40
"""Rows of the catalogue here; the command is the same for a thousand."""


async def test_a_stream_goes_on_after_the_service_was_killed_and_tells_each_event_once(
    service: Installed,
) -> None:
    heard: list[Event] = []
    async with AsyncClient(f"http://127.0.0.1:{service.port}", service.key) as client:
        is_open = asyncio.Event()

        async def watch() -> None:
            async for event in client.events():
                heard.append(event)
                is_open.set()
                if sum(each.is_last for each in heard) == 6:
                    return

        watching = asyncio.create_task(watch())
        async with asyncio.timeout(600):
            await is_open.wait()
            first = [(await client.create(f"lamp {number}", size="64x64")).id for number in range(3)]
            await service.until_taken(first)
            await service.kill()
            await service.start()
            second = [(await client.create(f"shoe {number}", size="64x64")).id for number in range(3)]
            await watching
        known = await client.list()
    numbers = [event.number for event in heard]
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert [event.kind for event in heard[1:]] == ["task"] * (len(heard) - 1)
    assert {event.task_id for event in heard if event.is_last} == {*first, *second}
    assert {task.id for task in known.data} == {*first, *second}
    for task_id in (*first, *second):
        versions = [event.version for event in heard if event.task_id == task_id]
        assert versions == sorted(versions)


@pytest.fixture
def catalogue(tmp_path: Path) -> Path:
    """A file of products."""
    path = tmp_path / "products.csv"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["sku", "colour", "product"])
        writer.writerows([f"S{number:04}", "red, dark", f"shoe “{number}”"] for number in range(PRODUCTS))
    return path


async def test_a_catalogue_is_drawn_five_at_once_through_an_interruption_and_paid_for_once(
    service: Installed, catalogue: Path
) -> None:
    out = catalogue.with_suffix("")
    words = [
        "batch", "run", str(catalogue), "--prompt", "a {{colour}} {{product}} on white", "--size", "64x64",
        "--model", "lab-sync", "--at-once", "5", "--name", "{{sku}}", "--out", str(out),
    ]  # fmt: skip
    running = await service.begin(*words)
    note = out / "batch.json"
    batch_id = ""
    for _ in range(2_000):
        if note.exists() and (batch_id := json.loads(note.read_text())["id"]):
            break
        await asyncio.sleep(0.05)
    running.kill()
    await running.wait()
    await service.kill()
    await service.start()
    followed = ("batch", "resume", batch_id, "--out", str(out), "--json")
    done = await asyncio.to_thread(service.run, *followed, timeout_s=600.0)
    assert done.returncode == 0, done.stderr
    batch = json.loads(done.stdout)
    assert (batch["status"], batch["counts"]["ready"], batch["at_once"]) == ("finished", PRODUCTS, 5)
    assert batch["credits"] == {"held": 0, "captured": PRODUCTS, "released": 0}
    pictures = sorted(out.glob("*.png"))
    assert [path.name for path in pictures] == [f"S{n:04}-{n + 1:05}.png" for n in range(PRODUCTS)]
    for path in pictures:
        with Image.open(path) as picture:
            assert picture.size == (64, 64)
    prompts = [json.loads(line)["prompt"] for line in (out / "manifest.jsonl").read_text().splitlines()]
    assert prompts[3] == "a red, dark shoe “3” on white"
    again = await asyncio.to_thread(service.run, *words)
    assert again.returncode == 0, again.stderr
    balance = await asyncio.to_thread(service.run, "credits", "balance", "--json")
    assert json.loads(balance.stdout) == {"available": 1_000 - PRODUCTS, "held": 0}
    archive = out / "all.zip"
    zipped = await asyncio.to_thread(service.run, "batch", "results", batch_id, "-o", str(archive))
    assert zipped.returncode == 0, zipped.stderr
    with zipfile.ZipFile(archive) as opened:
        assert opened.testzip() is None
        assert len(opened.namelist()) == PRODUCTS + 1
    assert await service.most_at_work(batch_id) <= 5
    doctor = await asyncio.to_thread(service.run, "doctor")
    assert doctor.returncode == 0, doctor.stdout
