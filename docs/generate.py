"""Writes the generated pages anew: `make docs`. A test compares them with the code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from docs.pages import (  # noqa: E402 - the path above makes it found
    declarations,
    openapi,
    providers,
    settings,
    state_machine,
    tree,
)

PAGES: dict[str, Callable[[str], str]] = {
    "README.md": lambda text: tree.refresh(text, depth=1),
    "ARCHITECTURE.md": lambda text: tree.refresh(text, depth=2),
    "docs/declarations.md": lambda _: declarations.page(),
    "docs/operating/README.md": settings.refresh,
    "docs/providers/README.md": lambda _: providers.page(),
    "docs/state-machine.md": lambda _: state_machine.page(),
    "web/openapi.json": lambda _: openapi.page(),
}
"""Each generated page, and what makes its new text from its old one."""


def main() -> None:
    """Write every page that has changed, and say which."""
    for name, renewed in PAGES.items():
        path = ROOT / name
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        after = renewed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            print(f"wrote {name}")


if __name__ == "__main__":
    main()
