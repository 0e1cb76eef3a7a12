"""Volcengine Visual: signed calls, a poll that is a POST, the verdict in the outer code."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import FailureClass
from safelight.domain.provider import Output, UpdateStatus
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    ACCESS_KEY,
    BAD_KEY,
    HTML,
    JPEG,
    JPEG_BASE64,
    PNG,
    PNG_BASE64,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    REFUSED_INPUT,
    SECRET_KEY,
    TOO_FAST,
    Asker,
    urls_of,
)

MODERATION = [50411, 50412, 50413, 50511, 50512, 50518, 50519]


def answer(data: Any, code: int = 10000) -> dict[str, Any]:
    return {"code": code, "data": data, "message": "its words", "request_id": "r1", "status": code}


@pytest.fixture
def volc(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    pair = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
    return Asker("volc-visual", session, upstream, credentials=pair)


async def test_a_submit_is_signed_and_names_its_action(volc: Asker) -> None:
    update = await volc.submits(200, answer({"task_id": "7392616336519610409"}), size="2048x1024")
    asked = volc.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/")
    assert asked.query == {"Action": "CVSync2AsyncSubmitTask", "Version": "2022-08-31"}
    assert asked.headers["authorization"].startswith(f"HMAC-SHA256 Credential={ACCESS_KEY}/")
    assert "/cn-north-1/cv/request, SignedHeaders=" in asked.headers["authorization"]
    assert asked.body == {
        "req_key": "jimeng_t2i_v40",
        "prompt": "a fox",
        "width": 2048,
        "height": 1024,
        "force_single": True,
    }
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "7392616336519610409")


async def test_an_edit_carries_its_pictures_as_base64(volc: Asker) -> None:
    options = {"seed": 7, "scale": 0.5, "use_pre_llm": False}
    body = await volc.sends(
        200, answer({"task_id": "j1"}), operation="edit", images=[PNG, JPEG], options=options
    )
    assert body["binary_data_base64"] == [PNG_BASE64, JPEG_BASE64]
    assert {key: body[key] for key in options} == options


async def test_a_look_is_a_post_with_the_model_and_json_inside_json(volc: Asker) -> None:
    update = await volc.polls(200, answer({"status": "generating", "image_urls": None}))
    asked = volc.upstream.asked[0]
    assert asked.query == {"Action": "CVSync2AsyncGetResult", "Version": "2022-08-31"}
    assert asked.body["req_key"] == "jimeng_t2i_v40"
    assert asked.body["task_id"] == "j1"
    assert json.loads(asked.body["req_json"]) == {"return_url": True}
    assert update.status is UpdateStatus.RUNNING


@pytest.mark.parametrize(
    ("word", "status"),
    [("in_queue", "queued"), ("generating", "running"), ("expired", "failed"), ("not_found", "running")],
)
async def test_a_look_reads_the_state(volc: Asker, word: str, status: str) -> None:
    assert (await volc.polls(200, answer({"status": word}))).status == status


async def test_results_are_addresses_or_base64_but_never_twice(volc: Asker) -> None:
    both = {"status": "done", "image_urls": ["https://v/1"], "binary_data_base64": [PNG_BASE64]}
    assert urls_of(await volc.polls(200, answer(both))) == ["https://v/1"]


@pytest.mark.parametrize("urls", [None, []])
async def test_without_addresses_the_base64_counts(volc: Asker, urls: Any) -> None:
    data = {"status": "done", "image_urls": urls, "binary_data_base64": [PNG_BASE64, JPEG_BASE64]}
    update = await volc.polls(200, answer(data))
    assert update.outputs == (Output(data=b"png-bytes"), Output(data=b"jpeg-bytes"))


@pytest.mark.parametrize("code", MODERATION)
@pytest.mark.parametrize(("status", "data"), [(400, None), (200, None), (200, {"status": "done"})])
async def test_moderation_ends_the_task_when_it_is_polled(
    volc: Asker, code: int, status: int, data: Any
) -> None:
    update = await volc.polls(status, answer(data, code))
    assert update.status is UpdateStatus.BLOCKED
    assert update.failure is not None
    assert update.failure.failure_class is FailureClass.CONTENT_BLOCKED


@pytest.mark.parametrize(("status", "code"), [(429, 50429), (429, 50430), (500, 50500), (400, 50520)])
async def test_any_other_error_says_nothing_about_the_task(volc: Asker, status: int, code: int) -> None:
    word = "unavailable: rate_limited" if status == 429 else "nothing"
    assert await volc.poll_fails(status, answer(None, code)) == word


async def test_the_outer_code_comes_before_the_state(volc: Asker) -> None:
    done = {"status": "done", "image_urls": ["https://v/1"]}
    assert await volc.poll_fails(200, answer(done, 50500)) == "nothing"


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        *((400, code, REFUSED_CONTENT) for code in MODERATION),
        (200, 50412, REFUSED_CONTENT),
        (429, 50429, TOO_FAST),
        (429, 50430, TOO_FAST),
        (200, 50430, TOO_FAST),
        (500, 50500, REFUSED_FAULT),
        (500, 50501, REFUSED_FAULT),
        (400, 50520, REFUSED_FAULT),
        (400, 50522, REFUSED_FAULT),
        (400, 50200, REFUSED_INPUT),
        (200, 50207, REFUSED_FAULT),
        (500, 59999, "uncertain"),
    ],
)
async def test_what_a_refusal_means(volc: Asker, status: int, code: int, outcome: str) -> None:
    assert await volc.refuses(status, answer(None, code)) == outcome


async def test_the_gateway_before_it_refuses_in_another_shape(volc: Asker) -> None:
    told = {"ResponseMetadata": {"Error": {"Code": "SignatureDoesNotMatch", "Message": "no"}}}
    assert await volc.refuses(401, told) == BAD_KEY


@pytest.mark.parametrize(
    ("status", "body"), [(502, HTML), (500, b""), (200, HTML), (200, answer({"other": 1}))]
)
async def test_what_is_not_its_own_word_leaves_a_submit_open(volc: Asker, status: int, body: Any) -> None:
    assert await volc.refuses(status, body) == "uncertain"
