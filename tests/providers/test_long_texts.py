"""Text made to be read slowly is read like any other: the work grows with its length, never with its square.

Where a pattern can be satisfied in many ways, a few hundred characters cost minutes. Each text here would.
"""

from __future__ import annotations

import pytest

from safelight.assets.store import check_prefix
from safelight.cli.batchitems import fill
from safelight.errors import AssetError
from safelight.providers.documents import read_percent
from safelight.providers.redaction import EXCERPT_CHARS, MASK, Redactor

LONG = 2_000_000
REDACTOR = Redactor(["s3cret"])


@pytest.mark.parametrize(
    "text", ["a" * 512, "a-" * 250 + "\n", "a/" * 255 + "!", "a" * 100 + "\0", "a/" * 256]
)
def test_a_prefix_is_judged_at_once(text: str) -> None:
    try:
        said = check_prefix(text)
    except AssetError as error:
        said = error.reason
    assert said == (text if text.replace("/", "").isalnum() else "bad_key")


@pytest.mark.parametrize(
    "text", ["1" + " " * LONG + "x", " " * LONG, "1" + " " * LONG + "%" + " " * LONG + "%"]
)
def test_no_number_in_much_space_is_no_progress(text: str) -> None:
    assert read_percent(text, 1) is None


def test_much_space_around_a_number_is_nothing() -> None:
    assert read_percent(" " * LONG + "40" + " " * LONG + "%" + " " * LONG, 1) == 40


@pytest.mark.parametrize("piece", ['\\"', '{"a":"'])
def test_quotes_without_an_end_are_masked_all_the_same(piece: str) -> None:
    said = REDACTOR.masked(f"{piece * (LONG // len(piece))} s3cret".encode())
    assert b"s3cret" not in said
    assert MASK.encode() in said


@pytest.mark.parametrize("piece", ["https:", "https:x?", "https:a ", "key ", "/callbacks/", "bearer\t"])
def test_an_excerpt_of_repeated_words_is_short(piece: str) -> None:
    assert len(REDACTOR.excerpt(piece * (LONG // len(piece)))) <= EXCERPT_CHARS


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [
        ("https://a.example/x?s=1,https://b.example/y?t=2", "https://a.example/x?[redacted]"),
        ("a?b:https://a.example/x?s=1 and 'https://b.example/y?t=2'",
         "a?b:https://a.example/x?[redacted] and 'https://b.example/y?[redacted]'"),
        ("https://a.example/x? what?", "https://a.example/x? what?"),
        ("https://a.example:8443/x then? why?not", "https://a.example:8443/x then? why?not"),
        ("https:?s=1", "https:?s=1"),
    ],
)  # fmt: skip
def test_what_stands_behind_the_question_mark_of_an_address_goes(text: str, excerpt: str) -> None:
    assert REDACTOR.excerpt(text) == excerpt


def test_a_variable_in_much_space_is_its_row_s_value() -> None:
    space = " " * LONG
    assert fill(f"{{{{{space}sku{space}}}}} {{{{{space}", {"sku": "7"}, "row 1") == f"7 {{{{{space}"
