"""Gemini image models as declared: what is sent, and what their answers mean."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import Failure, FailureClass
from safelight.domain.provider import Output, UpdateStatus
from safelight.errors import ProviderUnavailable
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    JPEG,
    JPEG_BASE64,
    NO_MONEY,
    PNG,
    PNG_BASE64,
    REFUSED_FAULT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
)

PICTURE = {"inlineData": {"mimeType": "image/png", "data": PNG_BASE64}}
BLOCKED = Failure(FailureClass.CONTENT_BLOCKED, "content_blocked")
NO_PICTURE = Failure(FailureClass.UPSTREAM_FAULT, "no_picture")


def answer(*parts: Any, finish: str = "STOP") -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish, "index": 0}
    return {"candidates": [candidate], "usageMetadata": {"candidatesTokenCount": 1290}, "responseId": "r-1"}


def error(code: int, status: str, *details: dict[str, Any]) -> dict[str, Any]:
    return {"error": {"code": code, "message": "its words", "status": status, "details": list(details)}}


@pytest.fixture
def asker(session: aiohttp.ClientSession, upstream: Upstream) -> Asker:
    return Asker("gemini", session, upstream)


async def test_a_picture_is_asked_for_in_words(asker: Asker) -> None:
    body = await asker.sends(
        200, answer(PICTURE), aspect_ratio="16:9", options={"image_size": "2K", "seed": 7}
    )
    assert body == {
        "contents": [{"role": "user", "parts": [{"text": "a fox"}]}],
        "generationConfig": {
            "responseModalities": ["IMAGE"],
            "seed": 7,
            "imageConfig": {"aspectRatio": "16:9", "imageSize": "2K"},
        },
    }
    asked = asker.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/models/gemini-3.1-flash-image:generateContent")
    assert asked.headers["x-goog-api-key"] == "canary-key-71f3"


async def test_an_edit_is_the_same_call_with_pictures_beside_the_words(asker: Asker) -> None:
    body = await asker.sends(200, answer(PICTURE), operation="edit", images=[PNG, JPEG])
    assert body["contents"][0]["parts"] == [
        {"text": "a fox"},
        {"inlineData": {"mimeType": "image/png", "data": PNG_BASE64}},
        {"inlineData": {"mimeType": "image/jpeg", "data": JPEG_BASE64}},
    ]


@pytest.mark.parametrize(
    "parts",
    [
        (PICTURE,),
        ({"text": "here it is"}, PICTURE),
        ({**PICTURE, "inlineData": {"mimeType": "image/png", "data": "ZHJhZnQ="}, "thought": True}, PICTURE),
    ],
)
async def test_all_parts_are_looked_through_and_drafts_left_out(asker: Asker, parts: Any) -> None:
    update = await asker.submits(200, answer(*parts))
    assert (update.status, update.outputs) == (UpdateStatus.SUCCEEDED, (Output(data=b"png-bytes"),))
    assert update.cost == 1290


@pytest.mark.parametrize(
    "reason",
    ["SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK"],
)
async def test_a_blocked_prompt_comes_as_success_without_candidates(asker: Asker, reason: str) -> None:
    update = await asker.submits(200, {"promptFeedback": {"blockReason": reason}})
    assert (update.status, update.failure) == (UpdateStatus.BLOCKED, BLOCKED)


@pytest.mark.parametrize(
    ("finish", "failure"),
    [
        *(
            (word, BLOCKED)
            for word in ["SAFETY", "PROHIBITED_CONTENT", "BLOCKLIST", "SPII", "RECITATION", "IMAGE_SAFETY"]
        ),
        *((word, BLOCKED) for word in ("IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION")),
        *((word, NO_PICTURE) for word in ("NO_IMAGE", "IMAGE_OTHER", "OTHER", "STOP", "NEVER_SEEN")),
        ("LANGUAGE", Failure(FailureClass.INVALID_REQUEST, "invalid_request")),
    ],
)
async def test_a_success_without_a_picture_says_why(asker: Asker, finish: str, failure: Failure) -> None:
    update = await asker.submits(200, answer({"text": "I cannot draw this."}, finish=finish))
    assert (update.failure, update.outputs) == (failure, ())


async def test_a_picture_counts_whatever_the_reason_beside_it(asker: Asker) -> None:
    update = await asker.submits(200, answer(PICTURE, finish="MAX_TOKENS"))
    assert (update.status, len(update.outputs)) == (UpdateStatus.SUCCEEDED, 1)


KEY_INVALID = {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (400, error(400, "INVALID_ARGUMENT"), REFUSED_INPUT),
        (400, error(400, "INVALID_ARGUMENT", KEY_INVALID), BAD_KEY),
        (400, error(400, "FAILED_PRECONDITION"), NO_MONEY),
        (403, error(403, "PERMISSION_DENIED"), BAD_KEY),
        (404, error(404, "NOT_FOUND"), REFUSED_FAULT),
        (429, error(429, "RESOURCE_EXHAUSTED"), TOO_FAST),
        (500, error(500, "INTERNAL"), REFUSED_FAULT),
        (503, error(503, "UNAVAILABLE"), REFUSED_FAULT),
        (504, error(504, "DEADLINE_EXCEEDED"), REFUSED_FAULT),
        (500, error(500, "SURPRISE"), "uncertain"),
        (502, HTML, "uncertain"),
        (200, {}, "uncertain"),
    ],
)
async def test_each_error_is_read_by_its_own_words(asker: Asker, status: int, body: Any, word: str) -> None:
    assert await asker.refuses(status, body) == word


async def test_the_time_to_wait_is_in_the_body(asker: Asker) -> None:
    quota = {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": "PerMinute"}]}
    retry = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "55.5s"}
    asker.upstream.answers(429, error(429, "RESOURCE_EXHAUSTED", quota, retry))
    with pytest.raises(ProviderUnavailable) as raised:
        await asker.provider.submit(asker.submission())
    assert raised.value.retry_after_s == 55.5
