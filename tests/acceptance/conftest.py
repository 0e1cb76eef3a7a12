"""One running installation for the tests that only look at it from outside."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator

import pytest

from tests.acceptance.installed import Installed
from tests.places import new_data_dir


@pytest.fixture
async def service() -> AsyncIterator[Installed]:
    """A fresh installation, started; removed at the end."""
    made = Installed(new_data_dir(), knobs={"latency_s": [0.1, 0.3]})
    await made.start()
    yield made
    await made.stop()
    shutil.rmtree(made.data_dir, ignore_errors=True)
    made.log.unlink(missing_ok=True)
