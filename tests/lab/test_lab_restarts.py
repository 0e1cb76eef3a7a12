"""The lab is killed and started again: the ledger is the witness."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import aiohttp
import pytest

from safelight.lab.books import Books
from safelight.lab.ledger import Ledger
from tests.lab.upstream import QUICK, Receiver, Upstream, open_upstream

PROGRAM = """
import asyncio, sys
from pathlib import Path
from safelight.lab import Knobs, serve_lab
asyncio.run(serve_lab(host="127.0.0.1", port=0, data_dir=Path(sys.argv[1]), knobs=Knobs.parse(sys.argv[2]),
                      die_with_stdin=True, on_ready=lambda port: print(port, flush=True)))
"""


@contextmanager
def lab_process(data_dir: Path, **knobs: object) -> Iterator[tuple[subprocess.Popen[str], str]]:
    command = [sys.executable, "-c", PROGRAM, str(data_dir), json.dumps(QUICK | knobs)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stdin is not None
    try:
        yield process, f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


async def test_after_a_kill_open_jobs_finish_and_call_back(tmp_path: Path, receiver: Receiver) -> None:
    async with aiohttp.ClientSession() as session:
        with lab_process(tmp_path, latency_s=[1.5, 1.5]) as (process, base):
            upstream = Upstream(base, session)
            _, opened = await upstream.submit("callback", callback_url=receiver.url)
            done = await upstream.submit("sync", reference="r2", lab=QUICK, headers={"Idempotency-Key": "k"})
            process.send_signal(signal.SIGKILL)
            process.wait()
        with (tmp_path / "ledger.jsonl").open("ab") as file:
            file.write(b'{"event":"accepted","id":"cal_torn')
        with lab_process(tmp_path) as (_, base):
            upstream = Upstream(base, session)
            ledger = await upstream.ledger()
            assert (ledger["accepted"], [item["reference"] for item in ledger["items"]]) == (
                2,
                ["ref-1", "r2"],
            )
            await receiver.until(lambda: "done" in receiver.words())
            record = await upstream.finished(opened["id"], "callback")
            assert record["images"][0]["url"].startswith(base)
            again = await upstream.submit("sync", reference="r2", lab=QUICK, headers={"Idempotency-Key": "k"})
            assert again == done
            assert [(await upstream.ledger())[total] for total in ("accepted", "billed")] == [2, 2]


async def test_every_answered_submit_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    answered: list[str] = []

    async def submit_on_and_on(upstream: Upstream, lane: int) -> None:
        for number in range(10_000):
            try:
                _, job = await upstream.submit(reference=f"{lane}-{number}")
            except aiohttp.ClientError:
                return
            answered.append(job["id"])

    async with aiohttp.ClientSession() as session:
        with lab_process(tmp_path) as (process, base):
            lanes = [
                asyncio.create_task(submit_on_and_on(Upstream(base, session), lane)) for lane in range(8)
            ]
            await asyncio.sleep(0.5)
            process.send_signal(signal.SIGKILL)
            await asyncio.gather(*lanes)
        async with open_upstream(tmp_path) as upstream:
            for job_id in answered:
                assert (await upstream.finished(job_id))["cost"] == 1
    assert len(answered) > 8


async def test_a_job_keeps_its_fate_over_a_restart(tmp_path: Path) -> None:
    async with open_upstream(tmp_path, {"latency_s": [0.5, 0.5], "fail": 1}) as upstream:
        _, job = await upstream.submit()
    async with open_upstream(tmp_path) as upstream:
        record = await upstream.finished(job["id"])
        assert (record["status"], record["run_s"]) == ("failed", 0.5)


async def test_an_end_that_nobody_heard_of_is_announced_after_a_restart(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with open_upstream(tmp_path, {"callback_delay_s": 60}) as upstream:
        _, job = await upstream.submit("callback", callback_url=receiver.url)
        await upstream.finished(job["id"], "callback")
        assert "done" not in receiver.words()
    lines = (tmp_path / "ledger.jsonl").read_text().replace('"callback_delay_s":60.0', '"callback_delay_s":0')
    (tmp_path / "ledger.jsonl").write_text(lines)
    for _ in range(2):
        async with open_upstream(tmp_path):
            await receiver.until(lambda: "done" in receiver.words())
            await asyncio.sleep(0.05)
    assert receiver.words().count("done") == 1


async def test_result_urls_outlive_a_restart(tmp_path: Path) -> None:
    async with open_upstream(tmp_path) as upstream:
        _, job = await upstream.submit()
        path = (await upstream.finished(job["id"]))["images"][0]["url"].removeprefix(upstream.base)
    async with open_upstream(tmp_path) as upstream:
        assert (await upstream.session.get(upstream.base + path)).status == 200


@pytest.mark.parametrize("end", ["terminate", "stdin"])
async def test_the_lab_ends_when_told_or_when_its_parent_is_gone(tmp_path: Path, end: str) -> None:
    with lab_process(tmp_path) as (process, _):
        if end == "terminate":
            process.terminate()
        else:
            assert process.stdin is not None
            process.stdin.close()
        assert await asyncio.to_thread(process.wait, 10) == 0


async def test_a_hundred_thousand_lines_are_read_quickly(tmp_path: Path) -> None:
    async with open_upstream(tmp_path) as upstream:
        _, job = await upstream.submit(prompt="a prompt of usual length, with some words about light")
        await upstream.finished(job["id"])
    accepted, ended = (tmp_path / "ledger.jsonl").read_text().splitlines()
    with (tmp_path / "many.jsonl").open("w") as file:
        for number in range(50_000):
            name = f"pol_{number:020}"
            file.write(accepted.replace(job["id"], name) + "\n" + ended.replace(job["id"], name) + "\n")
    books, ledger = Books(), Ledger(tmp_path / "many.jsonl")
    started = time.process_time()
    books.replay(ledger.read())
    assert time.process_time() - started < 5
    assert (books.accepted, books.billed) == (50_000, 50_000)
    await ledger.close()


async def test_two_labs_cannot_share_a_ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("safelight.lab.ledger.LOCK_WAIT_S", 0)
    async with open_upstream(tmp_path):
        with pytest.raises(ValueError, match="in use"):
            Ledger(tmp_path / "ledger.jsonl")


def test_damage_in_the_middle_of_a_ledger_is_not_read_over(tmp_path: Path) -> None:
    (tmp_path / "ledger.jsonl").write_text('{"event":"acc\n{"event":"ended"}\n')
    with pytest.raises(ValueError, match=r"ledger\.jsonl:1 is damaged"):
        list(Ledger(tmp_path / "ledger.jsonl").read())
