"""A step of a play as one readable line, so that a play that failed can be kept and played again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

REGRESSIONS = Path(__file__).parent / "regressions"


@dataclass(frozen=True, slots=True)
class Step:
    """A verb of the play and what it is told."""

    verb: str
    told: dict[str, int | str]

    def __str__(self) -> str:
        return " ".join([self.verb, *(f"{name}={value}" for name, value in self.told.items())])


def parse(line: str) -> Step:
    """The step that a line tells of."""
    verb, *words = line.split()
    told: dict[str, int | str] = {}
    for word in words:
        name, _, value = word.partition("=")
        told[name] = int(value) if value.lstrip("-").isdigit() else value
    return Step(verb, told)


def read(path: Path) -> list[Step]:
    """The steps of a file; lines that begin with # say what went wrong."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [parse(line) for line in lines if line.strip() and not line.startswith("#")]


def keep(name: str, steps: Iterable[Step], why: str) -> Path:
    """Write down a play that failed; it is played with every run of the tests from then on."""
    REGRESSIONS.mkdir(exist_ok=True)
    path = REGRESSIONS / f"{name}.txt"
    path.write_text("\n".join([f"# {why}", *map(str, steps)]) + "\n", encoding="utf-8")
    return path


def kept() -> list[Path]:
    """The plays that failed once."""
    return sorted(REGRESSIONS.glob("*.txt"))
