"""The pages agree with the code: the trees, the state machine, the links, the commands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.generate import PAGES
from docs.pages import tree
from tests.architecture.source import PACKAGE, ROOT, files, read, shown

LINK = re.compile(r"\[[^\]]*\]\((?!\w+:)([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("name", PAGES)
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    text = read(ROOT / name)
    assert PAGES[name](text) == text, "run `make docs`"


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md"])
def test_the_page_has_a_tree(name: str) -> None:
    assert tree.BLOCK.search(read(ROOT / name))


def test_a_tree_with_a_room_that_is_gone_or_missing_is_seen() -> None:
    page = "```text\nsrc/safelight/\n├── domain/                   what is true\n└── cellar/\n```\n"
    renewed = tree.refresh(page, depth=1)
    assert "cellar" not in renewed
    assert "errors.py" in renewed
    assert "├── domain/                   what is true\n" in renewed


def test_every_link_between_pages_leads_somewhere() -> None:
    broken = [
        f"{shown(page)} → {target}"
        for page in files(".md")
        for target in LINK.findall(read(page))
        if not (page.parent / target).exists()
    ]
    assert broken == []


def test_every_problem_code_is_documented() -> None:
    source = "".join(
        read(path) for room in ("api", "lifecycle") for path in files(".py", below=PACKAGE / room)
    )
    codes = set(re.findall(r"""\b[45]\d\d,\s*["']([a-z]+(?:-[a-z]+)*)["']""", source))
    assert codes
    page = read(ROOT / "docs" / "api.md")
    assert {code for code in codes if f"`{code}`" not in page} == set()


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z]+):", read(ROOT / "Makefile"), re.MULTILINE))
    named = {name for page in files(".md") for name in re.findall(r"`make ([a-z]+)", read(page))}
    assert named - targets == set()


def test_decisions_are_numbered_without_gaps() -> None:
    numbers = [int(path.name[:4]) for path in _decisions()]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("part", ["## Context", "## Decision", "## Consequences", "## Rejected"])
def test_every_decision_has_its_four_parts(part: str) -> None:
    assert [shown(path) for path in _decisions() if part not in read(path)] == []


def _decisions() -> list[Path]:
    return list(files(".md", below=ROOT / "docs" / "decisions"))
