"""The folder store against hostile names, links, full disks and power cuts."""

from __future__ import annotations

import asyncio
import errno
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safelight.assets.local import LocalStore
from safelight.assets.store import is_key, new_key
from safelight.errors import AssetError
from tests.assets.conftest import words

BAD_STEPS = words(
    ".. . ... ../ ./ ..\\ \\ / // ~ ~root .hidden .incoming -x _x %2e%2e %2e%2e%2f ..%2f ..%c0%af ..%00/ "
    "..;/ . ．． ‥ ／ ∕ ⁄ ＼ a\0 \0 a\nb a\r \t a\tb a:b C: C:\\x \\\\server\\share file:///x a*b a?b a|b "
    "a<b a>b a\"b a'b a`b a$b $(x) a;b a&b a#b a%b a+b a=b a,b a@b a!b a(b) a[b] a{b} é 图 😀 \u202egnp "
    "\u200b \ufeff \ud83d a..b a.b.c a. .a a.PNG a.toolongsuffix"
)
BAD_KEYS = [
    *BAD_STEPS,
    *(f"a/{step}" for step in BAD_STEPS),
    *(f"{step}/a" for step in BAD_STEPS),
    *(f"a/{step}/b.png" for step in BAD_STEPS),
    *("", " ", "/", "a ", " a", "a/b ", "a/../../x", "a/b\0.png", "a\n", "a.png\n"),
    *words("a/ /a a//b a/b/ ../../etc/passwd /etc/passwd a/../b a\\..\\b"),
    *("y" * 129, "a" * 513, "/".join("a" * 9), "a/" * 200 + "b"),
]  # fmt: skip


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[LocalStore]:
    one = LocalStore(tmp_path / "assets")
    yield one
    await one.aclose()


def everything_below(path: Path) -> set[str]:
    return {str(found.relative_to(path)) for found in path.rglob("*")}


async def refusals(store: LocalStore, key: str) -> set[str]:
    found = set()
    for attempt in (store.put(key, b"x"), store.get(key), store.exists(key), store.delete(key)):
        with pytest.raises(AssetError) as caught:
            await attempt
        found.add(caught.value.reason)
    return found


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(set(BAD_KEYS)) >= 200


@pytest.mark.parametrize("key", sorted(set(BAD_KEYS)))
async def test_a_hostile_name_is_refused_and_touches_nothing(
    store: LocalStore, tmp_path: Path, key: str
) -> None:
    before = everything_below(tmp_path)
    assert await refusals(store, key) == {"bad_key"}
    assert everything_below(tmp_path) == before


@given(st.text(alphabet="ab./\\\0~%-_ \n", max_size=12) | st.text(max_size=40))
def test_whatever_passes_as_a_key_stays_below_the_root(text: str) -> None:
    if is_key(text):
        root = "/root/of/assets"
        assert os.path.normpath(f"{root}/{text}") == f"{root}/{text}"
        assert text.isascii()
        assert text.isprintable()


async def test_a_link_is_never_followed_wherever_it_stands(store: LocalStore, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "x").write_bytes(b"secret")
    await store.put("a/b/c", b"bytes")
    root = tmp_path / "assets"
    (root / "folder").symlink_to(outside)
    (root / "a" / "up").symlink_to(root / "a" / "b")
    (root / "a" / "file").symlink_to(outside / "x")
    for key in ("folder/x", "a/up/c", "folder/new/y"):
        assert await refusals(store, key) == {"bad_key"}
    with pytest.raises(AssetError, match="link"):
        await store.get("a/file")
    assert not await store.exists("a/file")
    assert {key async for key, *_ in store.keys("")} == {"a/b/c"}
    await store.put("a/file", b"bytes")
    assert (outside / "x").read_bytes() == b"secret", "the link was replaced, not written through"
    assert everything_below(outside) == {"x"}


async def test_a_root_behind_a_link_is_the_operators_choice(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "assets").symlink_to(tmp_path / "disk")
    store = LocalStore(tmp_path / "assets")
    await store.put("a/b", b"bytes")
    assert (tmp_path / "disk" / "a" / "b").read_bytes() == b"bytes"
    await store.aclose()


async def test_a_folder_or_a_pipe_is_no_asset(store: LocalStore, tmp_path: Path) -> None:
    await store.put("a/b/c", b"bytes")
    os.mkfifo(tmp_path / "assets" / "pipe")
    for key in ("a/b", "pipe"):
        assert not await store.exists(key)
        with pytest.raises(AssetError, match="no regular file"):
            await store.get(key)


async def test_the_file_is_synced_before_it_gets_its_name_and_the_name_before_put_returns(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    fsync, replace, mkdir = os.fsync, os.replace, os.mkdir
    root = str(tmp_path / "assets")

    def name_of(file: int) -> str:
        return str(Path(f"/proc/self/fd/{file}").readlink()).removeprefix(root)

    def seen_fsync(file: int) -> None:
        steps.append(f"sync {'/.incoming/?' if '/.incoming/' in name_of(file) else name_of(file) or '/'}")
        fsync(file)

    def seen_replace(source: object, target: object, **options: int) -> None:
        steps.append(f"rename {str(target).removeprefix(root)}")
        replace(source, target, **options)  # type: ignore[arg-type]  # passed on as it came

    def seen_mkdir(path: object, *rest: object, **options: int) -> None:
        steps.append(f"make {str(path).removeprefix(root)}")
        mkdir(path, *rest, **options)  # type: ignore[arg-type]  # passed on as it came

    monkeypatch.setattr(os, "fsync", seen_fsync)
    monkeypatch.setattr(os, "replace", seen_replace)
    monkeypatch.setattr(os, "mkdir", seen_mkdir)
    await store.put("a/b/c.png", b"bytes")
    assert steps == [
        "sync /.incoming/?", "make /a", "sync /", "make /a/b", "sync /a", "rename /a/b/c.png", "sync /a/b",
    ]  # fmt: skip
    steps.clear()
    await store.put("a/b/d.png", b"bytes")
    assert steps == ["sync /.incoming/?", "rename /a/b/d.png", "sync /a/b"]


async def test_a_folder_made_by_somebody_else_is_synced_at_first_use(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "assets" / "a" / "b").mkdir(parents=True)
    synced: list[str] = []
    fsync = os.fsync

    def seen(file: int) -> None:
        synced.append(str(Path(f"/proc/self/fd/{file}").readlink()).removeprefix(str(tmp_path / "assets")))
        fsync(file)

    monkeypatch.setattr(os, "fsync", seen)
    await store.put("a/b/c", b"bytes")
    assert synced[1:] == ["", "/a", "/a/b"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT, errno.EROFS, errno.EMFILE])
@pytest.mark.parametrize("step", ["open", "write", "fsync", "replace"])
async def test_a_failing_disk_is_a_storage_error_and_leaves_nothing_behind(
    store: LocalStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    await store.put("a/first", b"bytes")
    before = everything_below(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError(number, "the disk says no")

    with monkeypatch.context() as broken:
        broken.setattr(os, step, fail)
        with pytest.raises(AssetError) as caught:
            await store.put("a/second", b"bytes")
    assert (caught.value.reason, caught.value.is_retryable) == ("storage", True)
    assert str(tmp_path) not in str(caught.value)
    assert everything_below(tmp_path) == before
    await store.put("a/second", b"bytes")
    assert await store.get("a/second") == b"bytes"


async def test_a_failed_sync_of_the_folder_is_told_to_everybody_who_waited(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.put("a/first", b"bytes")
    fsync = os.fsync

    def fail_for_folders(file: int) -> None:
        if Path(f"/proc/self/fd/{file}").readlink().is_dir():
            raise OSError(errno.EIO, "the disk says no")
        fsync(file)

    with monkeypatch.context() as broken:
        broken.setattr(os, "fsync", fail_for_folders)
        results = await asyncio.gather(*[store.put(f"a/{n}", b"x") for n in range(9)], return_exceptions=True)
    assert {getattr(result, "reason", None) for result in results} == {"storage"}
    await store.put("a/0", b"x")


async def test_short_writes_are_continued(store: LocalStore, monkeypatch: pytest.MonkeyPatch) -> None:
    write = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write(file, bytes(data[:7])))
    data = bytes(range(256))
    await store.put("a", data)
    assert await store.get("a") == data


async def test_a_reader_sees_the_old_or_the_new_bytes_and_never_a_mixture(store: LocalStore) -> None:
    old, new = b"o" * 300_000, b"n" * 300_000
    await store.put("a", old)
    writes = asyncio.gather(*[store.put("a", data) for data in (old, new) * 20])
    while not writes.done():
        assert await store.get("a") in {old, new}
    await writes


async def test_many_puts_at_once_share_their_syncs(
    store: LocalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = 0
    fsync = os.fsync

    def counted(file: int) -> None:
        nonlocal folders
        folders += Path(f"/proc/self/fd/{file}").readlink().is_dir()
        fsync(file)

    account = uuid4()
    await store.put(new_key(account, suffix="png"), b"x")
    monkeypatch.setattr(os, "fsync", counted)
    await asyncio.gather(*[store.put(new_key(account, suffix="png"), b"x" * 9_000) for _ in range(300)])
    assert folders < 200
    assert len([key async for key in store.keys(str(account))]) == 301
    assert not store._sync._folders, "nobody waits, nothing is remembered"


async def test_a_cancelled_put_does_not_hold_up_the_next(store: LocalStore) -> None:
    puts = [asyncio.create_task(store.put(f"a/{number}", b"x")) for number in range(50)]
    await asyncio.sleep(0.005)
    for put in puts[::2]:
        put.cancel()
    await asyncio.gather(*puts, return_exceptions=True)
    await store.put("a/last", b"x")
    assert await store.get("a/last") == b"x"


async def test_half_written_files_are_never_listed_and_go_after_a_day(tmp_path: Path) -> None:
    incoming = tmp_path / "assets" / ".incoming"
    incoming.mkdir(parents=True)
    for name, age_s in (("young", 60), ("old", 90_000)):
        (incoming / name).write_bytes(b"half")
        os.utime(incoming / name, (time.time() - age_s,) * 2)
    store = LocalStore(tmp_path / "assets")
    assert everything_below(incoming) == {"young"}
    assert [key async for key in store.keys("")] == []
    await store.aclose()


async def test_folders_that_were_removed_behind_our_back_are_made_again(
    store: LocalStore, tmp_path: Path
) -> None:
    await store.put("a/b/c", b"x")
    (tmp_path / "assets" / "a" / "b" / "c").unlink()
    (tmp_path / "assets" / "a" / "b").rmdir()
    with pytest.raises(AssetError) as caught:
        await store.put("a/b/c", b"x")
    assert (caught.value.reason, caught.value.is_retryable) == ("storage", True)
    await store.put("a/b/c", b"x")
    assert await store.get("a/b/c") == b"x"
