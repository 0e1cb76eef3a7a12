"""What a declaration can say of what is sent: pictures, encodings, sizes, variants."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from safelight.errors import (
    ProviderRefused,
)
from tests.providers.sketches import HIDDEN, PNG, SUBMIT, provider
from tests.providers.upstream import Upstream, submission


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
