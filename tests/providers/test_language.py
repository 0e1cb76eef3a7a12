"""What a declaration can say beyond the lab's own three: each axis with an upstream that needs it."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from safelight.domain.failure import Failure, FailureClass
from safelight.domain.provider import AttemptRef, InputImage, Trust, UpdateStatus
from safelight.errors import (
    ConfigurationError,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    SubmissionUncertain,
)
from safelight.providers import DeclaredProvider, capabilities_of, load_declaration
from safelight.providers.checks import credential_names, missing_credentials, option_names
from tests.providers.upstream import CALLBACK_URL, Upstream, submission

HEAD = """
name = "upstream"
[submit]
path = "/v1/jobs"
after_uncertain = "none"
body = { prompt = "{prompt}" }
[answer]
provider_ref = "id"
status = "status"
statuses = { queued = "queued", running = "running", done = "succeeded", failed = "failed" }
outputs = { items = "images", url = "url" }
[poll]
path = "/v1/jobs/{provider_ref}"
"""
MODELS = """
[[models]]
name = "m"
upstream_model = "owner/m/turbo"
price = 1
operations = ["generate", "edit"]
max_images = 4
takes_mask = true
values = { kind = "txt2img" }
[[models]]
name = "other"
price = 1
"""
ATTEMPT = AttemptRef(
    reference="t1-1", provider_ref="j1", upstream_model="owner/m/turbo", operation="generate"
)
CREDENTIALS = {"api_key": SecretStr("key-1")}
PNG = InputImage("image/png", b"png-bytes", "https://shop.example/inputs/1")
HIDDEN = InputImage("image/webp", b"webp-bytes")


def declared(extra: str = "", *, head: str = HEAD) -> Any:
    """A declaration; tables in `extra` are added, and a `submit` table there replaces the usual one."""
    if "[submit]" in extra:
        head = re.sub(r"\[submit\].*?(?=\n\[answer\])", "", head, flags=re.DOTALL)
    if "[poll]" in extra:
        head = re.sub(r"\[poll\].*", "", head, flags=re.DOTALL)
    return load_declaration(head + extra + MODELS)


def provider(
    session: aiohttp.ClientSession,
    upstream: Upstream,
    extra: str = "",
    *,
    head: str = HEAD,
    credentials: dict[str, SecretStr] | None = None,
    **changes: Any,
) -> DeclaredProvider:
    return DeclaredProvider(
        declared(extra, head=head),
        credentials=CREDENTIALS if credentials is None else credentials,
        session=session,
        base_url=changes.pop("base_url", upstream.base_url),
        **changes,
    )


SUBMIT = """
[submit]
path = "/v1/jobs"
after_uncertain = "none"
"""


async def test_pictures_are_written_in_the_form_that_the_upstream_wants(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    upstream.answers(200, {"id": "j1", "status": "queued"})
    one = provider(
        session,
        upstream,
        SUBMIT
        + """
[submit.body]
first = "{image.link}"
all = "{images.link}"
second = "{images.1.base64}"
third = "{images.2.base64}"
addresses = "{images.url}"
references = { "$each" = "{images}", "$as" = { uri = "{item.data_url}", kind = "{item.type}", weight = 1 } }
mask = "{mask.base64}"
""",
    )
    await one.submit(submission(images=[PNG, HIDDEN], operation="edit", mask=HIDDEN))
    body = upstream.asked[0].body
    assert body == {
        "first": "https://shop.example/inputs/1",
        "all": ["https://shop.example/inputs/1", "data:image/webp;base64,d2VicC1ieXRlcw=="],
        "second": "d2VicC1ieXRlcw==",
        # One picture has no address: a list with a gap would be another task.
        "references": [
            {"uri": "data:image/png;base64,cG5nLWJ5dGVz", "kind": "image/png", "weight": 1},
            {"uri": "data:image/webp;base64,d2VicC1ieXRlcw==", "kind": "image/webp", "weight": 1},
        ],
        "mask": "d2VicC1ieXRlcw==",
    }


async def test_a_multipart_body_carries_files_and_texts(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    upstream.answers(200, {"id": "j1", "status": "queued"})
    one = provider(
        session,
        upstream,
        SUBMIT
        + """
encoding = "multipart"
[submit.body]
prompt = "{prompt}"
n = "{n}"
fast = true
"image[]" = "{images.file}"
mask = "{mask.file}"
""",
    )
    await one.submit(submission(prompt="ein Füchslein", images=[PNG, HIDDEN], mask=PNG))
    asked = upstream.asked[0]
    assert asked.headers["content-type"].startswith("multipart/form-data; boundary=")
    parts = asked.raw.split(b"--" + asked.headers["content-type"].partition("boundary=")[2].encode())
    texts = [part for part in parts if b"name=" in part]
    assert [part.split(b'name="')[1].split(b'"')[0] for part in texts] == [
        *(b"prompt", b"n", b"fast", b"image[]", b"image[]", b"mask")
    ]
    assert "ein Füchslein".encode() in texts[0]
    assert b"\r\n\r\n1\r\n" in texts[1]
    assert b"\r\n\r\ntrue\r\n" in texts[2]
    assert b'filename="image.png"' in texts[3]
    assert b"png-bytes" in texts[3]
    assert b"Content-Type: image/webp" in texts[4]


async def test_a_prompt_without_a_utf8_form_is_refused_before_a_multipart_send(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    one = provider(session, upstream, SUBMIT + 'encoding = "multipart"\nbody = { prompt = "{prompt}" }\n')
    with pytest.raises(ProviderRefused):
        await one.submit(submission(prompt="half \ud800"))
    assert upstream.asked == []


async def test_a_form_body_is_url_encoded(session: aiohttp.ClientSession, upstream: Upstream) -> None:
    upstream.answers(200, {"id": "j1", "status": "queued"})
    one = provider(
        session, upstream, SUBMIT + 'encoding = "form"\nbody = { p = "{prompt}", n = "{n}", raw = false }\n'
    )
    await one.submit(submission(prompt="a&b ü", n=2))
    assert upstream.asked[0].raw == b"p=a%26b+%C3%BC&n=2&raw=false"
    assert upstream.asked[0].headers["content-type"] == "application/x-www-form-urlencoded"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (
            {"size": "1536x1024"},
            {
                "star": "1536*1024",
                "colon": "1536:1024",
                "w": 1536,
                "ratio": "3:2",
                "x": "3x2",
                "word": "wide",
            },
        ),
        ({"aspect_ratio": "16:9"}, {"ratio": "16:9", "x": "16x9", "given": "16:9", "word": "2K"}),
        ({}, {}),
    ],
)
async def test_a_size_is_written_in_every_way(
    session: aiohttp.ClientSession, upstream: Upstream, given: dict[str, str], expected: dict[str, Any]
) -> None:
    upstream.answers(200, {"id": "j1", "status": "queued"})
    one = provider(
        session,
        upstream,
        SUBMIT
        + """
sizes = { "1536x1024" = "wide", "16:9" = "2K" }
[submit.body]
always = 1
star = "{size_star}"
colon = "{size_colon}"
w = "{width}"
ratio = "{ratio}"
x = "{ratio_x}"
given = "{aspect_ratio}"
word = "{size_word}"
""",
    )
    await one.submit(submission(**given))
    assert upstream.asked[0].body == {"always": 1, **expected}


async def test_texts_are_joined_and_tables_written_as_text(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    upstream.answers(200, {"id": "j1", "status": "queued"})
    one = provider(
        session,
        upstream,
        SUBMIT
        + """
[submit.body]
prompt = { "$join" = ["{prompt}", "--ar {ratio}", "--seed {options.seed}"] }
tags = { "$join" = ["a", "{aspect_ratio}"], "$with" = "," }
json = { "$json" = { return_url = true, prompt = "{prompt}", none = "{options.none}" } }
kind = "{model.kind}"
root = "{model_root}"
""",
    )
    await one.submit(submission(prompt="a fox ü", size="512x512", upstream_model="owner/m/turbo"))
    body = upstream.asked[0].body
    assert body["prompt"] == "a fox ü --ar 1:1"
    assert body["tags"] == "a"
    assert json.loads(body["json"]) == {"return_url": True, "prompt": "a fox ü"}
    assert (body["kind"], body["root"]) == ("txt2img", "owner/m")


VARIANTS = (
    SUBMIT
    + """
body = { prompt = "{prompt}", kind = "plain" }
[[submit.variants]]
operations = ["edit"]
has_mask = true
path = "/v1/inpaint"
body = { mask = "{mask.base64}" }
[[submit.variants]]
operations = ["edit"]
path = "/v1/edit"
encoding = "multipart"
timeout_s = 90
body = { image = "{image.file}" }
[[submit.variants]]
models = ["other"]
query = { model = "{upstream_model}" }
"""
)


@pytest.mark.parametrize(
    ("changes", "path", "words"),
    [
        ({}, "/v1/jobs", b'"kind": "plain"'),
        ({"operation": "edit", "images": [PNG]}, "/v1/edit", b'filename="image.png"'),
        (
            {"operation": "edit", "images": [PNG], "mask": HIDDEN},
            "/v1/inpaint",
            b'{"mask": "d2VicC1ieXRlcw=="}',
        ),
        ({"upstream_model": "other"}, "/v1/jobs", b'"kind": "plain"'),
    ],
)
async def test_the_first_variant_that_fits_replaces_what_it_sets(
    session: aiohttp.ClientSession, upstream: Upstream, changes: dict[str, Any], path: str, words: bytes
) -> None:
    upstream.answers(200, {"id": "j1", "status": "queued"})
    one = provider(session, upstream, VARIANTS)
    await one.submit(submission(**{"upstream_model": "owner/m/turbo", **changes}))
    assert upstream.asked[0].path == path
    assert words in upstream.asked[0].raw
    assert upstream.asked[0].query == ({"model": "other"} if changes.get("upstream_model") else {})
    assert one.capabilities.submit_timeout_s == 90


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


RESULT = """
[result]
path = "/v1/jobs/{provider_ref}/result"
[result.answer]
status_if_absent = "succeeded"
[result.answer.outputs]
items = "pictures"
url = "@"
[errors]
code = "detail[0].type"
[[errors.rules]]
phases = ["result"]
equals = ["content_policy_violation"]
outcome = "content_blocked"
ends_task = true
[[errors.rules]]
equals = ["content_policy_violation"]
outcome = "content_blocked"
"""


async def test_a_second_call_fetches_the_pictures(session: aiohttp.ClientSession, upstream: Upstream) -> None:
    one = provider(session, upstream, RESULT)
    upstream.answers(200, {"id": "j1", "status": "done"})
    upstream.answers(200, {"pictures": ["https://cdn.example/1.png"]})
    update = await one.poll(ATTEMPT)
    assert (update.status, update.upstream_status) == (UpdateStatus.SUCCEEDED, "done")
    assert [output.url for output in update.outputs] == ["https://cdn.example/1.png"]
    assert [asked.path for asked in upstream.asked] == ["/v1/jobs/j1", "/v1/jobs/j1/result"]


async def test_the_second_call_may_say_that_the_task_failed(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    one = provider(session, upstream, RESULT)
    upstream.answers(200, {"id": "j1", "status": "done"})
    upstream.answers(422, {"detail": [{"type": "content_policy_violation"}]})
    update = await one.poll(ATTEMPT)
    assert update.status is UpdateStatus.BLOCKED
    assert update.failure == Failure(FailureClass.CONTENT_BLOCKED, "content_blocked")


async def test_an_error_of_the_second_call_says_nothing_about_the_task(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    one = provider(session, upstream, RESULT)
    upstream.answers(200, {"id": "j1", "status": "done"})
    upstream.answers(503, b"<html>")
    with pytest.raises(ProviderError):
        await one.poll(ATTEMPT)


async def test_an_error_answer_to_a_poll_ends_the_task_only_by_a_rule_that_says_so(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    one = provider(session, upstream, RESULT)
    upstream.answers(422, {"detail": [{"type": "content_policy_violation"}]})
    with pytest.raises(ProviderError):
        await one.poll(ATTEMPT)


BY_HTTP = """
[poll]
path = "/v1/results/{provider_ref}"
accepted = [200, 202]
[poll.answer]
statuses_by_http = [{ status = 202, means = "running" }, { status = 200, means = "succeeded" }]
outputs = { items = "@", base64 = "image" }
"""


@pytest.mark.parametrize(
    ("status", "body", "means", "count"),
    [
        (202, {"id": "j1"}, UpdateStatus.RUNNING, 0),
        (200, {"id": "j1", "image": "cG5n"}, UpdateStatus.SUCCEEDED, 1),
    ],
)
async def test_the_state_may_be_in_the_status_of_the_answer(
    session: aiohttp.ClientSession,
    upstream: Upstream,
    status: int,
    body: dict[str, Any],
    means: UpdateStatus,
    count: int,
) -> None:
    upstream.answers(status, body)
    update = await provider(session, upstream, BY_HTTP).poll(ATTEMPT)
    assert (update.status, len(update.outputs)) == (means, count)


ITEMS = """
[poll]
path = "/p"
[poll.answer]
record = "output"
decode = ["output.resultJson"]
failed_if = "error"
error_code = "error"
cost = "charged"
refunded = "refunded"
[poll.answer.outputs]
items = "resultJson.results"
url = "url"
error_code = "code"
blocked_if = "is_safe == `false`"
[[failures]]
equals = ["DataInspectionFailed"]
class = "content_blocked"
code = "content_blocked"
[[failures]]
equals = ["BadInput"]
class = "invalid_request"
code = "invalid_request"
"""
URL = {"url": "https://cdn.example/1.png"}


@pytest.mark.parametrize(
    ("items", "status", "count", "failure_class"),
    [
        ([URL, URL], UpdateStatus.SUCCEEDED, 2, None),
        ([URL, {"code": "DataInspectionFailed"}, {"code": "Odd"}], UpdateStatus.SUCCEEDED, 1, None),
        (
            [{"code": "Odd"}, {"code": "DataInspectionFailed"}],
            UpdateStatus.BLOCKED,
            0,
            FailureClass.CONTENT_BLOCKED,
        ),
        ([{"code": "BadInput"}, {"code": "Odd"}], UpdateStatus.FAILED, 0, FailureClass.INVALID_REQUEST),
        ([{"code": "Odd"}], UpdateStatus.FAILED, 0, FailureClass.UPSTREAM_FAULT),
        ([{"url": "", "is_safe": False}], UpdateStatus.BLOCKED, 0, FailureClass.CONTENT_BLOCKED),
        ([{"url": "https://cdn.example/x.png", "is_safe": False}, URL], UpdateStatus.SUCCEEDED, 1, None),
        ([], UpdateStatus.SUCCEEDED, 0, None),
    ],
)
async def test_pictures_that_failed_singly_are_told_apart(
    session: aiohttp.ClientSession,
    upstream: Upstream,
    items: list[dict[str, Any]],
    status: UpdateStatus,
    count: int,
    failure_class: FailureClass | None,
) -> None:
    inner = json.dumps({"results": items})
    upstream.answers(
        200, {"output": {"id": "j1", "status": "done", "resultJson": inner, "charged": 5, "refunded": "2"}}
    )
    update = await provider(session, upstream, ITEMS).poll(ATTEMPT)
    assert (update.status, len(update.outputs)) == (status, count)
    assert (update.failure.failure_class if update.failure else None) == failure_class
    assert update.cost == 3


async def test_a_condition_overrules_the_word(session: aiohttp.ClientSession, upstream: Upstream) -> None:
    upstream.answers(
        200, {"output": {"id": "j1", "status": "done", "error": "DataInspectionFailed", "resultJson": None}}
    )
    update = await provider(session, upstream, ITEMS).poll(ATTEMPT)
    assert update.status is UpdateStatus.BLOCKED


@pytest.mark.parametrize("bad", ["not json", '{"a": NaN}', '"text"', "[" * 100_000, "\ud800"])
async def test_json_in_json_that_is_none_says_nothing(
    session: aiohttp.ClientSession, upstream: Upstream, bad: str
) -> None:
    upstream.answers(200, {"output": {"id": "j1", "status": "done", "resultJson": bad}})
    with pytest.raises(ProviderError, match="unreadably"):
        await provider(session, upstream, ITEMS).poll(ATTEMPT)


WAITS = """
[errors]
code = "error.code"
takes_text = true
retry_after_ms_header = "retry-after-ms"
retry_after = "error.details[?retryDelay].retryDelay | [0]"
[[errors.rules]]
path = "text"
regex = "unauthorized"
outcome = "credentials"
[[errors.rules]]
equals = ["JobNumExceed"]
status = [200, 429]
outcome = "concurrency_limited"
"""


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        ({"Retry-After": "7"}, {"error": {"code": "x"}}, 7.0),
        ({"retry-after-ms": "1500", "Retry-After": "9"}, {"error": {"code": "x"}}, 1.5),
        ({"retry-after-ms": "soon", "Retry-After": "9"}, {"error": {"code": "x"}}, 9.0),
        ({}, {"error": {"code": "x", "details": [{"a": 1}, {"retryDelay": "55s"}]}}, 55.0),
        ({}, {"error": {"code": "x", "details": [{"retryDelay": 3}]}}, 3.0),
        ({}, {"error": {"code": "x", "details": [{"retryDelay": "1h"}]}}, None),
        ({}, {"error": {"code": "x"}}, None),
    ],
)
async def test_every_way_to_say_how_long_to_wait_is_read(
    session: aiohttp.ClientSession,
    upstream: Upstream,
    headers: dict[str, str],
    body: dict[str, Any],
    seconds: float | None,
) -> None:
    upstream.answers(429, body, headers)
    with pytest.raises(ProviderUnavailable) as raised:
        await provider(session, upstream, WAITS).submit(submission())
    assert (raised.value.reason, raised.value.retry_after_s) == ("rate_limited", seconds)


async def test_too_many_at_once_closes_the_gate_like_a_rate(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    upstream.answers(200, {"error": {"code": "JobNumExceed"}})
    with pytest.raises(ProviderUnavailable) as raised:
        await provider(session, upstream, WAITS).submit(submission())
    assert raised.value.reason == "rate_limited"


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (401, b"request unauthorized", ProviderUnavailable),
        (404, b"no such style", ProviderRefused),
        (404, b"<html>not found</html>", SubmissionUncertain),
        (502, b"bad gateway", SubmissionUncertain),
        (404, b"", SubmissionUncertain),
        (404, b"\xff\xfe", SubmissionUncertain),
    ],
)
async def test_an_upstream_that_speaks_plain_text_is_understood_and_a_gateway_is_not(
    session: aiohttp.ClientSession, upstream: Upstream, status: int, body: bytes, error: type[ProviderError]
) -> None:
    upstream.answers(status, body)
    with pytest.raises(error):
        await provider(session, upstream, WAITS).submit(submission())


def listing(words: str) -> str:
    return (
        f'[list]\npath = "/v1/jobs"\nrecords = "items"\nlimit = 2\n{words}\n'
        '[list.answer]\ncreated_at = "at"\n[list.query]\npage = "{page}"\noffset = "{offset}"\nsize = "{limit}"\n'
    )


SINCE = datetime(2026, 11, 1, tzinfo=UTC)


def line(number: int, *, hours: float) -> dict[str, Any]:
    moment = SINCE + timedelta(hours=hours)
    return {"id": f"j{number}", "status": "done", "at": moment.timestamp()}


@pytest.mark.parametrize(
    ("words", "queries"),
    [
        ('paging = "page"', [{"page": "1", "size": "2"}, {"page": "2", "size": "2"}]),
        ('paging = "page"\nfirst_page = 0', [{"page": "0", "size": "2"}, {"page": "1", "size": "2"}]),
        ('paging = "offset"', [{"offset": "0", "size": "2"}, {"offset": "2", "size": "2"}]),
    ],
)
async def test_a_list_is_read_by_page_or_offset_until_a_page_is_not_full(
    session: aiohttp.ClientSession, upstream: Upstream, words: str, queries: list[dict[str, str]]
) -> None:
    one = provider(session, upstream, listing(words))
    upstream.answers(200, json.dumps([line(1, hours=1), line(2, hours=2)]).encode())
    upstream.answers(200, json.dumps([line(3, hours=3)]).encode())
    first = await one.list_records(SINCE, SINCE + timedelta(days=1), None)
    second = await one.list_records(SINCE, SINCE + timedelta(days=1), first.next_cursor)
    assert [record.provider_ref for page in (first, second) for record in page.records] == ["j1", "j2", "j3"]
    assert second.next_cursor is None
    assert [asked.query for asked in upstream.asked] == queries


async def test_a_list_that_begins_with_the_newest_ends_before_the_window(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    one = provider(session, upstream, listing('paging = "page"\nnewest_first = true'))
    upstream.answers(200, json.dumps([line(1, hours=1), line(2, hours=-1)]).encode())
    page = await one.list_records(SINCE, SINCE + timedelta(days=1), None)
    assert ([record.provider_ref for record in page.records], page.next_cursor) == (["j1"], None)


async def test_a_list_may_say_whether_there_is_more(
    session: aiohttp.ClientSession, upstream: Upstream
) -> None:
    one = provider(session, upstream, listing('paging = "offset"\nhas_more = "more"'))
    upstream.answers(200, {"items": [line(1, hours=1)], "more": True})
    assert (await one.list_records(SINCE, SINCE + timedelta(days=1), None)).next_cursor == "1"
    upstream.answers(200, {"items": [line(1, hours=1), line(2, hours=2)], "more": False})
    await one.list_records(SINCE, SINCE + timedelta(days=1), "0")
    assert (await one.list_records(SINCE, SINCE + timedelta(days=1), "0")).next_cursor is None


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
