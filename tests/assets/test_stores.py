"""What every store does, whether it is a folder or a bucket."""

from __future__ import annotations

import re
import time
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import uuid4

import pytest

from safelight.assets.bucket import BucketStore
from safelight.assets.local import LocalStore
from safelight.assets.opening import open_store
from safelight.assets.store import AssetStore, check_key, new_key, staging_key
from safelight.errors import AssetError, ConfigurationError

S3 = {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}


@pytest.fixture(scope="session")
def s3_endpoint() -> object:
    """A simulated S3 on a free port, if the simulator is installed."""
    server_module = pytest.importorskip("moto.server")
    import urllib.request

    server = server_module.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    endpoint = "http://{}:{}".format(*server.get_host_and_port())
    ask = urllib.request.Request(f"{endpoint}/pictures", method="PUT")  # noqa: S310 - our own server
    urllib.request.urlopen(ask).close()  # noqa: S310 - our own server
    yield endpoint
    server.stop()


@pytest.fixture(params=["folder", "memory", "s3"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AssetStore]:
    made: AssetStore
    if request.param == "folder":
        made = open_store(tmp_path / "assets")
    elif request.param == "memory":
        made = BucketStore("memory:///")
    else:
        endpoint = request.getfixturevalue("s3_endpoint")
        made = open_store(f"s3://pictures/{uuid4().hex}", S3 | {"endpoint": endpoint})
    yield made
    await made.aclose()


async def read(store: AssetStore, key: str, **span: int) -> bytes:
    return b"".join([piece async for piece in store.open(key, **span)])


async def test_what_was_put_can_be_had_whole_in_pieces_and_in_part(store: AssetStore) -> None:
    data = bytes(range(256)) * 3_000
    key = new_key(uuid4(), suffix="png")
    await store.put(key, data)
    assert await store.exists(key)
    assert await store.get(key) == data
    assert await read(store, key) == data
    assert await read(store, key, offset=5) == data[5:]
    assert await read(store, key, offset=300_000, length=300_000) == data[300_000:600_000]
    assert await read(store, key, offset=5, length=0) == b""
    assert await read(store, key, offset=len(data) - 3, length=99) == data[-3:]


async def test_putting_again_is_fine(store: AssetStore) -> None:
    key = staging_key(uuid4(), 1, 0)
    await store.put(key, b"bytes")
    await store.put(key, b"bytes")
    assert await store.get(key) == b"bytes"


async def test_a_missing_key_is_missing_and_may_be_deleted(store: AssetStore) -> None:
    key = new_key(uuid4(), suffix="png")
    assert not await store.exists(key)
    await store.delete(key)
    for attempt in (store.get(key), read(store, key)):
        with pytest.raises(AssetError) as caught:
            await attempt
        assert (caught.value.reason, caught.value.is_retryable) == ("missing", False)


async def test_what_was_deleted_is_gone(store: AssetStore) -> None:
    key = new_key(uuid4(), suffix="png")
    await store.put(key, b"bytes")
    await store.delete(key)
    assert not await store.exists(key)
    assert [found async for found in store.keys("")] == []


async def test_keys_are_listed_by_the_letters_they_start_with(store: AssetStore) -> None:
    sizes = {"staging/a1/1-0": 1, "staging/a1/1-1": 2, "staging/a12/1-0": 3, "b/2026/01/x.png": 4, "c": 5}
    for key, size in sizes.items():
        await store.put(key, b"x" * size)
    for prefix in ("", "staging/", "staging/a1", "staging/a1/", "staging/a1/1-1", "b/2026", "nothing/", "c"):
        found = [entry async for entry in store.keys(prefix)]
        expected = {key: size for key, size in sizes.items() if key.startswith(prefix)}
        assert {key: size for key, size, _ in found} == expected
        assert all(abs(modified - time.time()) < 60 for *_, modified in found)


@pytest.mark.parametrize("key", ["../x", "/etc/passwd", "", "a//b", "a\0b"])
async def test_a_key_that_we_would_not_make_is_refused_everywhere(store: AssetStore, key: str) -> None:
    for attempt in (
        store.put(key, b"x"),
        store.get(key),
        store.exists(key),
        store.delete(key),
        read(store, key),
    ):
        with pytest.raises(AssetError) as caught:
            await attempt
        assert (caught.value.reason, caught.value.is_retryable) == ("bad_key", False)
    if key:
        with pytest.raises(AssetError):
            _ = [found async for found in store.keys(key)]


async def test_a_bucket_in_trouble_is_a_storage_error_without_its_address() -> None:
    store = BucketStore("s3://pictures", S3 | {"endpoint": "http://127.0.0.1:9"}, max_retries=0)
    for attempt in (store.put("a", b"x"), store.get("a"), store.exists("a"), store.delete("a")):
        with pytest.raises(AssetError) as caught:
            await attempt
        assert (caught.value.reason, caught.value.is_retryable) == ("storage", True)
        assert "127.0.0.1" not in str(caught.value)


def test_a_setting_without_scheme_is_a_folder_and_other_schemes_are_a_mistake(tmp_path: Path) -> None:
    assert isinstance(open_store(str(tmp_path / "x")), LocalStore)
    assert isinstance(open_store("s3://bucket/x", {"region": "eu-central-1"}), BucketStore)
    for url in ("file:///x", "http://x/y", "ftp://x"):
        with pytest.raises(ConfigurationError):
            open_store(url)
    with pytest.raises(ConfigurationError):
        open_store("s3://bucket", {"no_such_option": "1"})


def test_new_keys_never_meet_and_hold_no_foreign_word() -> None:
    account = uuid4()
    keys = {new_key(account, suffix="png") for _ in range(1_000)}
    assert len(keys) == 1_000
    assert all(re.fullmatch(rf"{account}/\d{{4}}/\d\d/[0-9a-f]{{32}}\.png", key) for key in keys)
    assert all(check_key(key) == key for key in keys)
    for suffix in ("../x", "p/g", "", "PNG", "a b"):
        with pytest.raises(AssetError):
            new_key(account, suffix=suffix)
