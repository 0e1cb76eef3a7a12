"""Identifiers sort by time and cannot be guessed."""

from __future__ import annotations

import time

import pytest

from safelight.domain.ids import content_id, new_id


def test_an_id_is_a_uuid_of_version_7_and_of_the_standard_variant() -> None:
    for _ in range(200):
        value = new_id()
        assert value.version == 7
        assert value.variant == "specified in RFC 4122"


def test_an_id_begins_with_the_milliseconds_of_its_making() -> None:
    before = time.time_ns() // 1_000_000
    made = new_id().int >> 80
    assert before <= made <= time.time_ns() // 1_000_000


def test_ids_of_later_milliseconds_sort_later(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(1_790_000_000_000_000_000, 1_790_000_000_000_000_000 + 50 * 1_000_000, 1_000_000))
    monkeypatch.setattr(time, "time_ns", lambda: next(clock))
    made = [new_id() for _ in range(50)]
    assert made == sorted(made)
    assert [str(value) for value in made] == sorted(str(value) for value in made)


def test_ids_of_one_millisecond_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1_790_000_000_000_000_000)
    assert len({new_id() for _ in range(10_000)}) == 10_000


def test_the_same_content_of_the_same_account_has_the_same_id_for_ever() -> None:
    account, other = new_id(), new_id()
    made = content_id(account, bytes(32))
    assert made == content_id(account, bytes(32))
    assert (made.version, made.variant) == (8, "specified in RFC 4122")
    assert len({made, content_id(other, bytes(32)), content_id(account, bytes(31) + b"x")}) == 3
