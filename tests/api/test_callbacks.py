"""The callback door: what it hands on, and how little it says."""

from __future__ import annotations

import dataclasses

import pytest

from safelight.api import callbacks
from safelight.api.parts import ApiParts
from safelight.errors import CallbackRejected
from tests.api.door import Door, FakeReceive, running_door

BODY = '{"prompt": "ça… 🦊"}'.encode() + b" \n"


async def test_a_callback_is_handed_on_byte_for_byte(door: Door, receive: FakeReceive) -> None:
    headers = {"X-Signature": "caf\u00e9", "Content-Encoding": "gzip"}
    answer = await door.ask("POST", "/callbacks/studio/some-token", data=BODY, headers=headers)
    assert (answer.status, answer.body) == (202, b"")
    ((provider, token, received, raw),) = receive.given
    assert (provider, token, raw) == ("studio", "some-token", BODY)
    assert (b"x-signature", "caf\u00e9".encode()) in received
    await door.ask("POST", "/callbacks/studio", data=b"")
    assert receive.given[1][:2] == ("studio", None)


@pytest.mark.parametrize(
    ("status", "code"), [(401, "unauthorized"), (400, "bad-request"), (404, "not-found")]
)
async def test_a_rejected_callback_is_not_told_why(
    door: Door, receive: FakeReceive, status: int, code: str
) -> None:
    receive.rejection = CallbackRejected("signature_stale", status=status)
    answer = await door.ask("POST", "/callbacks/studio/token", data=BODY)
    assert (answer.status, answer.code) == (status, code)
    assert b"stale" not in answer.body
    assert b"signature" not in answer.body


@pytest.mark.parametrize("size", [262_145, 3_000_000])
async def test_a_callback_over_the_cap_is_refused_and_not_read(
    door: Door, receive: FakeReceive, size: int
) -> None:
    answer = await door.ask("POST", "/callbacks/studio/token", data=b"x" * size)
    assert (answer.status, answer.code) == (413, "body-too-large")
    assert receive.given == []


async def test_a_callback_as_large_as_the_cap_is_taken(door: Door, receive: FakeReceive) -> None:
    assert (await door.ask("POST", "/callbacks/studio/token", data=b"x" * 262_144)).status == 202
    assert len(receive.given[0][3]) == 262_144


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
async def test_only_post_is_taken(door: Door, method: str) -> None:
    for path in ("/callbacks/studio/token", "/callbacks/studio"):
        answer = await door.ask(method, path)
        assert (answer.status, answer.headers["Allow"]) == (405, "POST")


async def test_a_callback_that_cannot_be_checked_just_now_is_sent_again(
    door: Door, receive: FakeReceive
) -> None:
    """Such as one whose public keys cannot be had: a 401 would tell its sender to give up."""
    receive.rejection = CallbackRejected("keys_unavailable", status=503)
    answer = await door.ask("POST", "/callbacks/studio/t", data=b"{}")
    assert (answer.status, answer.code, answer.headers["Retry-After"]) == (503, "unavailable", "60")


async def test_an_endless_address_leads_nowhere(door: Door, receive: FakeReceive) -> None:
    assert (await door.ask("POST", f"/callbacks/studio/{'t' * 500}", data=b"")).status == 404
    assert receive.given == []


async def test_a_flood_of_callbacks_is_slowed_down_and_takes_nothing_from_submits(
    parts: ApiParts, receive: FakeReceive
) -> None:
    slow = dataclasses.replace(parts, settings=parts.settings.model_copy(update={"max_requests_per_s": 3.0}))
    async with running_door(slow) as door:
        statuses = [(await door.ask("POST", "/callbacks/studio/t", data=b"")).status for _ in range(6)]
        assert statuses[:3] == [202, 202, 202]
        assert 429 in statuses
        assert (await door.submit({"prompt": "x"})).status == 202


async def test_callbacks_in_hand_are_bounded(
    door: Door, receive: FakeReceive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "MAX_IN_FLIGHT", 0)
    answer = await door.ask("POST", "/callbacks/studio/t", data=b"")
    assert (answer.status, answer.headers["Retry-After"]) == (429, "1")
    assert receive.given == []


async def test_a_callback_that_breaks_off_is_not_taken(door: Door, receive: FakeReceive) -> None:
    await door.break_off(b"POST /callbacks/studio/t HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
    assert (await door.ask("POST", "/callbacks/studio/whole", data=b"whole")).status == 202
    assert [raw for _, _, _, raw in receive.given] == [b"whole"]
