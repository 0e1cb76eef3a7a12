"""Where tests put their data directories."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def new_data_dir() -> Path:
    """Make an empty data directory that an embedded database can use whoever runs the tests.

    As root the embedded PostgreSQL runs as its own OS user, and opens every folder above its data for
    reading. Hence never below /root; and never below pytest's own temporary folder, which it closes
    again (0700) at each run, under the feet of a running server. `TESTS_IN` names another place.
    """
    parent = Path(os.environ.get("TESTS_IN") or "/tmp")  # noqa: S108 - see above
    made = Path(tempfile.mkdtemp(prefix="safelight-test-", dir=parent))
    made.chmod(0o755)
    return made
