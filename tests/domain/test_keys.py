"""API keys: form, checksum, and what is kept of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safelight.domain.keys import DIGITS, hash_secret, is_secret, new_key, parse_key

PEPPER = b"a pepper of thirty-two bytes, ok"


def test_a_new_key_is_read_back_whole() -> None:
    for _ in range(100):
        key = new_key()
        assert key.text.startswith("sl_live_")
        assert parse_key(key.text) == key


def test_keys_are_never_alike() -> None:
    made = [new_key() for _ in range(1_000)]
    assert len({key.id for key in made}) == len({key.secret for key in made}) == 1_000


def test_the_secret_is_not_shown_where_a_key_is_printed() -> None:
    key = new_key()
    assert key.secret not in repr(key)
    assert key.text not in repr(key)


def test_one_wrong_character_anywhere_is_noticed() -> None:
    text = new_key().text
    for place in range(len(text)):
        other = DIGITS[(DIGITS.find(text[place]) + 1) % len(DIGITS)]
        assert parse_key(text[:place] + other + text[place + 1 :]) is None


@pytest.mark.parametrize("text", ["", "sl_live_", "sl_test_" + "a" * 51, "é" * 59, "sl_live_" + "٣" * 51])
def test_what_is_no_key_is_read_as_none(text: str) -> None:
    assert parse_key(text) is None


@given(text=st.text(max_size=80))
def test_no_text_breaks_the_reader(text: str) -> None:
    assert parse_key(text) is None


def test_only_the_keyed_hash_of_a_secret_is_kept() -> None:
    key, other = new_key(), new_key()
    stored = hash_secret(PEPPER, key.secret)
    assert len(stored) == 32
    assert is_secret(PEPPER, key.secret, stored)
    assert not is_secret(PEPPER, other.secret, stored)
    assert not is_secret(PEPPER[::-1], key.secret, stored)
