"""A job as a dialect shows it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from safelight.lab.job import Job
from safelight.lab.speech.reply import Ending

OPEN = frozenset({"queued", "running", "unknown"})


@dataclass(frozen=True, slots=True)
class View:
    """A job at one moment.

    `phase` is `queued`, `running`, `unknown` (say a word that nobody has declared), `done`, `failed`,
    `blocked`, `invalid_request` or `canceled`. `progress` is from 0 to 100, `position` 1 at the front of the
    line and None outside. `urls` are the pictures that came out: perhaps fewer than `job.n`, perhaps none.
    """

    job: Job
    phase: str
    progress: int
    position: int | None
    urls: Sequence[str]
    ending: Ending | None

    @property
    def is_open(self) -> bool:
        """Whether more will come."""
        return self.phase in OPEN

    @property
    def missing(self) -> int:
        """How many pictures of a finished job did not come out."""
        return self.job.n - len(self.urls) if self.phase == "done" else 0

    def word(self, words: Mapping[str, Any]) -> Any:
        """The dialect's word for the phase; one ending may stand for all, as `failed`."""
        if self.phase in words:
            return words[self.phase]
        return "dreaming" if self.phase == "unknown" else words["failed"]

    def told(self, name: str, default: Any = None) -> Any:
        """A value of the ending."""
        return default if self.ending is None else self.ending.values.get(name, default)
