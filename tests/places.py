"""Where tests put their data directories."""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from pathlib import Path

DISK, MEMORY = Path("/tmp"), Path("/dev/shm")  # noqa: S108 - see below
ROOM_BYTES = 4 << 30
"""Far more than a run needs at a time. With less free memory the disk will do."""


def new_data_dir(*, is_large: bool = False) -> Path:
    """Make an empty data directory that an embedded database can use whoever runs the tests.

    It lies in memory where there is room: each test has a database of its own, which is a thousand small files to
    make and to delete, and some file systems take half a second for that. What `is_large` stays on the disk.
    `TESTS_IN` names another place.

    As root the embedded PostgreSQL runs as its own OS user, and opens every folder above its data for
    reading. Hence never below /root; and never below pytest's own temporary folder, which it closes
    again (0700) at each run, under the feet of a running server.
    """
    parent = os.environ.get("TESTS_IN") or (DISK if is_large or not _has_room(MEMORY) else MEMORY)
    made = Path(tempfile.mkdtemp(prefix="safelight-test-", dir=parent))
    made.chmod(0o755)
    # After whatever is registered later: an embedded server that says goodbye makes the folder of its lock anew.
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _has_room(place: Path) -> bool:
    try:
        return os.access(place, os.W_OK | os.X_OK) and shutil.disk_usage(place).free >= ROOM_BYTES
    except OSError:
        return False
