"""Leonardo.Ai: nested records, callbacks whose address and token belong to the API key."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import FailureClass
from safelight.domain.provider import Trust, UpdateStatus
from safelight.errors import CallbackRejected
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    KEY,
    NO_MONEY,
    REFUSED_CONTENT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)

TOKEN = "canary-callback-44dd"
URL = "https://cdn.leonardo.ai/users/1/generations/g1/0.jpg"
ACCEPTED = {"sdGenerationJob": {"generationId": "g1", "apiCreditCost": 8}}


def record(**changes: Any) -> dict[str, Any]:
    return {"generations_by_pk": {"id": "g1", "status": "PENDING", "generated_images": [], **changes}}


def error(words: str, code: str = "unexpected") -> dict[str, Any]:
    return {"error": words, "path": "$", "code": code}


@pytest.fixture
def leonardo(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    """Leonardo with the token of its callbacks."""
    return Asker("leonardo", session, upstream, credentials={"api_key": KEY, "callback_secret": TOKEN})


async def test_a_submit_names_the_model_by_its_id_and_stays_private(leonardo: Asker) -> None:
    update = await leonardo.submits(
        200,
        ACCEPTED,
        n=2,
        size="1472x832",
        options={"seed": 7, "negative_prompt": "blur", "style": "DYNAMIC"},
        callback_url="https://shop.example/never/sent",
    )
    asked = leonardo.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/generations")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "modelId": "de7d3faf-762f-48e0-b3b7-9d0ac3a3fcf3",
        "prompt": "a fox",
        "negative_prompt": "blur",
        "width": 1472,
        "height": 832,
        "num_images": 2,
        "seed": 7,
        "presetStyle": "DYNAMIC",
        "contrast": 3.5,
        "public": False,
    }
    assert (update.status, update.provider_ref, update.cost) == (UpdateStatus.QUEUED, "g1", 8.0)


async def test_no_model_takes_pictures_and_no_address_is_sent(leonardo: Asker) -> None:
    assert {model.operations for model in leonardo.declaration.models} == {("generate",)}
    assert not leonardo.provider.capabilities.takes_callback_url


@pytest.mark.parametrize(
    ("changes", "status", "urls"),
    [
        ({}, UpdateStatus.RUNNING, []),
        ({"status": "SOMETHING_NEW"}, UpdateStatus.RUNNING, []),
        (
            {"status": "COMPLETE", "generated_images": [{"url": URL, "nsfw": False}]},
            UpdateStatus.SUCCEEDED,
            [URL],
        ),
        ({"status": "FAILED"}, UpdateStatus.FAILED, []),
    ],
)
async def test_what_a_look_says(
    leonardo: Asker, changes: dict[str, Any], status: UpdateStatus, urls: list[str]
) -> None:
    update = await leonardo.polls(200, record(**changes), "g1")
    assert (update.status, urls_of(update)) == (status, urls)
    assert leonardo.upstream.asked[0].path == "/generations/g1"
    if update.failure:
        assert update.failure.failure_class is FailureClass.UPSTREAM_FAULT


async def test_a_null_record_says_nothing(leonardo: Asker) -> None:
    assert await leonardo.poll_fails(200, {"generations_by_pk": None}) == "nothing"


@pytest.mark.parametrize(
    ("http", "body", "word"),
    [
        (400, error("Invalid width"), REFUSED_INPUT),
        (400, error("not enough api tokens userId: 1"), NO_MONEY),
        (402, error("pay first"), NO_MONEY),
        (403, error("flagged by content moderation"), REFUSED_CONTENT),
        (401, error("Authentication hook unauthorized this request", "access-denied"), BAD_KEY),
        (400, error("Invalid response from authorization hook"), BAD_KEY),
        (500, error("Invalid response from authorization hook"), BAD_KEY),
        (429, error("too many"), TOO_FAST),
        (500, error("internal"), "uncertain"),
        (502, HTML, "uncertain"),
    ],
)
async def test_what_an_answered_submit_comes_to(leonardo: Asker, http: int, body: Any, word: str) -> None:
    assert await leonardo.refuses(http, body) == word


async def test_a_callback_proves_its_sender_and_is_a_hint(
    leonardo: Asker, upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    inner = {"id": "g1", "status": "COMPLETE", "images": [{"url": URL}]}
    envelope = {"type": "image_generation.complete", "object": "generation", "data": {"object": inner}}
    raw = json.dumps(envelope).encode()
    await leonardo.provider.verify_callback([(b"authorization", f"Bearer {TOKEN}".encode())], raw)
    for headers in ([], [(b"authorization", b"Bearer wrong")], [(b"authorization", TOKEN.encode())]):
        with pytest.raises(CallbackRejected):
            await leonardo.provider.verify_callback(headers, raw)
    update = leonardo.provider.read_callback(raw)
    assert (update.provider_ref, update.status, urls_of(update)) == ("g1", UpdateStatus.SUCCEEDED, [URL])
    assert leonardo.provider.capabilities.trust is Trust.HINT
    without_token = Asker("leonardo", session, upstream)
    await without_token.provider.verify_callback([], raw)


async def test_the_token_that_a_callback_repeats_is_in_no_excerpt(leonardo: Asker) -> None:
    inner = {"id": "g1", "status": TOKEN, "apiKey": {"webhookCallbackApiKey": TOKEN}}
    update = leonardo.provider.read_callback(json.dumps({"data": {"object": inner}}).encode())
    assert TOKEN not in repr(update)
