"""Callback tokens: stable, unguessable, and read without a database."""

from __future__ import annotations

import base64
import string
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safelight.domain.tokens import TOKEN_LENGTH, CallbackTokens

TOKENS = CallbackTokens(b"one secret, long enough for everybody")
TASK = UUID("01985f00-1234-7abc-8def-001122334455")
ALPHABET = string.ascii_letters + string.digits + "-_"


@given(task_id=st.uuids(), attempt=st.integers(1, 255))
def test_a_token_names_its_task_and_attempt(task_id: UUID, attempt: int) -> None:
    assert TOKENS.read(TOKENS.issue(task_id, attempt)) == (task_id, attempt)


def test_the_same_attempt_always_has_the_same_token() -> None:
    again = CallbackTokens(b"one secret, long enough for everybody")
    assert TOKENS.issue(TASK, 2) == TOKENS.issue(TASK, 2) == again.issue(TASK, 2)


def test_attempts_and_tasks_have_tokens_of_their_own() -> None:
    made = {TOKENS.issue(TASK, attempt) for attempt in range(1, 256)}
    assert len(made) == 255
    assert TOKENS.issue(UUID(int=TASK.int + 1), 1) not in made


def test_a_token_fits_into_an_url_path() -> None:
    token = TOKENS.issue(TASK, 1)
    assert len(token) == TOKEN_LENGTH
    assert set(token) <= set(ALPHABET)


@pytest.mark.parametrize("place", range(TOKEN_LENGTH))
def test_every_changed_character_makes_a_token_nobody_issued(place: int) -> None:
    token = TOKENS.issue(TASK, 3)
    for other in ALPHABET.replace(token[place], ""):
        assert TOKENS.read(token[:place] + other + token[place + 1 :]) is None


def test_a_token_of_another_secret_is_not_ours() -> None:
    foreign = CallbackTokens(b"another secret, just as long as the first")
    assert TOKENS.read(foreign.issue(TASK, 1)) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "A" * TOKEN_LENGTH,
        "=" * TOKEN_LENGTH,
        "é" * TOKEN_LENGTH,
        "４" * TOKEN_LENGTH,
        "\x00" * TOKEN_LENGTH,
        "a" * 100_000,
    ],
)
def test_what_is_no_token_is_read_as_none(text: str) -> None:
    assert TOKENS.read(text) is None


@given(text=st.text(max_size=60))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert TOKENS.read(text) is None


@given(raw=st.binary(min_size=33, max_size=33))
def test_random_bytes_are_no_token(raw: bytes) -> None:
    assert TOKENS.read(base64.urlsafe_b64encode(raw).decode()) is None


def test_a_token_is_not_read_in_other_spellings() -> None:
    """One attempt, one spelling: characters outside the alphabet are not skipped over."""
    token = TOKENS.issue(TASK, 1)
    assert TOKENS.read(token + "=") is None
    assert TOKENS.read(token[:-1] + "\n") is None
    assert TOKENS.read(token.replace("-", "+").replace("_", "/")) in (None, (TASK, 1))
    assert TOKENS.read(token + "\n") is None
