"""Seedream at BytePlus and Volcengine as declared: what is sent, and what the answers mean."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from safelight.domain.failure import FailureClass
from safelight.domain.provider import UpdateStatus
from safelight.errors import ConfigurationError
from safelight.providers import DeclaredProvider, packaged_declaration
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    JPEG,
    NO_MONEY,
    PNG,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)

FIRST, SECOND = (
    {"url": "https://ark.example/1.jpg", "size": "2048x2048"},
    {"url": "https://ark.example/2.jpg"},
)


def answer(*items: Any, **more: Any) -> dict[str, Any]:
    return {
        "model": "m",
        "created": 1,
        "data": list(items),
        "usage": {"generated_images": len(items)},
        **more,
    }


def error(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": "its words", "param": "", "type": "BadRequest"}}


@pytest.fixture
def asker(session: aiohttp.ClientSession, upstream: Upstream) -> Asker:
    return Asker("ark", session, upstream, model="seedream-4-5-251128")


async def test_one_picture_is_asked_for_without_a_mark_on_it(asker: Asker) -> None:
    body = await asker.sends(200, answer(FIRST), size="2048x2048", options={"seed": 3})
    assert body == {
        "model": "seedream-4-5-251128",
        "prompt": "a fox",
        "size": "2048x2048",
        "seed": 3,
        "watermark": False,
    }
    asked = asker.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/images/generations")
    assert asked.headers["authorization"] == "Bearer canary-key-71f3"


async def test_several_pictures_are_a_set_of_at_most_so_many(asker: Asker) -> None:
    body = await asker.sends(
        200, answer(FIRST, SECOND), n=3, aspect_ratio="16:9", options={"watermark": True}
    )
    assert (body["size"], body["watermark"]) == ("2560x1440", True)
    assert body["sequential_image_generation"] == "auto"
    assert body["sequential_image_generation_options"] == {"max_images": 3}
    assert "n" not in body


async def test_an_edit_names_the_pictures(asker: Asker) -> None:
    body = await asker.sends(
        200, answer(FIRST), operation="edit", images=[PNG, JPEG], options={"resolution": "4K"}
    )
    assert body["image"] == [PNG.url, JPEG.url]
    assert body["size"] == "4K"


async def test_the_answer_carries_the_addresses(asker: Asker) -> None:
    update = await asker.submits(200, answer(FIRST, SECOND), n=2)
    assert update.status is UpdateStatus.SUCCEEDED
    assert urls_of(update) == [FIRST["url"], SECOND["url"]]
    assert update.cost == 2


async def test_of_a_set_those_that_came_count(asker: Asker) -> None:
    failed = {"error": {"code": "OutputImageSensitiveContentDetected", "message": "no"}}
    update = await asker.submits(200, answer(FIRST, failed), n=2)
    assert (update.status, urls_of(update)) == (UpdateStatus.SUCCEEDED, [FIRST["url"]])


async def test_pictures_count_although_an_error_rides_beside_them(asker: Asker) -> None:
    update = await asker.submits(200, answer(FIRST, **error("InternalServiceError")), n=2)
    assert urls_of(update) == [FIRST["url"]]


@pytest.mark.parametrize(
    ("codes", "failure_class"),
    [
        (["InternalServiceError", "OutputImageRiskDetection"], FailureClass.CONTENT_BLOCKED),
        (["InvalidParameter.size"], FailureClass.INVALID_REQUEST),
        (["InternalServiceError"], FailureClass.UPSTREAM_FAULT),
    ],
)
async def test_a_set_without_any_picture_failed_for_the_worst_reason(
    asker: Asker, codes: list[str], failure_class: FailureClass
) -> None:
    items = [{"error": {"code": code, "message": "no"}} for code in codes]
    update = await asker.submits(200, answer(*items), n=2)
    assert update.failure is not None
    assert update.failure.failure_class is failure_class


@pytest.mark.parametrize(
    ("status", "body", "word"),
    [
        (400, error("InvalidParameter"), REFUSED_INPUT),
        (400, error("InputTextSensitiveContentDetected"), REFUSED_CONTENT),
        (400, error("InputImageRiskDetection"), REFUSED_CONTENT),
        (400, error("OutputImageSensitiveContentDetected.PolicyViolation"), REFUSED_CONTENT),
        (400, error("SensitiveContentDetected"), REFUSED_CONTENT),
        (400, error("InvalidEndpoint.ClosedEndpoint"), REFUSED_FAULT),
        (401, error("AuthenticationError"), BAD_KEY),
        (403, error("AccountOverdueError"), NO_MONEY),
        (403, error("AccessDenied"), BAD_KEY),
        (404, error("ModelNotOpen"), REFUSED_FAULT),
        (404, error("InvalidEndpointOrModel.NotFound"), REFUSED_FAULT),
        (429, error("RateLimitExceeded.EndpointRPMExceeded"), TOO_FAST),
        (500, error("InternalServiceError"), REFUSED_FAULT),
        (500, error("Surprise"), "uncertain"),
        (502, HTML, "uncertain"),
        (200, error("OutputImageRiskDetection"), REFUSED_CONTENT),
        (200, answer(**error("InputTextSensitiveContentDetected")), REFUSED_CONTENT),
        (200, error("InvalidParameter"), REFUSED_INPUT),
        (200, error("AccountOverdueError"), NO_MONEY),
        (200, error("RateLimitExceeded"), TOO_FAST),
        (200, error("Surprise"), REFUSED_FAULT),
        (200, {}, "uncertain"),
    ],
)
async def test_each_error_is_read_by_its_own_words(asker: Asker, status: int, body: Any, word: str) -> None:
    assert await asker.refuses(status, body) == word


def test_the_region_chooses_the_host(session: aiohttp.ClientSession) -> None:
    declaration = packaged_declaration("ark")
    key = {"api_key": SecretStr("key-1")}
    assert set(declaration.hosts) == {"ap-southeast", "cn-beijing"}
    with pytest.raises(ConfigurationError, match="no region 'moon'; there are ap-southeast, cn-beijing"):
        DeclaredProvider(declaration, credentials=key, session=session, region="moon")
