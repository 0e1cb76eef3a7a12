"""Options: the wishes of customers beyond prompt and size that an upstream knows, each with a value to try."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Option:
    """One option, by its name among ours, for those who test against the dialect.

    `beside` are the options that have to go with it. `only` names the operations (`generate`, `edit`,
    `inpaint`) or the upstream's models that have it; without it all have.
    """

    value: Any
    beside: Mapping[str, Any] = field(default_factory=dict)
    only: Collection[str] = ()
