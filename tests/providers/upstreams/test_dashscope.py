"""DashScope, asynchronous: star sizes, k of n with a code for each picture, money and moderation as HTTP 400."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from safelight.domain.failure import FailureClass
from safelight.domain.provider import UpdateStatus
from safelight.errors import ProviderError
from safelight.providers import DeclaredProvider, packaged_declaration
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    JPEG,
    KEY,
    NO_MONEY,
    PNG,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)

EDITS = "/services/aigc/image2image/image-synthesis"
URL = "https://dashscope-result.oss-cn-beijing.aliyuncs.com/1.png?Expires=1"


def task(status: str, **changes: Any) -> dict[str, Any]:
    return {"request_id": "q1", "output": {"task_id": "d1", "task_status": status, **changes}}


def error(code: str) -> dict[str, Any]:
    return {"code": code, "message": "its words", "request_id": "q1"}


@pytest.fixture
def dashscope(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    """DashScope, asked for Wan 2.2."""
    return Asker("dashscope", session, upstream, model="wan2.2-t2i-flash")


async def test_a_submit_asks_to_be_asynchronous_and_writes_sizes_with_a_star(dashscope: Asker) -> None:
    options = {"seed": 7, "negative_prompt": "blur", "watermark": False}
    update = await dashscope.submits(200, task("PENDING"), n=2, size="1280x720", options=options)
    asked = dashscope.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/services/aigc/text2image/image-synthesis")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.headers["x-dashscope-async"] == "enable"
    assert asked.body == {
        "model": "wan2.2-t2i-flash",
        "input": {"prompt": "a fox", "negative_prompt": "blur"},
        "parameters": {"size": "1280*720", "n": 2, "seed": 7, "watermark": False},
    }
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "d1")


@pytest.mark.parametrize(
    ("model", "wishes", "path", "given"),
    [
        (
            "wan2.6-t2i",
            {"operation": "generate"},
            "/services/aigc/image-generation/generation",
            {"messages": [{"role": "user", "content": [{"text": "a fox"}]}]},
        ),
        (
            "wanx2.1-imageedit",
            {"images": [PNG]},
            EDITS,
            {"function": "description_edit", "prompt": "a fox", "base_image_url": PNG.url},
        ),
        (
            "wanx2.1-imageedit",
            {"images": [PNG], "mask": replace(JPEG, url=None)},
            EDITS,
            {
                "function": "description_edit_with_mask",
                "prompt": "a fox",
                "base_image_url": PNG.url,
                "mask_image_url": "data:image/jpeg;base64,anBlZy1ieXRlcw==",
            },
        ),
        (
            "wan2.5-i2i-preview",
            {"images": [PNG, JPEG]},
            EDITS,
            {"prompt": "a fox", "images": [PNG.url, JPEG.url]},
        ),
    ],
)
async def test_every_model_has_its_path_and_its_input(
    upstream: Upstream, session: aiohttp.ClientSession, model: str, wishes: Any, path: str, given: Any
) -> None:
    dashscope = Asker("dashscope", session, upstream, model=model)
    sent = await dashscope.sends(200, task("PENDING"), **{"operation": "edit", **wishes})
    assert sent == {"model": model, "input": given, "parameters": {"n": 1}}
    assert (upstream.asked[0].path, upstream.asked[0].headers["x-dashscope-async"]) == (path, "enable")


@pytest.mark.parametrize(
    ("body", "status", "urls"),
    [
        (task("PENDING"), UpdateStatus.QUEUED, []),
        (task("SUSPENDED"), UpdateStatus.QUEUED, []),
        (task("RUNNING"), UpdateStatus.RUNNING, []),
        (task("UNKNOWN"), UpdateStatus.RUNNING, []),
        (task("CANCELED"), UpdateStatus.CANCELED, []),
        (task("SUCCEEDED", results=[{"url": URL}]), UpdateStatus.SUCCEEDED, [URL]),
        (
            task("SUCCEEDED", results=[{"code": "DataInspectionFailed", "message": "x"}, {"url": URL}]),
            UpdateStatus.SUCCEEDED,
            [URL],
        ),
        (
            task("SUCCEEDED", choices=[{"message": {"content": [{"type": "image", "image": URL}]}}] * 2),
            UpdateStatus.SUCCEEDED,
            [URL, URL],
        ),
    ],
)
async def test_what_a_look_says(
    dashscope: Asker, body: dict[str, Any], status: UpdateStatus, urls: list[str]
) -> None:
    update = await dashscope.polls(200, body, "d1")
    assert (update.status, urls_of(update)) == (status, urls)
    assert dashscope.upstream.asked[0].path == "/tasks/d1"


@pytest.mark.parametrize(
    ("body", "failure_class"),
    [
        (task("FAILED", code="DataInspectionFailed", message="x"), FailureClass.CONTENT_BLOCKED),
        (task("FAILED", code="InvalidParameter.Size", message="x"), FailureClass.INVALID_REQUEST),
        (task("FAILED", code="InternalError.Algo", message="x"), FailureClass.UPSTREAM_FAULT),
        (task("FAILED"), FailureClass.UPSTREAM_FAULT),
        (task("SUCCEEDED", results=[{"code": "DataInspectionFailed"}] * 2), FailureClass.CONTENT_BLOCKED),
        (task("SUCCEEDED", results=[{"code": "InternalError"}]), FailureClass.UPSTREAM_FAULT),
    ],
)
async def test_why_there_are_no_pictures(
    dashscope: Asker, body: dict[str, Any], failure_class: FailureClass
) -> None:
    update = await dashscope.polls(200, body, "d1")
    assert update.failure is not None
    assert update.failure.failure_class is failure_class


SUBMIT_ERRORS = [
    (400, error("InvalidParameter"), REFUSED_INPUT),
    (400, error("DataInspectionFailed"), REFUSED_CONTENT),
    (400, error("Arrearage"), NO_MONEY),
    (401, error("InvalidApiKey"), BAD_KEY),
    (400, error("InvalidApiKey"), BAD_KEY),
    (403, error("AccessDenied"), BAD_KEY),
    (429, error("Throttling.RateQuota"), TOO_FAST),
    (429, error("Throttling.AllocationQuota"), TOO_FAST),
    (500, error("InternalError.Timeout"), REFUSED_FAULT),
    (503, error("ServiceUnavailable"), "uncertain"),
    (500, b"", "uncertain"),
    (502, HTML, "uncertain"),
]


@pytest.mark.parametrize("name", ["dashscope", "dashscope-sync"])
@pytest.mark.parametrize(("http", "body", "word"), SUBMIT_ERRORS)
async def test_what_an_answered_submit_comes_to(
    upstream: Upstream, session: aiohttp.ClientSession, name: str, http: int, body: Any, word: str
) -> None:
    assert await Asker(name, session, upstream).refuses(http, body) == word


async def test_an_error_of_a_look_says_nothing_about_the_task(dashscope: Asker) -> None:
    assert await dashscope.poll_fails(500, error("InternalError")) == "nothing"
    assert await dashscope.poll_fails(429, error("Throttling")) == "nothing"


async def test_a_pending_task_is_canceled(dashscope: Asker) -> None:
    dashscope.upstream.answers(200, {"request_id": "q2"})
    dashscope.upstream.answers(400, error("UnsupportedOperation"))
    dashscope.upstream.answers(200, error("UnsupportedOperation"))
    assert await dashscope.provider.cancel(dashscope.attempt("d1"))
    assert not await dashscope.provider.cancel(dashscope.attempt("d1"))
    with pytest.raises(ProviderError):
        await dashscope.provider.cancel(dashscope.attempt("d1"))
    asked = dashscope.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/tasks/d1/cancel")


async def test_a_region_has_a_host_and_looks_have_a_quota(session: aiohttp.ClientSession) -> None:
    for name in ("dashscope", "dashscope-sync"):
        declaration = packaged_declaration(name)
        assert sorted(declaration.hosts) == ["cn", "intl", "us"]
        DeclaredProvider(declaration, credentials={"api_key": SecretStr(KEY)}, session=session, region="intl")
    assert packaged_declaration("dashscope").limits.polls_per_s == 20
    assert packaged_declaration("dashscope").listing is None
