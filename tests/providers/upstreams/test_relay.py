"""The template for relays: what it sends and reads before anybody has changed a line."""

from __future__ import annotations

import hmac
import json
import re
from importlib import resources
from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import FailureClass
from safelight.domain.provider import AfterUncertain, Output, Trust, UpdateStatus
from safelight.errors import CallbackRejected
from safelight.providers import load_declaration
from tests.providers.upstream import Upstream, error
from tests.providers.upstreams.asking import (
    BAD_KEY,
    HTML,
    KEY,
    NO_MONEY,
    PNG,
    PNG_BASE64,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    REFUSED_INPUT,
    TOO_FAST,
    Asker,
    urls_of,
)

SECRET = "canary-callback-33cc"
EXAMPLE = re.compile(r"# (\[|[A-Za-z_-]+ = )")


@pytest.fixture
def relay(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    return Asker("relay", session, upstream, credentials={"api_key": KEY, "callback_secret": SECRET})


async def test_a_submit_speaks_as_most_relays_do(relay: Asker) -> None:
    wishes = {"n": 2, "size": "1024x1024", "images": [PNG], "options": {"seed": 7}}
    update = await relay.submits(
        200, {"id": "j1", "status": "queued"}, callback_url=relay.callback_url, **wishes
    )
    asked = relay.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/v1/images/generations")
    assert asked.headers["authorization"] == f"Bearer {KEY}"
    assert asked.body == {
        "model": "gpt-image-2",
        "prompt": "a fox",
        "n": 2,
        "size": "1024x1024",
        "image_urls": ["https://shop.example/inputs/1.png"],
        "seed": 7,
        "callback_url": relay.callback_url,
    }
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "j1")


@pytest.mark.parametrize(
    ("word", "status"),
    [
        ("pending", "queued"),
        ("IN_PROGRESS", "running"),
        ("completed", "succeeded"),
        ("cancelled", "canceled"),
        ("resting", "running"),
    ],
)
async def test_a_look_reads_the_usual_words(relay: Asker, word: str, status: str) -> None:
    update = await relay.polls(200, {"id": "j1", "status": word, "images": [{"url": "https://r/1"}]})
    assert update.status == status
    assert relay.upstream.asked[0].path == "/v1/images/tasks/j1"


async def test_pictures_are_addresses_or_base64(relay: Asker) -> None:
    images = [{"url": "https://r/1"}, {"b64_json": PNG_BASE64}]
    update = await relay.polls(200, {"id": "j1", "status": "completed", "images": images})
    assert update.outputs == (Output(url="https://r/1"), Output(data=b"png-bytes"))


@pytest.mark.parametrize(
    ("code", "failure_class"),
    [
        ("moderation_blocked", FailureClass.CONTENT_BLOCKED),
        ("invalid_request", FailureClass.INVALID_REQUEST),
        ("anything_else", FailureClass.UPSTREAM_FAULT),
    ],
)
async def test_a_failed_task_says_why(relay: Asker, code: str, failure_class: FailureClass) -> None:
    update = await relay.polls(200, {"id": "j1", "status": "failed", **error(code)})
    assert update.failure is not None
    assert update.failure.failure_class is failure_class


@pytest.mark.parametrize(
    ("status", "code", "outcome"),
    [
        (400, "bad_size", REFUSED_INPUT),
        (400, "content_policy_violation", REFUSED_CONTENT),
        (401, "invalid_api_key", BAD_KEY),
        (402, "payment_required", NO_MONEY),
        (429, "insufficient_quota", NO_MONEY),
        (429, "rate_limit_exceeded", TOO_FAST),
        (503, "overloaded", REFUSED_FAULT),
        (500, "something_new", "uncertain"),
    ],
)
async def test_what_a_refusal_means(relay: Asker, status: int, code: str, outcome: str) -> None:
    assert await relay.refuses(status, error(code)) == outcome


@pytest.mark.parametrize(("status", "body"), [(502, HTML), (500, b""), (404, HTML)])
async def test_what_is_not_its_own_word_leaves_a_submit_open(relay: Asker, status: int, body: Any) -> None:
    assert await relay.refuses(status, body) == "uncertain"
    assert relay.provider.capabilities.after_uncertain is AfterUncertain.NONE


async def test_a_signed_callback_is_believed(relay: Asker) -> None:
    raw = json.dumps({"id": "j1", "status": "completed", "images": [{"url": "https://r/1"}]}).encode()
    proof = f"sha256={hmac.digest(SECRET.encode(), raw, 'sha256').hex()}".encode()
    await relay.provider.verify_callback([(b"x-signature", proof)], raw)
    assert urls_of(relay.provider.read_callback(raw)) == ["https://r/1"]
    assert relay.provider.capabilities.trust is Trust.BODY
    with pytest.raises(CallbackRejected, match="signature_wrong"):
        await relay.provider.verify_callback([(b"x-signature", proof)], raw + b" ")


def test_without_a_secret_callbacks_are_hints(upstream: Upstream, session: aiohttp.ClientSession) -> None:
    assert Asker("relay", session, upstream).provider.capabilities.trust is Trust.HINT


def uncommented(start: str) -> str:
    """The template with the commented example that begins so; it ends where a comment is a sentence again."""
    text = (resources.files("safelight.providers") / "declarations" / "relay.toml").read_text("utf-8")
    lines, is_on = [], False
    for line in text.splitlines():
        is_on = bool(EXAMPLE.match(line)) and (is_on or line.startswith(f"# {start}"))
        lines.append(line.removeprefix("# ") if is_on else line)
    return "\n".join(lines)


@pytest.mark.parametrize(
    "start",
    [
        "base_url =",
        "[submit.headers]",
        "[[submit.variants]]",
        "cost =",
        "[look_up]",
        "[cancel]",
        "result_lifetime_s",
        "cost_unit",
    ],
)
def test_every_commented_example_is_sound(start: str) -> None:
    text = uncommented(start)
    if start == "[look_up]":
        text = text.replace('provider_ref = "id"', 'provider_ref = "id"\nreference = "reference"', 1)
    assert load_declaration(text).name == "relay"


def test_the_example_of_a_list_needs_the_time_of_a_record() -> None:
    text = uncommented("[list]").replace('provider_ref = "id"', 'provider_ref = "id"\ncreated_at = "at"', 1)
    listing = load_declaration(text).listing
    assert listing is not None
    assert listing.paging == "page"
