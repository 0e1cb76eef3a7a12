"""What a mutant is: exact replacements in our code, the rule they break, and the tests that must notice."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """One exact replacement; `file` is counted from the package, and `old` stands in it exactly once."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A wrong variant. `seen_as` is how the first failure must begin where that is no assertion."""

    name: str
    breaks: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    seen_as: str = ""
