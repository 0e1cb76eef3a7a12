"""The embedded server: one for every process of a data directory, and no committed row is ever lost."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import asyncpg
import pytest

from safelight.db.embedded import _forget_dead_processes, start_embedded
from safelight.errors import ConfigurationError
from tests.db.processes import Talker, talking
from tests.places import new_data_dir

SHARING = """
    import asyncio, sys
    from pathlib import Path
    import asyncpg
    from safelight.db.embedded import start_embedded

    async def main():
        url = await start_embedded(Path(sys.argv[1]))
        connection = await asyncpg.connect(url)
        if sys.argv[2] == "first":
            await connection.execute("CREATE TABLE marks (text text PRIMARY KEY)")
        print(url, flush=True)
        loop = asyncio.get_running_loop()
        while word := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            await connection.execute("INSERT INTO marks VALUES ($1)", word)
            print("committed " + word, flush=True)
        await connection.close()

    asyncio.run(main())
"""
BYSTANDING = """
    import sys
    print("here", flush=True)
    sys.stdin.read()
"""


@contextlib.asynccontextmanager
async def folder_of_a_server() -> AsyncIterator[Path]:
    """A data directory whose server is stopped at the end, whatever became of the processes."""
    path = new_data_dir()
    try:
        yield path
    finally:
        for file in path.rglob("postmaster.pid"):
            await asyncio.to_thread(stop, file)
        shutil.rmtree(path, ignore_errors=True)


def postmaster_of(data_dir: Path) -> int | None:
    """The process id of the server of this data directory; one that stopped in order has none."""
    try:
        return int((data_dir / "postgres" / "postmaster.pid").read_text().splitlines()[0])
    except FileNotFoundError:
        return None


def stop(file: Path) -> None:
    """Stop the server behind a `postmaster.pid`, if it is still that server."""
    pid = int(file.read_text().splitlines()[0])
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        if str(file.parent) not in Path(f"/proc/{pid}/cmdline").read_text():
            return
        os.kill(pid, signal.SIGINT)
        patience = time.monotonic() + 60.0
        while file.exists() and time.monotonic() < patience:
            time.sleep(0.05)


async def commit(talker: Talker, word: str) -> None:
    await talker.say(word)
    assert await talker.line() == f"committed {word}"


async def marks(url: str) -> set[str]:
    connection = await asyncpg.connect(url, timeout=10)
    try:
        return {row["text"] for row in await connection.fetch("SELECT text FROM marks")}
    finally:
        await connection.close()


async def test_three_processes_share_a_server_that_outlives_the_kill_of_one_of_them() -> None:
    async with contextlib.AsyncExitStack() as stack:
        path = await stack.enter_async_context(folder_of_a_server())
        first = await stack.enter_async_context(talking(SHARING, str(path), "first"))
        url = await first.line()
        others = [await stack.enter_async_context(talking(SHARING, str(path), "other")) for _ in range(2)]
        assert [await other.line() for other in others] == [url, url]
        postmaster = postmaster_of(path)
        for number, talker in enumerate([first, *others]):
            await commit(talker, f"before-{number}")
        await first.kill()
        for number, talker in enumerate(others):
            await commit(talker, f"after-{number}")
        assert postmaster_of(path) == postmaster
        assert await marks(url) == {"before-0", "before-1", "before-2", "after-0", "after-1"}
        late = await stack.enter_async_context(talking(SHARING, str(path), "other"))
        assert await late.line() == url
        await commit(late, "late")
        for talker in (*others, late):
            await talker.end()


async def test_a_process_that_ends_in_order_leaves_the_server_to_the_others() -> None:
    async with contextlib.AsyncExitStack() as stack:
        path = await stack.enter_async_context(folder_of_a_server())
        first = await stack.enter_async_context(talking(SHARING, str(path), "first"))
        url = await first.line()
        second = await stack.enter_async_context(talking(SHARING, str(path), "other"))
        assert await second.line() == url
        await first.end()
        await commit(second, "alone")
        assert await marks(url) == {"alone"}
        await second.end()
        assert postmaster_of(path) is None


async def test_the_next_start_after_the_servers_own_kill_has_every_committed_row() -> None:
    async with contextlib.AsyncExitStack() as stack:
        path = await stack.enter_async_context(folder_of_a_server())
        first = await stack.enter_async_context(talking(SHARING, str(path), "first"))
        await first.line()
        words = {f"word-{number}" for number in range(20)}
        for word in sorted(words):
            await commit(first, word)
        postmaster = postmaster_of(path)
        assert postmaster is not None
        os.kill(postmaster, signal.SIGKILL)
        await first.kill()
        second = await stack.enter_async_context(talking(SHARING, str(path), "other"))
        url = await second.line()
        assert postmaster_of(path) != postmaster
        assert await marks(url) == words
        await commit(second, "after")
        await second.end()


async def test_a_process_id_that_another_program_has_since_taken_does_not_prevent_a_start() -> None:
    """As after a restart of the machine or the container, where the server had no time to tidy up."""
    async with contextlib.AsyncExitStack() as stack:
        path = await stack.enter_async_context(folder_of_a_server())
        first = await stack.enter_async_context(talking(SHARING, str(path), "first"))
        await first.line()
        await commit(first, "before")
        file = path / "postgres" / "postmaster.pid"
        left_behind = file.read_text().splitlines(keepends=True)
        owner = file.stat()
        await first.end()
        assert postmaster_of(path) is None
        bystander = await stack.enter_async_context(talking(BYSTANDING))
        assert await bystander.line() == "here"
        file.write_text("".join([f"{bystander.pid}\n", *left_behind[1:]]))
        os.chown(file, owner.st_uid, owner.st_gid)
        second = await stack.enter_async_context(talking(SHARING, str(path), "other"))
        assert await marks(await second.line()) == {"before"}
        await second.end()
        await bystander.end()


async def test_a_data_directory_that_cannot_be_used_is_a_configuration_error(data_dir: Path) -> None:
    blocked = data_dir / "file"
    blocked.write_text("not a folder")
    with pytest.raises(ConfigurationError, match="does not start"):
        await start_embedded(blocked)


def ways_to_run() -> list[Sequence[str]]:
    """As whoever runs the tests; and as nobody too, where this machine lets us."""
    ways: list[Sequence[str]] = [()]
    as_nobody = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
    if os.geteuid() == 0 and shutil.which("setpriv"):
        tried = subprocess.run(
            [*as_nobody, sys.executable, "-c", "import safelight"], check=False, capture_output=True
        )
        if tried.returncode == 0:
            ways.append(as_nobody)
    return ways


@pytest.mark.parametrize("way", ways_to_run(), ids=lambda way: "as nobody" if way else "as who we are")
async def test_a_server_starts_in_a_folder_of_its_user(way: Sequence[str]) -> None:
    async with contextlib.AsyncExitStack() as stack:
        path = await stack.enter_async_context(folder_of_a_server())
        if way:
            shutil.chown(path, "nobody", "nogroup")
        talker = await stack.enter_async_context(
            talking(SHARING, str(path / "deeper" / "still"), "first", prefix=way, environ={"HOME": str(path)})
        )
        url = await talker.line()
        await commit(talker, "mine")
        assert "postgres" in url
        await talker.end()
        assert postmaster_of(path / "deeper" / "still") is None


async def test_a_path_too_long_for_a_socket_is_refused_before_anything_is_opened_to_others(
    data_dir: Path,
) -> None:
    deep = data_dir / ("a" * 60) / ("b" * 60)
    with pytest.raises(ConfigurationError, match="too long"):
        await start_embedded(deep)
    assert not (deep / "postgres").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only as root the server runs as another OS user")
async def test_as_root_a_private_folder_is_refused_and_stays_private(data_dir: Path) -> None:
    private = data_dir / "private"
    private.mkdir(mode=0o700)
    with pytest.raises(ConfigurationError, match="private"):
        await start_embedded(private / "data")
    assert private.stat().st_mode & 0o777 == 0o700


def test_killed_processes_do_not_keep_the_server_running(tmp_path: Path) -> None:
    handles = tmp_path / ".handle_pids.json"
    handles.write_text(json.dumps([os.getpid(), 4_194_000]))
    _forget_dead_processes(tmp_path)
    assert json.loads(handles.read_text()) == [os.getpid()]
