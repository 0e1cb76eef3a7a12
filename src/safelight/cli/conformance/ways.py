"""The ways of sending: which model does what, and which of them are written down differently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from safelight.cli.conformance.workbench import Workbench
from safelight.domain.provider import Submission
from safelight.providers.declaration import DeclaredModel


@dataclass(frozen=True, slots=True)
class Way:
    """A way of sending: which model does what, and how often."""

    model: DeclaredModel
    word: str
    n: int

    @property
    def name(self) -> str:
        return f"{self.model.name} {self.word}{' of several' if self.n > 1 else ''}"

    def submission(self, bench: Workbench, options: Mapping[str, Any] | None = None) -> Submission:
        """One such, without a size: there are options that stand for it."""
        operation = "edit" if self.word == "inpaint" else self.word
        mask = bench.mask() if self.word == "inpaint" else None
        shape = {"size": None, "aspect_ratio": None}
        return bench.submission(
            self.model, operation=operation, mask=mask, n=self.n, options=options or {}, **shape
        )


def ways_of(bench: Workbench) -> Iterator[Way]:
    """Every way of sending."""
    for model in bench.models:
        for word in (*model.operations, *(["inpaint"] if model.takes_mask else [])):
            yield Way(model, word, 1)
            if model.max_n > 1:
                yield Way(model, word, 2)


def different_ways(bench: Workbench) -> Iterator[Way]:
    """One way for each call that is written down differently."""
    seen = set()
    for way in ways_of(bench):
        call = bench.declaration.submit.fitting(way.submission(bench))
        written = repr((call.path, call.query, call.headers, call.body))
        if written not in seen:
            seen.add(written)
            yield way
