"""A case: one thing that every provider of its kind must do, with its name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from safelight.cli.conformance.workbench import Workbench


@dataclass(frozen=True, slots=True)
class Case:
    """`run` raises Nonconformity where the provider does something else."""

    name: str
    run: Callable[[], Awaitable[None]]


Chapter = Callable[[Workbench], Iterator[Case]]
"""The cases of one subject that apply to what the dialect and the declaration offer."""
