"""Addresses of inputs: only ours open anything, only what they name, and only for a while."""

from __future__ import annotations

import base64
import dataclasses

import pytest

from safelight.assets.inputlinks import InputLink, InputLinks
from safelight.domain.ids import new_id
from safelight.domain.provider import MaskStyle
from safelight.errors import AssetError, ConfigurationError

NOW = 1_800_000_000.0
LINKS = InputLinks(b"a signing key of thirty-two bytes")
LINK = InputLink(new_id(), new_id(), None, int(NOW) + 3_600)


@pytest.mark.parametrize("style", [None, *MaskStyle])
def test_a_word_is_read_as_it_was_made_and_is_the_same_each_time(style: MaskStyle | None) -> None:
    link = dataclasses.replace(LINK, mask_style=style)
    word = LINKS.word(link, "image/webp")
    assert word == LINKS.word(link, "image/webp")
    assert word.endswith(".webp")
    assert LINKS.read(word, now=NOW) == link
    assert LINKS.read(word.removesuffix(".webp"), now=NOW) == link


def reason(word: str, links: InputLinks = LINKS, now: float = NOW) -> str:
    with pytest.raises(AssetError) as caught:
        links.read(word, now=now)
    return caught.value.reason


def test_a_word_ends_with_its_time() -> None:
    word = LINKS.word(LINK, "image/png")
    assert LINKS.read(word, now=NOW + 3_599) == LINK
    assert reason(word, now=NOW + 3_600) == "link_expired"


def test_a_word_with_any_bit_changed_opens_nothing() -> None:
    token = LINKS.word(LINK, "image/png").removesuffix(".png")
    raw = base64.urlsafe_b64decode(token)
    for place in range(len(raw)):
        changed = bytearray(raw)
        changed[place] ^= 1
        assert reason(base64.urlsafe_b64encode(changed).decode()) == "link_wrong"
    assert reason(LINKS.word(LINK, "image/png"), InputLinks(bytes(32))) == "link_wrong"


@pytest.mark.parametrize(
    "word", ["", "x", "x" * 72, "x" * 72 + ".", "é" * 72, "x" * 72 + ".png.png", "=" * 72, "../" * 24]
)
def test_other_words_open_nothing(word: str) -> None:
    assert reason(word) == "link_wrong"


def test_a_short_key_is_a_mistake_of_the_operator() -> None:
    with pytest.raises(ConfigurationError):
        InputLinks(b"short")
