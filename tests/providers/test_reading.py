"""How single values are read, filled in and redacted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from safelight.errors import ProviderError
from safelight.providers.answers import decode_base64
from safelight.providers.documents import (
    Unreadable,
    parse_object,
    pick,
    read_amount,
    read_percent,
    read_position,
    read_ref,
    read_time,
    write_time,
)
from safelight.providers.failures import read_wait
from safelight.providers.matching import Match
from safelight.providers.redaction import Redactor
from safelight.providers.templates import check_template, fill, fill_path
from tests.providers.upstream import ATTEMPT, CALLBACK_URL, TOKEN, Upstream, provider_of, submission

NOW = datetime(2026, 10, 21, 7, 27, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "percent"),
    [
        (46, 46),
        (46.9, 46),
        ("46%", 46),
        ("46 %", 46),
        ("57", 57),
        (" 5.5% ", 5),
        (-1, 0),
        (146, 100),
        (10**400, None),
        ("", None),
        ("Waiting to start", None),
        ("\u0664\u0666", None),
        (None, None),
        (True, None),
        ([1], None),
        (float("nan"), None),
    ],
)
def test_progress_is_understood_or_ignored(value: Any, percent: int | None) -> None:
    assert read_percent(value, 100) == percent


def test_progress_may_end_at_one() -> None:
    assert [read_percent(value, 1) for value in (0.46, "0.46", 1, 2, "46%")] == [46, 46, 100, 100, 46]


def test_amounts_and_positions_are_never_negative() -> None:
    assert [read_amount(value) for value in (1, "2.5", -1, None, True)] == [1.0, 2.5, None, None, None]
    assert [read_position(value) for value in (0, 3.0, -1, 10**9, "x")] == [0, 3, None, None, None]


@given(st.integers(min_value=0, max_value=10**127))
def test_a_number_as_ref_loses_no_digit(number: int) -> None:
    assert read_ref(number) == str(number)


@given(st.text(max_size=140) | st.floats() | st.booleans() | st.none())
def test_a_ref_is_safe_in_a_path_or_refused(value: Any) -> None:
    try:
        ref = read_ref(value)
    except Unreadable:
        return
    assert fill_path("/x/{provider_ref}", {"provider_ref": ref}) == f"/x/{ref.replace(':', '%3A')}"


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_unreadable(raw: bytes) -> None:
    try:
        verdict = type(parse_object(raw)).__name__
    except Unreadable as error:
        verdict = error.reason
    assert verdict in {"dict", "not_json", "not_an_object", "duplicate_keys", "not_a_number", "too_deep"}


def test_depth_is_allowed_up_to_its_limit() -> None:
    assert parse_object(b'{"a": ' + b"[" * 63 + b"]" * 63 + b"}")["a"] is not None
    with pytest.raises(Unreadable, match="too_deep"):
        parse_object(b'{"a": ' + b"[" * 64 + b"]" * 64 + b"}")


def test_a_picked_value_that_does_not_fit_is_absent() -> None:
    assert pick("a.b[0]", {"a": {"b": [7]}}) == 7
    assert pick("a.b[0]", {"a": "text"}) is None
    assert pick("length(a)", {"a": 7}) is None
    assert pick(None, {"a": 7}) is None


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("YWJj", b"abc"),
        ("data:image/png;base64,YWJj", b"abc"),
        (" YW\nJj\r\n", b"abc"),
        ("-_-_", b"\xfb\xff\xbf"),
        ("YQ==", b"a"),
    ],
)
def test_base64_is_read_in_its_usual_clothes(text: str, data: bytes) -> None:
    assert decode_base64(text) == data


@pytest.mark.parametrize(
    "text",
    [
        "",
        "YQ",
        "YQ=",
        "Y",
        "YQ==YQ==",
        "****",
        "data:image/png,abc",
        "data:image/png;base64,",
        "\u00e9",
        7,
        None,
    ],
)
def test_base64_that_is_damaged_is_unreadable(text: Any) -> None:
    with pytest.raises(Unreadable, match="bad_base64"):
        decode_base64(text)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("Wed, 21 Oct 2026 07:28:00 GMT", 30.0),
        ("Wed Oct 21 07:28:00 2026", 30.0),
        ("Wed, 21 Oct 2026 07:28:00 -0000", 30.0),
        ("Wed, 21 Oct 2026 09:28:00 +0200", 30.0),
        ("Wed, 21 Oct 2026 07:27:00 GMT", None),
        ("Fri, 21 Oct 2050 07:28:00 GMT", None),
        ("Wed, 99 Oct 2026", None),
        ("86400", 86_400.0),
        ("86401", None),
        ("1e3", None),
        ("\u0663\u0660", None),
        ("nan", None),
        (None, None),
    ],
)
def test_retry_after_is_seconds_or_a_date_within_a_day(value: str | None, seconds: float | None) -> None:
    assert read_wait(value, NOW) == seconds


def test_times_go_out_and_come_back_in_utc() -> None:
    moment = datetime(2026, 11, 29, 18, 0, tzinfo=timezone(timedelta(hours=2)))
    assert write_time(moment, "iso") == "2026-11-29T16:00:00Z"
    assert write_time(moment, "unix_ms") == 1_795_968_000_000
    assert read_time("2026-11-29T16:00:00Z", "iso") == moment
    assert read_time("2026-11-29T16:00:00", "iso") == moment
    assert read_time(1_795_968_000_000, "unix_ms") == moment
    unfit: tuple[Any, ...] = (None, "x", {}, 1e300)
    for value in unfit:
        with pytest.raises(Unreadable):
            read_time(value, "unix")


def test_a_template_keeps_types_and_leaves_out_what_is_empty() -> None:
    template = {
        "input": {
            "prompt": "{prompt}, please",
            "seed": "{options.seed}",
            "n": "{n}",
            "safe": False,
            "zero": 0,
        },
        "images": ["{image}", "fixed"],
        "none": "{size}",
        "half": "at {size}",
        "empty": {"a": "{size}"},
        "braces": "{{n}}",
    }
    values = {"prompt": "a {n} fox", "n": 2, "options": {"seed": [7]}, "image": None, "size": None}
    assert fill(template, values) == {
        "input": {"prompt": "a {n} fox, please", "seed": [7], "n": 2, "safe": False, "zero": 0},
        "images": ["fixed"],
        "braces": "{n}",
    }


def test_a_path_is_encoded_except_for_the_models_own_slashes() -> None:
    values = {"upstream_model": "owner/name", "provider_ref": "../x?"}
    assert fill_path("/m/{upstream_model}/{provider_ref}", values) == "/m/owner/name/..%2Fx%3F"
    with pytest.raises(ValueError, match=r"no value for \{reference\}"):
        fill_path("/{reference}", values)


def test_a_template_names_its_place_when_it_is_wrong() -> None:
    with pytest.raises(
        ValueError, match=r"^submit\.body\.a\[1\]\.b has no value for {promt}; use one of n, prompt$"
    ):
        check_template({"a": ["x", {"b": "{promt}"}]}, "submit.body", {"prompt", "n"})
    with pytest.raises(ValueError, match=r"^q\.a has a stray '}'"):
        check_template({"a": "x}"}, "q", {"n"})


def test_a_rule_compares_whole_values_beginnings_or_patterns() -> None:
    assert Match(equals=("7", 8)).fits(7)
    assert Match(equals=("7", 8)).fits("8")
    assert not Match(equals=("7",)).fits("77")
    assert Match(prefix="SAFETY.").fits("SAFETY.INPUT")
    assert Match(regex="(?i)nsfw").fits("found NSFW content")
    unfit: tuple[Any, ...] = (None, True, [], {})
    assert not any(Match(regex=".*").fits(value) for value in unfit)


@pytest.mark.parametrize(
    ("text", "excerpt"),
    [
        ("key s3cr/et\x00 here", "key [redacted] here"),
        ("s3c\x07r/et", "[redacted]"),
        ('{"k": "s3cr\\/et"}', '{"k": "[redacted]"}'),
        ("?k=s3cr%2Fet", "?k=[redacted]"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer [redacted]"),
        (
            "to https://a.example/callbacks/lab/tok123 now",
            "to https://a.example/callbacks/lab/[redacted] now",
        ),
        ("see https://b.example/x.png?sig=abc&e=1", "see https://b.example/x.png?[redacted]"),
        ('{"b64": "' + "QUJD" * 100 + '"}', '{"b64": "[bytes]"}'),
        ("line\none\u2028\u202etwo", "line one two"),
        ("a " * 400, "a " * 150),
        ("x" * 99 + " " + "s3cr/et" * 60, "x" * 99 + " " + ("[redacted]" * 60)[:200]),
    ],
)
def test_an_excerpt_is_short_clean_and_without_secrets(text: str, excerpt: str) -> None:
    assert Redactor(["s3cr/et", ""]).excerpt(text) == excerpt
    assert Redactor(["s3cr/et", ""]).excerpt(text.encode()) == excerpt


async def test_an_upstream_that_echoes_our_secrets_does_not_spread_them(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    echo = f"bad key canary-key-71f3 or canary-secret-9b2e for {CALLBACK_URL} with {TOKEN}"
    provider = provider_of("lab-callback", session, upstream.base_url)
    upstream.answers(401, {"error": {"code": "unauthorized", "message": echo}})
    upstream.answers(500, echo.encode())
    upstream.answers(
        200, {"id": "j1", "status": "failed", "error": {"code": "canary-key-71f3", "message": echo}}
    )
    upstream.answers(200, {"id": "j1", "status": "canary-key-71f3"})
    seen = [repr(provider), str(vars(provider))]
    for _ in range(2):
        with pytest.raises(ProviderError) as raised:
            await provider.submit(submission(callback_url=CALLBACK_URL))
        seen += [
            str(raised.value),
            repr(raised.value),
            str(vars(raised.value)),
            repr(raised.value.__context__),
        ]
        assert "bad key [redacted] or [redacted] for " in raised.value.excerpt
        assert TOKEN not in raised.value.excerpt
    seen += [repr(await provider.poll(ATTEMPT)), repr(await provider.poll(ATTEMPT))]
    assert [text for text in seen if "canary-" in text] == []
