"""Which store a setting means: a path is a folder, a URL is a bucket."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from safelight.assets.bucket import BucketStore
from safelight.assets.local import LocalStore
from safelight.assets.store import AssetStore
from safelight.errors import ConfigurationError
from safelight.settings import Settings

_URL = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]+)://")
_BUCKETS = ("s3", "gs", "az")


def open_store(url_or_path: str | Path, options: Mapping[str, str] | None = None) -> AssetStore:
    """Open `s3://…`, `gs://…`, `az://…` as a bucket with `options`, anything without scheme as a folder."""
    url = _URL.match(str(url_or_path))
    if url is None:
        return LocalStore(Path(url_or_path))
    if url["scheme"] not in _BUCKETS:
        raise ConfigurationError("assets live in a folder or behind s3://, gs:// or az://")
    return BucketStore(str(url_or_path), options)


def open_store_of(settings: Settings) -> AssetStore:
    """Where an installation keeps its assets: the bucket of its settings, else a folder in its data directory."""
    return open_store(settings.store_url or settings.data_dir / "assets")
