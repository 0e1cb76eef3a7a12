"""Assets in a bucket: S3, Google Cloud Storage, Azure and what speaks like them, through obstore."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

from obstore.exceptions import BaseError
from obstore.store import ObjectStore, from_url

from safelight.assets.store import check_key, check_prefix, is_key
from safelight.errors import AssetError, ConfigurationError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

_CHUNK = 262_144
_RETRY_FOR = timedelta(seconds=30)


class BucketStore:
    """An AssetStore behind `s3://`, `gs://` or `az://`; `options` are obstore's, e.g. `endpoint`.

    store = BucketStore("s3://pictures/safelight", {"region": "eu-central-1"})
    """

    def __init__(self, url: str, options: Mapping[str, str] | None = None, *, max_retries: int = 4) -> None:
        retry: RetryConfig = {"max_retries": max_retries, "retry_timeout": _RETRY_FOR}
        client: ClientConfig = {"connect_timeout": "5s", "timeout": "60s"}
        if (options or {}).get("endpoint", "").startswith("http://"):
            # Only an operator can write this; obstore wants it said twice.
            client["allow_http"] = True
        try:
            # obstore types the options by the kind of bucket, which only the URL tells.
            self._store: ObjectStore = from_url(
                url, client_options=client, retry_config=retry, **cast("Any", options or {})
            )
        except (BaseError, ValueError) as error:
            raise ConfigurationError(f"the bucket cannot be used: {type(error).__name__}") from error

    async def put(self, key: str, data: bytes) -> None:
        """One whole PUT (a bucket shows it all or not at all), then a look at what really arrived."""
        check_key(key)
        with _errors():
            await self._store.put_async(key, data, use_multipart=False)
        try:
            with _errors():
                # Stores have answered 200 and kept nothing: apache/arrow-rs#6508, boto/botocore#298.
                found = await self._store.head_async(key)
        except AssetError as error:
            raise (
                _trouble("it kept nothing of what was sent") if error.reason == "missing" else error
            ) from None
        if found["size"] != len(data):
            raise _trouble("it kept another length than was sent")

    async def get(self, key: str) -> bytes:
        """All bytes; `missing` if there are none."""
        check_key(key)
        with _errors():
            answer = await self._store.get_async(key)
            return bytes(await answer.bytes_async())

    async def open(self, key: str, *, offset: int = 0, length: int | None = None) -> AsyncIterator[bytes]:
        """Stream in pieces of about 256 kB."""
        check_key(key)
        if length == 0:
            return
        span = {"offset": offset} if length is None else (offset, offset + length)
        with _errors():
            options = {"range": span} if offset or length is not None else {}
            answer = await self._store.get_async(key, options=options)  # type: ignore[arg-type]  # a dict of obstore's shape
            async for piece in answer.stream(min_chunk_size=_CHUNK):
                yield bytes(piece)

    async def exists(self, key: str) -> bool:
        """Whether the bucket knows the key."""
        check_key(key)
        try:
            with _errors():
                await self._store.head_async(key)
        except AssetError as error:
            if error.reason != "missing":
                raise
            return False
        return True

    async def delete(self, key: str) -> None:
        """Remove; a missing key is fine."""
        check_key(key)
        with _errors(), suppress(FileNotFoundError):
            await self._store.delete_async(key)

    async def keys(self, prefix: str = "") -> AsyncIterator[tuple[str, int, float]]:
        """List page by page."""
        # obstore matches prefixes by whole path segments, our callers by characters.
        folder = check_prefix(prefix).rpartition("/")[0]
        with _errors():
            async for page in self._store.list(folder or None):
                for found in page:
                    if found["path"].startswith(prefix) and is_key(found["path"]):
                        yield found["path"], found["size"], found["last_modified"].timestamp()

    async def aclose(self) -> None:
        """Nothing to close: connections end with the object."""


@contextmanager
def _errors() -> Iterator[None]:
    """The same few reasons as everywhere; the store's own text may hold URLs and stays in the cause."""
    try:
        yield
    except FileNotFoundError as error:
        raise AssetError("missing", "there is no such asset", is_retryable=False) from error
    except (BaseError, OSError) as error:
        raise _trouble(type(error).__name__) from error


def _trouble(detail: str) -> AssetError:
    return AssetError("storage", f"the bucket failed: {detail}", is_retryable=True)
