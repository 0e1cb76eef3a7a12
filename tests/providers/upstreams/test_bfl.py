"""Black Forest Labs: polling addresses on cluster hosts, moderation as a status, a signature nobody vouches for."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from safelight.domain.failure import FailureClass
from safelight.domain.provider import Trust, UpdateStatus
from safelight.errors import CallbackRejected, ConfigurationError
from safelight.providers import DeclaredProvider, packaged_declaration
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    JPEG,
    JPEG_BASE64,
    KEY,
    NO_MONEY,
    PNG,
    PNG_BASE64,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)

SECRET = "canary-callback-33cc"
SAMPLE = "https://delivery-eu1.bfl.ai/results/1.jpeg?sig=abc"
READY = {"id": "b1", "status": "Ready", "result": {"sample": SAMPLE, "seed": 7, "prompt": "a fox"}}


@pytest.fixture
def bfl(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    """BFL, asked for FLUX.2 pro."""
    return Asker("bfl", session, upstream, model="flux-2-pro")


async def test_a_submit_names_the_model_in_its_path(bfl: Asker) -> None:
    sent = await bfl.sends(
        200,
        {"id": "b1", "polling_url": "https://api.eu1.bfl.ai/v1/get_result?id=b1"},
        size="1024x768",
        options={"seed": 7, "output_format": "png"},
    )
    asked = bfl.upstream.asked[0]
    assert (asked.method, asked.path, asked.headers["x-key"]) == ("POST", "/v1/flux-2-pro", KEY)
    assert sent == {"prompt": "a fox", "width": 1024, "height": 768, "seed": 7, "output_format": "png"}


@pytest.mark.parametrize(
    ("model", "wishes", "given"),
    [
        (
            "flux-2-pro",
            {"images": [PNG, JPEG]},
            {"input_image": PNG_BASE64, "input_image_2": JPEG_BASE64},
        ),
        (
            "flux-kontext-pro",
            {"images": [JPEG], "aspect_ratio": "16:9"},
            {"input_image": JPEG_BASE64, "aspect_ratio": "16:9"},
        ),
        ("flux-pro-1.0-fill", {"images": [JPEG], "mask": PNG}, {"image": JPEG_BASE64, "mask": PNG_BASE64}),
    ],
)
async def test_pictures_are_numbered_fields_in_base64(
    upstream: Upstream, session: aiohttp.ClientSession, model: str, wishes: Any, given: Any
) -> None:
    bfl = Asker("bfl", session, upstream, model=model)
    sent = await bfl.sends(200, {"id": "b1"}, operation="edit", **wishes)
    assert sent == {"prompt": "a fox", **given}
    assert upstream.asked[0].path == f"/v1/{model}"


async def test_with_a_callback_the_secret_goes_along_and_no_polling_url_comes_back(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    bfl = Asker("bfl", session, upstream, credentials={"api_key": KEY, "callback_secret": SECRET})
    answer = {"id": "b1", "status": "Pending", "webhook_url": bfl.callback_url, "cost": 3}
    update = await bfl.submits(200, answer, callback_url=bfl.callback_url)
    sent = upstream.asked[0].body
    assert (sent["webhook_url"], sent["webhook_secret"]) == (bfl.callback_url, SECRET)
    assert (update.provider_ref, update.cost, dict(update.links)) == ("b1", 3.0, {})
    await bfl.polls(200, READY, "b1")
    assert (upstream.asked[-1].path, upstream.asked[-1].query) == ("/v1/get_result", {"id": "b1"})


async def test_a_polling_url_is_followed_on_bfls_own_hosts_only(bfl: Asker) -> None:
    for address in (
        "https://api.eu1.bfl.ai/v1/get_result?id=b1",
        "https://api.bfl.ai.evil.example/?id=b1",
        "http://api.eu1.bfl.ai/v1/get_result?id=b1",
    ):
        bfl.upstream.answers(200, {"id": "b1", "polling_url": address})
    bfl.upstream.answers(200, READY)
    kept = [set((await bfl.provider.submit(bfl.submission())).links) for _ in range(3)]
    assert kept == [{"poll"}, set(), set()]
    links = {"poll": f"{bfl.upstream.base_url}/cluster/get_result?id=b1"}
    await bfl.provider.poll(replace(bfl.attempt("b1"), links=links))
    assert (bfl.upstream.asked[-1].path, bfl.upstream.asked[-1].query) == (
        "/cluster/get_result",
        {"id": "b1"},
    )


@pytest.mark.parametrize(
    ("body", "status", "failure_class"),
    [
        ({"status": "Pending"}, UpdateStatus.RUNNING, None),
        ({"status": "Task not found", "result": None}, UpdateStatus.RUNNING, None),
        (READY, UpdateStatus.SUCCEEDED, None),
        ({"status": "Request Moderated", "result": None}, UpdateStatus.BLOCKED, FailureClass.CONTENT_BLOCKED),
        ({"status": "Content Moderated", "result": None}, UpdateStatus.BLOCKED, FailureClass.CONTENT_BLOCKED),
        ({"status": "Error", "details": {"x": 1}}, UpdateStatus.FAILED, FailureClass.UPSTREAM_FAULT),
    ],
)
async def test_what_a_look_says(
    bfl: Asker, body: dict[str, Any], status: UpdateStatus, failure_class: FailureClass | None
) -> None:
    update = await bfl.polls(200, {"id": "b1", **body}, "b1")
    assert (update.status, urls_of(update)) == (status, [SAMPLE] if body is READY else [])
    assert (update.failure.failure_class if update.failure else None) is failure_class


@pytest.mark.parametrize(
    ("http", "body", "word"),
    [
        (422, {"detail": [{"loc": ["body"], "msg": "too big", "type": "value_error"}]}, REFUSED_INPUT),
        (400, {"error": "validation_error", "message": "x"}, REFUSED_INPUT),
        (402, {"detail": "Insufficient credits"}, NO_MONEY),
        (403, {"error": "insufficient_credits", "message": "x"}, NO_MONEY),
        (403, {"detail": "Not authenticated"}, BAD_KEY),
        (429, {"detail": "too many active tasks"}, TOO_FAST),
        (429, {"error": "rate_limit_exceeded", "retry_after": 4}, TOO_FAST),
        (500, {"detail": "Internal Server Error"}, "uncertain"),
        (503, b"", "uncertain"),
        (502, HTML, "uncertain"),
    ],
)
async def test_what_an_answered_submit_comes_to(bfl: Asker, http: int, body: Any, word: str) -> None:
    assert await bfl.refuses(http, body) == word


async def test_a_signed_callback_is_still_only_a_hint(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    bfl = Asker("bfl", session, upstream, credentials={"api_key": KEY, "callback_secret": SECRET})
    raw = json.dumps(READY).encode()
    digest = hmac.new(SECRET.encode(), raw, hashlib.sha256).hexdigest().encode()
    await bfl.provider.verify_callback([(b"x-bfl-signature", b"sha256=" + digest)], raw)
    with pytest.raises(CallbackRejected):
        await bfl.provider.verify_callback([(b"x-bfl-signature", digest)], raw)
    assert bfl.provider.read_callback(raw).provider_ref == "b1"
    assert bfl.provider.capabilities.trust is Trust.HINT


async def test_results_live_ten_minutes_and_a_region_has_a_host(session: aiohttp.ClientSession) -> None:
    declaration = packaged_declaration("bfl")
    credentials = {"api_key": SecretStr(KEY)}
    regional = DeclaredProvider(declaration, credentials=credentials, session=session, region="eu")
    assert regional.capabilities.result_lifetime_s == 600
    with pytest.raises(ConfigurationError, match="there are eu, us"):
        DeclaredProvider(declaration, credentials=credentials, session=session, region="mars")
