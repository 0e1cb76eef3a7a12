"""The bench: counts what really came back, starts and removes its own instance, asserts no speed."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest
import typer
from typer.testing import CliRunner

from safelight.cli import bench
from safelight.cli.measure.crowds import Wave, latency_for, measure_crowd
from safelight.cli.measure.figures import Crowd, Figures, Submits, quantiles
from safelight.cli.measure.instance import Instance, own_instance, running_instance
from safelight.cli.measure.load import Load
from safelight.cli.measure.messages import noop_messages, submit_messages
from safelight.cli.measure.report import print_figures
from safelight.cli.measure.run import machine_here
from safelight.cli.measure.submits import measure_submits
from safelight.cli.measure.witness import Witness
from safelight.errors import ConfigurationError

NOWHERE = Instance("as it runs", "http://127.0.0.1:9", "sl_live_key", None)
GOOD = (b"HTTP/1.1 202 Accepted\r\nContent-", b"Length: 4\r\n\r\nab", b"cd")
REFUSED = (b"HTTP/1.1 429 Too Many\r\ncontent-length: 0\r\n\r\n",)


@contextlib.asynccontextmanager
async def answering(*answers: tuple[bytes, ...]) -> AsyncIterator[str]:
    """A server that gives these answers in turn, each in its pieces, and then hangs up."""
    left = iter(answers)
    hung_up = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            for pieces in left:
                await reader.readuntil(b"\r\n\r\n")
                for piece in pieces:
                    writer.write(piece)
                    await writer.drain()
                    await asyncio.sleep(0)
            await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
        hung_up.set()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await hung_up.wait()
    server.close()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([7.0], (7.0, 7.0, 7.0)),
        ([float(number) for number in range(100, 0, -1)], (50.0, 95.0, 99.0)),
        ([1.0, 1_000.0], (1.0, 1_000.0, 1_000.0)),
    ],
)
def test_quantiles_are_values_that_were_measured(
    values: list[float], expected: tuple[float, float, float]
) -> None:
    found = quantiles(values)
    assert found is not None
    assert (found.p50, found.p95, found.p99, found.count) == (*expected, len(values))


def test_no_values_have_no_quantiles() -> None:
    assert quantiles([]) is None


def test_latencies_keep_all_open_and_end_them_at_the_rate() -> None:
    assert latency_for(100, 100.0) == (0.5, 1.5)
    assert latency_for(2_000, 100.0) == (10.0, 30.0)


def test_every_submit_has_a_key_of_its_own_and_a_true_length() -> None:
    messages = list(itertools.islice(submit_messages(NOWHERE, "64x64"), 50))
    heads, bodies = zip(*(message.split(b"\r\n\r\n") for message in messages), strict=True)
    assert len({head.partition(b"Idempotency-Key: ")[2] for head in heads}) == 50
    assert all(
        f"Content-Length: {len(body)}\r\n".encode() in head for head, body in zip(heads, bodies, strict=True)
    )


async def test_the_load_counts_answers_in_pieces_and_refusals_apart() -> None:
    async with answering(GOOD, REFUSED, GOOD) as url, Load(url, 1) as load:
        burst = await load.send(itertools.islice(noop_messages(NOWHERE), 3), keep_bodies=True)
    assert burst.bodies == [b"abcd", b"abcd"]
    assert burst.refused == {429: 1}
    assert len(burst.latencies_ms) == 3
    assert burst.per_s == pytest.approx(2 / burst.elapsed_s)


async def test_a_server_that_hangs_up_is_an_error_and_no_figure() -> None:
    async with answering(GOOD) as url, Load(url, 1) as load:
        with pytest.raises(ConnectionError):
            await load.send(noop_messages(NOWHERE), seconds=5.0)


def test_a_running_instance_needs_an_address_and_a_key(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SAFELIGHT_API_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="no instance in"):
        running_instance(None, data_dir, "http://127.0.0.1:8001")
    with pytest.raises(ConfigurationError, match="key is missing"):
        running_instance("http://127.0.0.1:8000", None, "http://127.0.0.1:8001")
    (data_dir / "url").write_text("http://127.0.0.1:8000\n")
    (data_dir / "key").write_text("sl_live_key\n")
    found = running_instance(None, data_dir, "http://127.0.0.1:8001/")
    assert (found.url, found.key, found.lab_url) == (
        "http://127.0.0.1:8000",
        "sl_live_key",
        "http://127.0.0.1:8001",
    )


async def test_its_own_instance_is_measured_and_leaves_nothing_behind() -> None:
    async with own_instance() as instance:
        data_dir = instance.data_dir
        assert data_dir is not None
        crowd = await measure_crowd(instance, Wave(12, waves=2))
        submits = await measure_submits(instance, connections=4, rounds=1, round_s=0.2)
        async with Witness(instance) as witness:
            books = await witness.books()
            with pytest.raises(ConfigurationError, match="grant some"):
                await witness.check_credits(10**12)
    assert (crowd.tasks, crowd.ready) == (24, 24)
    assert crowd.delay_ms is not None
    assert crowd.delay_ms.count == 24
    assert UUID(int=0) not in books.done_at
    assert submits.submits_per_s > 0
    assert submits.noop_per_s > 0
    assert not await asyncio.to_thread(data_dir.exists)


def test_the_tables_show_figures_beside_aims(capsys: pytest.CaptureFixture[str]) -> None:
    some = quantiles([1.0, 2.0, 3.0])
    submits = Submits("api", 64, 1, 500.0, some, 1_000.0, some, 0.5, 0.1)
    crowd = Crowd("64x64", 100, (0.5, 1.5), 0.0, 100, 99, 1.0, 99.0, some, 0.25)
    print_figures(Figures(machine_here(), True, 100.0, [submits], [crowd], [crowd]))
    shown = capsys.readouterr().out
    for words in ("≥ 0.25 ✓", "p99 ≤ 500 ✓", "≤ 0.1 ✗", "99/100", "include a backlog"):
        assert words in shown


def test_help_says_what_it_touches() -> None:
    app = typer.Typer(rich_markup_mode=None)
    app.add_typer(bench.commands)
    ended = CliRunner().invoke(app, ["bench", "--help"])
    assert ended.exit_code == 0
    assert "nothing else is touched" in " ".join(ended.stdout.split())
