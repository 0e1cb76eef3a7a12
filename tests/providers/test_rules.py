"""How a declaration's own error rules come before what a status usually means."""

from __future__ import annotations

import aiohttp
import pytest
from pydantic import SecretStr

from safelight.domain.provider import Output, UpdateStatus
from safelight.errors import ProviderError, ProviderRefused, ProviderUnavailable, SubmissionUncertain
from safelight.providers import DeclaredProvider, load_declaration
from tests.providers.upstream import ATTEMPT, Upstream, submission

TEXT = """
name = "acme"

[auth]
kind = "header"
header = "x-key"
value = "{credentials.key}"

[submit]
path = "/{upstream_model}/jobs"
after_uncertain = "none"
success_if = "code == `0`"
query = { hook = "{callback_url}" }
body = { input = { text = "{prompt}", w = "{width}", h = "{height}" } }

[answer]
record = "data"
provider_ref = "task.id"
status = "state"
statuses = { finished = "succeeded", bad = "failed" }
outputs = { items = "files", url = "@" }
error_message = "why"
percent = "ratio"
percent_full = 1

[poll]
method = "POST"
path = "/fetch"
body = { id = "{provider_ref}" }
success_if = "code == `0`"

[[errors.rules]]
phases = ["submit"]
status = ["200-299", 429]
path = "code"
equals = [1101]
outcome = "funds"

[[errors.rules]]
header = "X-Verdict"
prefix = "moderat"
outcome = "content_blocked"
code = "prompt_blocked"

[[errors.rules]]
path = "msg"
regex = "(?i)busy"
outcome = "rate_limited"

[[errors.rules]]
status = [403]
outcome = "ambiguous"

[[errors.rules]]
phases = ["poll"]
status = [200]
path = "code"
equals = [1101]
outcome = "credentials"

[[failures]]
path = "why"
regex = "NSFW"
class = "content_blocked"
code = "picture_blocked"

[[models]]
name = "acme-1"
upstream_model = "owner/acme-1"
price = 1
"""


@pytest.fixture
def provider(upstream: Upstream, session: aiohttp.ClientSession) -> DeclaredProvider:
    """A provider in a dialect unlike the lab's."""
    credentials = {"key": SecretStr("k-canary")}
    return DeclaredProvider(
        load_declaration(TEXT), credentials=credentials, session=session, base_url=upstream.base_url + "/api/"
    )


async def test_an_enveloped_dialect_is_sent_and_read(upstream: Upstream, provider: DeclaredProvider) -> None:
    upstream.answers(200, {"code": 0, "data": {"task": {"id": 7}}})
    upstream.answers(
        200, {"code": 0, "data": {"state": "finished", "files": ["https://a.example/1"], "ratio": 0.5}}
    )
    given = submission(
        upstream_model="owner/acme-1", size="64x32", callback_url="https://s.example/c?x=1&y=2"
    )
    accepted = await provider.submit(given)
    polled = await provider.poll(ATTEMPT)
    sent, asked = upstream.asked
    assert (sent.path, sent.query) == ("/api/owner/acme-1/jobs", {"hook": "https://s.example/c?x=1&y=2"})
    assert (sent.body, sent.headers["x-key"]) == ({"input": {"text": "a fox", "w": 64, "h": 32}}, "k-canary")
    assert (accepted.status, accepted.provider_ref) == (UpdateStatus.QUEUED, "7")
    assert (asked.method, asked.path, asked.body) == ("POST", "/api/fetch", {"id": "j1"})
    assert (polled.status, polled.percent) == (UpdateStatus.SUCCEEDED, 50)
    assert polled.outputs == (Output(url="https://a.example/1"),)


@pytest.mark.parametrize("status", [200, 429])
async def test_a_rule_finds_an_empty_account_behind_another_status(
    upstream: Upstream, provider: DeclaredProvider, status: int
) -> None:
    upstream.answers(status, {"code": 1101, "msg": "pack used up"})
    with pytest.raises(ProviderUnavailable) as raised:
        await provider.submit(submission())
    assert raised.value.reason == "funds"


async def test_a_rule_may_look_at_a_header(upstream: Upstream, provider: DeclaredProvider) -> None:
    upstream.answers(403, b"<html>", {"x-verdict": "moderated"})
    with pytest.raises(ProviderRefused) as raised:
        await provider.submit(submission())
    assert (raised.value.failure_class, raised.value.failure_code) == ("content_blocked", "prompt_blocked")


async def test_a_rule_may_look_at_words(upstream: Upstream, provider: DeclaredProvider) -> None:
    upstream.answers(503, {"code": 9, "msg": "We are BUSY"}, {"Retry-After": "7"})
    with pytest.raises(ProviderUnavailable) as raised:
        await provider.submit(submission())
    assert (raised.value.reason, raised.value.retry_after_s) == ("rate_limited", 7.0)


async def test_a_rule_may_take_back_what_a_status_usually_means(
    upstream: Upstream, provider: DeclaredProvider
) -> None:
    upstream.answers(403, {"code": 1})
    with pytest.raises(SubmissionUncertain):
        await provider.submit(submission())


async def test_a_success_that_says_no_inside_is_uncertain_without_a_rule(
    upstream: Upstream, provider: DeclaredProvider
) -> None:
    upstream.answers(200, {"code": 5, "data": {"task": {"id": 7}}})
    with pytest.raises(SubmissionUncertain):
        await provider.submit(submission())


async def test_rules_of_another_phase_do_not_apply(upstream: Upstream, provider: DeclaredProvider) -> None:
    upstream.answers(200, {"code": 1101})
    with pytest.raises(ProviderUnavailable) as raised:
        await provider.poll(ATTEMPT)
    assert raised.value.reason == "credentials"
    upstream.answers(429, {"code": 1101})
    with pytest.raises(ProviderError):
        await provider.poll(ATTEMPT)


async def test_a_failed_record_may_be_told_apart_by_its_words(
    upstream: Upstream, provider: DeclaredProvider
) -> None:
    upstream.answers(200, {"code": 0, "data": {"state": "bad", "why": "found NSFW content"}})
    update = await provider.poll(ATTEMPT)
    assert update.failure is not None
    assert (update.failure.failure_class, update.failure.code) == ("content_blocked", "picture_blocked")
    assert update.excerpt == "found NSFW content"
