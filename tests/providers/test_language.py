"""What a declaration can say of a provider as a whole: addresses, callbacks, credentials, contradictions."""

from __future__ import annotations

import re
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from safelight.domain.provider import AttemptRef, Trust
from safelight.errors import (
    ConfigurationError,
)
from safelight.providers import capabilities_of
from safelight.providers.checks import credential_names, missing_credentials, option_names
from tests.providers.sketches import CREDENTIALS, HEAD, SUBMIT, declared, provider
from tests.providers.upstream import CALLBACK_URL, Upstream, submission


async def test_addresses_from_the_answer_are_called_only_on_the_upstreams_own_hosts(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    links = (
        '[answer.links]\npoll = "urls.get"\ncancel = "urls.cancel"\n[cancel]\nmethod = "PUT"\npath = "/c"\n'
    )
    one = provider(session, upstream, links)
    own = f"{upstream.base_url}/elsewhere/j1?sig=a%2Fb"
    upstream.answers(
        200, {"id": "j1", "status": "queued", "urls": {"get": own, "cancel": "http://127.0.0.1:1/c"}}
    )
    update = await one.submit(submission())
    assert update.links == {"poll": own}
    attempt = AttemptRef("t1-1", "j1", "m", "generate", links=update.links)
    await one.poll(attempt)
    assert (upstream.asked[1].path, upstream.asked[1].query) == ("/elsewhere/j1", {"sig": "a/b"})


@pytest.mark.parametrize(
    "link",
    [
        "http://169.254.169.254/latest",
        "https://evil.example/j1",
        "https://bfl.ai.evil.example/j1",
        "https://xbfl.ai/j1",
        "https://bfl.ai/j1",
        "http://eu.bfl.ai/j1",
        "https://user@eu.bfl.ai/j1",
        "https://eu.bfl.ai/j1#x",
        "https://[::1/j1",
        "//eu.bfl.ai/j1",
        "file:///etc/passwd",
        "https://eu.bfl.ai/j 1",
        "https://eu.bfl.ai\\@evil.example/",
        17,
    ],
)
async def test_an_address_that_leads_elsewhere_is_dropped(
    session: aiohttp.ClientSession, upstream: Upstream, link: Any
) -> None:
    head = HEAD.replace('name = "upstream"', 'name = "upstream"\nlink_hosts = ["*.bfl.ai"]')
    one = provider(session, upstream, '[answer.links]\npoll = "get"\n', head=head)
    upstream.answers(200, {"id": "j1", "status": "queued", "get": link})
    upstream.answers(200, {"id": "j1", "status": "queued", "get": "https://eu.bfl.ai/v1/j1"})
    assert (await one.submit(submission())).links == {}
    assert (await one.submit(submission())).links == {"poll": "https://eu.bfl.ai/v1/j1"}


CALLBACK = (
    SUBMIT
    + """
body = { prompt = "{prompt}", hook = "{callback_url}" }
[callback]
trust = "body"
signature = { kind = "standard_webhooks", secrets = ["callback_secret"], is_optional = true }
[callback.answer]
record = "@"
"""
)


async def test_without_its_optional_secret_a_callback_is_only_a_hint(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    unsigned = provider(session, upstream, CALLBACK)
    assert unsigned.capabilities.trust is Trust.HINT
    await unsigned.verify_callback([], b"{}")
    signed = provider(
        session,
        upstream,
        CALLBACK,
        credentials={**CREDENTIALS, "callback_secret": SecretStr("whsec_c2VjcmV0")},
    )
    assert signed.capabilities.trust is Trust.BODY
    upstream.answers(200, {"id": "j1", "status": "queued"})
    await signed.submit(submission(callback_url=CALLBACK_URL))
    assert upstream.asked[0].body["hook"] == CALLBACK_URL


WAYS = """
[[auth]]
kind = "header"
[[auth]]
kind = "jwt_hs256"
"""


async def test_the_second_way_to_sign_in_is_taken_where_only_its_credentials_are_set(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    keys = {"access_key": SecretStr("ak"), "secret_key": SecretStr("sk")}
    upstream.answers(200, {"id": "j1", "status": "queued"})
    await provider(session, upstream, WAYS, credentials=keys).submit(submission())
    await provider(session, upstream, WAYS).submit(submission())
    assert upstream.asked[0].headers["authorization"].count(".") == 2
    assert upstream.asked[1].headers["authorization"] == "Bearer key-1"
    with pytest.raises(ConfigurationError, match="api_key"):
        provider(session, upstream, WAYS, credentials={})
    declaration = declared(WAYS)
    assert missing_credentials(declaration, {"access_key": "a", "secret_key": "b"}) == ()
    assert credential_names(declaration) == ("api_key", "access_key", "secret_key")


async def test_a_region_chooses_the_host_and_may_be_spoken_of(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    head = HEAD.replace(
        'name = "upstream"',
        f'name = "upstream"\nregion = "us"\nbase_url = "https://a.example"\n'
        f'hosts = {{ us = "{upstream.base_url}/us", eu = "{upstream.base_url}/eu" }}',
    )
    extra = SUBMIT + 'headers = { "X-Region" = "{region}" }\nbody = { prompt = "{prompt}" }\n'
    upstream.answers(200, {"id": "j1", "status": "queued"})
    for region in (None, "eu"):
        one = provider(session, upstream, extra, head=head, base_url=None, region=region)
        await one.submit(submission())
    assert [(asked.path, asked.headers["x-region"]) for asked in upstream.asked] == [
        ("/us/v1/jobs", "us"),
        ("/eu/v1/jobs", "eu"),
    ]
    with pytest.raises(ConfigurationError, match="no region 'mars'; there are eu, us"):
        provider(session, upstream, extra, head=head, base_url=None, region="mars")


def test_capabilities_follow_from_what_is_declared() -> None:
    plain = capabilities_of(declared())
    assert (plain.needs_image_data, plain.needs_image_urls, plain.takes_callback_url) == (False, False, False)
    by_url = capabilities_of(declared(SUBMIT + 'body = { urls = "{images.url}" }\n'))
    assert (by_url.needs_image_data, by_url.needs_image_urls) == (False, True)
    linked = capabilities_of(declared(SUBMIT + 'body = { urls = "{images.link}" }\n'))
    assert (linked.needs_image_data, linked.needs_image_urls) == (True, True)
    assert capabilities_of(declared(CALLBACK)).takes_callback_url


def test_the_options_of_customers_are_those_that_reach_the_upstream() -> None:
    assert option_names(declared()) == ()
    assert option_names(declared(SUBMIT + 'body = { a = "{options.seed}", b = "{options.style.id}" }\n')) == (
        "seed",
        "style",
    )
    assert option_names(declared(SUBMIT + 'body = { input = "{options}" }\n')) is None


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        (SUBMIT + 'body = { a = "{images}" }\n', "say in which form"),
        (SUBMIT + 'body = { a = "{image.png}" }\n', "say in which form"),
        (SUBMIT + 'body = { a = { "$each" = "{images}" } }\n', "is not a table with a meaning"),
        (SUBMIT + 'body = { a = { "$join" = ["x"], b = 1 } }\n', "is not a table with a meaning"),
        (SUBMIT + 'body = { a = "{item.url}" }\n', "no value for {item.url}"),
        (SUBMIT + '[[submit.variants]]\npath = "/x"\n', "needs a condition"),
        (CALLBACK.replace('hook = "{callback_url}"', 'hook = "x"'), "callback.address is 'task'"),
        (
            CALLBACK.replace('trust = "body"', 'trust = "body"\naddress = "account"'),
            "callback.address is 'task'",
        ),
        ('[result]\npath = "/r"\n[result.answer]\nstatus = ""\n', "result.answer.status"),
        ('[[errors.rules]]\nequals = ["x"]\noutcome = "funds"\nends_task = true\n', "'ends_task' needs"),
    ],
)
def test_a_contradiction_is_told_with_its_place(extra: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(message)):
        declared(extra)
