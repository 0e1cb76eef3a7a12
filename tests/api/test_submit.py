"""Submitting a task over HTTP: the receipt, what is refused and how, and in which order."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from tests.api.door import Door
from tests.api.pictures import data_url, png

SHOE = {"prompt": "a red shoe on white"}
RECEIPT_KEYS = {"id", "status", "credits", "created_at"}


async def test_a_submit_is_answered_with_a_receipt_and_where_to_ask(door: Door) -> None:
    answer = await door.submit({**SHOE, "n": 2}, key="first")
    assert answer.status == 202
    receipt = answer.json
    assert receipt.keys() == RECEIPT_KEYS
    assert receipt["status"] == "processing"
    assert receipt["credits"] == {"held": 4, "captured": 0, "released": 0}
    assert answer.headers["Location"] == f"/v1/tasks/{receipt['id']}"
    assert answer.headers["Retry-After"] == "1"
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.headers["Idempotency-Key-Expires"] > receipt["created_at"]
    assert "Idempotent-Replayed" not in answer.headers
    assert (await door.request("GET", answer.headers["Location"])).status == 200


async def test_every_field_that_a_body_may_have_is_kept(door: Door) -> None:
    body = {
        "model": "sketch",
        "operation": "edit",
        "prompt": "naïve 🦊 \u202e text\r\nwith lines",
        "n": 1,
        "aspect_ratio": "16:9",
        "images": [(await door.upload(png())).json["id"], data_url(png(shade=7))],
        "mask": data_url(png(shade=255)),
        "options": {"seed": 2**63, "lab": {"fail": 0.5}},
        "metadata": {"order": "1001", "nested": [1, {"a": None}]},
        "priority": -10,
    }
    answer = await door.submit(body)
    assert answer.status == 202
    task = (await door.request("GET", answer.headers["Location"])).json
    assert (task["prompt"], task["metadata"]) == (body["prompt"], body["metadata"])
    assert (task["model"], task["operation"], task["n"]) == ("sketch", "edit", 1)


@pytest.mark.parametrize("spelling", [{}, {"n": 1, "model": "sketch", "operation": "generate"}])
async def test_what_is_left_out_has_its_default(door: Door, spelling: dict[str, Any]) -> None:
    answer = await door.submit({**SHOE, **spelling})
    task = (await door.request("GET", answer.headers["Location"])).json
    assert (task["model"], task["operation"], task["n"], task["metadata"]) == ("sketch", "generate", 1, {})


@pytest.mark.parametrize(
    ("field", "change"),
    [
        ("colour", {"colour": "red"}),
        ("state", {"state": "succeeded"}),
        ("account_id", {"account_id": "x"}),
        ("price", {"price": 0}),
        ("prompt", {"prompt": ""}),
        ("prompt", {"prompt": " \t\n"}),
        ("prompt", {"prompt": None}),
        ("prompt", {"prompt": 7}),
        ("prompt", {"prompt": "x" * 101}),
        ("prompt", {"prompt": "a\x00b"}),
        ("prompt", {"prompt": "cut \ud83d"}),
        ("n", {"n": 0}),
        ("n", {"n": -1}),
        ("n", {"n": 5}),
        ("n", {"n": 10**30}),
        ("n", {"n": 1.0}),
        ("n", {"n": True}),
        ("n", {"n": "2"}),
        ("n", {"n": None}),
        ("size", {"size": "1024X1024"}),
        ("size", {"size": "1024×1024"}),
        ("size", {"size": "0x0"}),
        ("size", {"size": 64}),
        ("size", {"size": ""}),
        ("size", {"model": "poster", "size": "0x64"}),
        ("aspect_ratio", {"aspect_ratio": "4:3"}),
        ("aspect_ratio", {"size": "64x64", "aspect_ratio": "1:1"}),
        ("operation", {"operation": "upscale"}),
        ("operation", {"operation": ["edit"]}),
        ("operation", {"model": "poster", "operation": "edit", "images": ["https://a.example.com/"]}),
        ("model", {"model": 3}),
        ("images", {"images": ["https://a.example.com/x.png"]}),
        ("images", {"operation": "edit"}),
        ("images", {"operation": "edit", "images": "https://a.example.com/x.png"}),
        ("images", {"operation": "edit", "images": [1]}),
        ("images", {"operation": "edit", "images": ["https://a.example.com/x.png"] * 3}),
        ("images[0]", {"operation": "edit", "images": ["http://a.example.com/x.png"]}),
        ("images[0]", {"operation": "edit", "images": ["file:///etc/passwd"]}),
        ("images[0]", {"operation": "edit", "images": ["https://2130706433/"]}),
        ("images[0]", {"operation": "edit", "images": ["data:image/png;base64,####"]}),
        ("mask", {"mask": "https://a.example.com/x.png"}),
        ("mask", {"model": "retouch", "operation": "edit", "images": [data_url(png())], "mask": "x"}),
        ("mask", {"operation": "edit", "images": [data_url(png())], "mask": None}),
        ("mask", {"operation": "edit", "images": [data_url(png())], "mask": "http://127.0.0.1/x.png"}),
        ("options.lab", {"model": "poster", "options": {"seed": 1, "lab": 2}}),
        (
            "options.lab",
            {"model": "retouch", "operation": "edit", "images": [data_url(png())], "options": {"lab": 2}},
        ),
        ("options", {"options": []}),
        ("options", {"options": {"lab": "x" * 16_384}}),
        ("metadata", {"metadata": {"a": "x" * 16_384}}),
        ("metadata", {"metadata": {"a\x00": 1}}),
        ("metadata", {"metadata": {"deep": [{"\ud83d": 1}]}}),
        ("metadata", {"metadata": None}),
        ("priority", {"priority": 11}),
        ("priority", {"priority": -11}),
        ("priority", {"priority": 0.0}),
        ("priority", {"priority": False}),
    ],
)
async def test_a_field_that_does_not_fit_is_named_and_nothing_is_kept(
    door: Door, field: str, change: dict[str, Any]
) -> None:
    before = await door.rows()
    answer = await door.submit({**SHOE, **change}, key="again")
    assert (answer.status, answer.code) == (422, "validation-failed")
    assert [error["field"] for error in answer.json["errors"]] == [field]
    assert await door.rows() == before
    assert (await door.submit(SHOE, key="again")).status == 202


async def test_a_prompt_is_measured_in_code_points(door: Door) -> None:
    for letter in ("x", "漢", "🦊"):
        assert (await door.submit({"prompt": letter * 100})).status == 202
        assert (await door.submit({"prompt": letter * 101})).status == 422


async def test_several_faults_are_told_at_once(door: Door) -> None:
    answer = await door.submit({"prompt": "", "n": 0, "priority": 99})
    assert [error["field"] for error in answer.json["errors"]] == ["prompt", "n", "priority"]


async def test_a_field_name_with_half_a_surrogate_pair_does_not_come_back(door: Door) -> None:
    answer = await door.submit(b'{"prompt": "x", "\\ud83d": 1}')
    assert answer.json["errors"] == [{"field": "?", "message": "unknown field"}]


async def test_a_size_is_any_where_the_model_takes_any(door: Door) -> None:
    assert (await door.submit({**SHOE, "model": "poster", "size": "640x480"})).status == 202


async def test_an_unknown_model_is_not_found(door: Door) -> None:
    answer = await door.submit({**SHOE, "model": "no-such\x00model"[:7]})
    assert (answer.status, answer.code) == (404, "model-not-found")


DEEP = b'{"prompt": "x", "metadata": {"a": ' + b"[" * 31 + b"]" * 31 + b"}}"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"nonsense",
        b"[]",
        b'"text"',
        b"null",
        b'\xef\xbb\xbf{"prompt": "x"}',
        b'{"prompt": "\xff\xfe"}',
        b'{"prompt": "\xed\xa0\xbd"}',
        '{"prompt": "x"}'.encode("utf-16"),
        b'{"prompt": "a\x00b"}',
        b'{"prompt": "x", "prompt": "y"}',
        b'{"prompt": "x", "metadata": {"a": 1, "a": 1}}',
        b'{"prompt": "x", "options": {"a": NaN}}',
        b'{"prompt": "x", "options": {"a": -Infinity}}',
        b'{"prompt": "x", "options": {"a": 1e400}}',
        b'{"prompt": "x", "options": {"a": ' + b"9" * 5000 + b"}}",
        b'{"prompt": "x"} trailing',
        DEEP,
        b'{"prompt": "x", "metadata": ' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"}",
    ],
    ids=lambda raw: repr(raw[:24]),
)
async def test_a_body_that_is_not_one_strict_json_object_is_refused(door: Door, raw: bytes) -> None:
    answer = await door.submit(raw)
    assert (answer.status, answer.code) == (400, "invalid-json")


async def test_thirty_two_levels_are_not_too_deep(door: Door) -> None:
    raw = b'{"prompt": "x", "metadata": {"a": ' + b"[" * 30 + b"]" * 30 + b"}}"
    assert (await door.submit(raw)).status == 202


@pytest.mark.parametrize(
    "declared",
    ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16", "json", ""],
)
async def test_a_body_that_is_not_declared_as_json_is_refused(door: Door, declared: str) -> None:
    answer = await door.submit(SHOE, headers={"Content-Type": declared})
    assert (answer.status, answer.code) == (415, "unsupported-media-type")


async def test_a_packed_body_is_refused(door: Door) -> None:
    assert (await door.submit(SHOE, headers={"Content-Encoding": "gzip"})).status == 415


@pytest.mark.parametrize("declared", ["application/json; charset=utf-8", 'Application/JSON;charset="UTF-8"'])
async def test_json_may_say_that_it_is_utf_8(door: Door, declared: str) -> None:
    assert (await door.submit(SHOE, headers={"Content-Type": declared})).status == 202


@pytest.mark.parametrize("size", [1_048_577, 10_485_760])
async def test_a_body_over_the_cap_is_refused_and_its_sender_sees_why(door: Door, size: int) -> None:
    answer = await door.submit(b'{"prompt": "' + b"x" * size + b'"}')
    assert (answer.status, answer.code) == (413, "body-too-large")


async def test_a_body_of_unannounced_length_is_cut_off_at_the_cap(door: Door) -> None:
    head = (
        "POST /v1/tasks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
        "Content-Type: application/json\r\nIdempotency-Key: k\r\n"
        f"Authorization: Bearer {door.caller.key}\r\n\r\n"
    )
    chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
    answer = await door.raw(head.encode() + chunk * 17)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()


async def test_more_than_the_account_has_is_payment_required(door: Door) -> None:
    poor = await door.new_caller(granted=3)
    assert (await door.submit(SHOE, by=poor)).status == 202
    answer = await door.submit(SHOE, by=poor, key="later")
    assert (answer.status, answer.code) == (402, "insufficient-credits")
    assert (await door.request("GET", "/v1/balance", by=poor)).json == {"available": 1, "held": 2}


@pytest.mark.parametrize(
    "key",
    ["a", "x" * 255, '"quoted"', "0199-uuid", "!#$%&'()*+,-./:;<=>?@[]^_`{|}~", r'"with \" and \\ inside"'],
)
async def test_a_key_of_visible_characters_is_taken(door: Door, key: str) -> None:
    wanted = 400 if " " in key else 202
    assert (await door.submit(SHOE, key=key)).status == wanted


@pytest.mark.parametrize(
    "key", ["x" * 256, "two words", "caf\u00e9", "emoji \U0001f98a", '"open', '"', '""', '"a"b"']
)
async def test_a_malformed_key_is_refused(door: Door, key: str) -> None:
    answer = await door.submit(SHOE, key=key)
    assert (answer.status, answer.code) == (400, "idempotency-key-invalid")


async def test_a_missing_key_and_a_double_one_are_refused(door: Door) -> None:
    headers = {**door.caller.headers, "Content-Type": "application/json"}
    missing = await door.ask("POST", "/v1/tasks", data=json.dumps(SHOE), headers=headers)
    assert (missing.status, missing.code) == (400, "idempotency-key-missing")
    twice = [*headers.items(), ("Idempotency-Key", "a"), ("Idempotency-Key", "a")]
    double = await door.ask("POST", "/v1/tasks", data=json.dumps(SHOE), headers=twice)
    assert (double.status, double.code) == (400, "idempotency-key-invalid")


async def test_the_bare_and_the_quoted_key_are_one_and_case_counts(door: Door) -> None:
    first = await door.submit(SHOE, key="Key")
    assert (await door.submit(SHOE, key='"Key"')).body == first.body
    assert (await door.submit(SHOE, key="key")).json["id"] != first.json["id"]


async def test_fifty_submits_at_once_with_one_key_make_one_task(door: Door) -> None:
    answers = await asyncio.gather(*(door.submit(SHOE, key="one") for _ in range(50)))
    assert {answer.status for answer in answers} == {202}
    assert len({answer.body for answer in answers}) == 1
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
    assert len((await door.request("GET", "/v1/tasks")).json["data"]) == 1
    assert (await door.request("GET", "/v1/balance")).json == {"available": 998, "held": 2}


async def test_order_and_spaces_do_not_make_another_body_but_numbers_and_values_do(door: Door) -> None:
    first = await door.submit(b'{"prompt": "x", "n": 1, "metadata": {"a": 1, "b": 2}}', key="k")
    again = await door.submit(b'{ "metadata":{"b":2,"a":1},"n":1,"prompt":"\\u0078" }', key="k")
    assert (again.body, again.headers["Idempotent-Replayed"]) == (first.body, "true")
    for other in (
        b'{"prompt": "y", "n": 1, "metadata": {"a": 1, "b": 2}}',
        b'{"prompt": "x", "metadata": {"a": 1, "b": 2}}',
        b'{"prompt": "x", "n": 1, "metadata": {"a": 1.0, "b": 2}}',
    ):
        answer = await door.submit(other, key="k")
        assert (answer.status, answer.code) == (422, "idempotency-key-reused")
        assert first.json["id"] not in answer.body.decode()


async def test_a_replay_costs_no_row_and_wins_over_an_empty_balance(door: Door) -> None:
    poor = await door.new_caller(granted=2)
    first = await door.submit(SHOE, key="k", by=poor)
    before = await door.rows()
    again = await door.submit(SHOE, key="k", by=poor)
    assert (again.status, again.body) == (202, first.body)
    assert await door.rows() == before


async def test_a_replay_wins_over_a_model_that_is_gone(door: Door) -> None:
    body = {**SHOE, "model": "poster"}
    first = await door.submit(body, key="k")
    models = door.parts.catalog._models
    poster = models.pop("poster")
    try:
        again = await door.submit(body, key="k")
        assert (again.status, again.body, again.headers["Idempotent-Replayed"]) == (202, first.body, "true")
        assert (await door.submit({**body, "n": 2}, key="k")).code == "idempotency-key-reused"
        assert (await door.submit(body)).code == "model-not-found"
    finally:
        models["poster"] = poster


async def test_a_key_belongs_to_the_account_and_not_to_its_api_key(door: Door) -> None:
    first = await door.submit(SHOE, key="k")
    other = await door.new_caller()
    theirs = await door.submit(SHOE, key="k", by=other)
    assert theirs.json["id"] != first.json["id"]
    assert "Idempotent-Replayed" not in theirs.headers


async def test_an_unknown_caller_learns_nothing_about_the_body(door: Door) -> None:
    answer = await door.ask("POST", "/v1/tasks", data=b"\xff" * 2_000_000)
    assert (answer.status, answer.code) == (401, "unauthorized")
