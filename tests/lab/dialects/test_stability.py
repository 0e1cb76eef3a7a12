"""Stability: forms only, two forms of answers, filtered pictures, and what each endpoint takes."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping

import pytest

from tests.lab.dialects.forms import FORM_TYPE, form
from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Visitor, picture

pytestmark = pytest.mark.parametrize("name", ["stability"])
KEY = {"Authorization": "Bearer stability-test-api-key", **FORM_TYPE}
WORDS = {"prompt": PROMPT}
IMAGE = ("image", picture())


async def sent(
    visitor: Visitor,
    endpoint: str,
    fields: Mapping[str, object],
    files: Iterable[tuple[str, bytes]] = (("none", b""),),
    accept: str = "image/*",
) -> Answered:
    headers = {**KEY, "Accept": accept}
    path = f"/v2beta/stable-image/{endpoint}"
    return await visitor.ask(Asked("POST", path, data=form(fields, files), headers=headers))


async def test_the_header_accept_says_how_the_picture_comes(visitor: Visitor) -> None:
    plain = await sent(visitor, "generate/ultra", {**WORDS, "output_format": "jpeg", "seed": 7})
    assert (plain.headers["Content-Type"], plain.raw[:3]) == ("image/jpeg", b"\xff\xd8\xff")
    assert (plain.headers["finish-reason"], plain.headers["seed"]) == ("SUCCESS", "7")
    told = await sent(visitor, "generate/ultra", {**WORDS, "seed": 7}, accept="application/json")
    assert base64.b64decode(told.body["image"])[:4] == b"\x89PNG"
    assert (told.body["finish_reason"], told.body["seed"]) == ("SUCCESS", 7)
    assert (await sent(visitor, "generate/core", WORDS, accept="*/*")).raw[:4] == b"\x89PNG"
    refused = await sent(visitor, "generate/core", WORDS, accept="text/html")
    assert (refused.status, refused.body["name"]) == (400, "bad_request")


@pytest.mark.parametrize("accept", ["image/*", "application/json"])
async def test_a_filtered_picture_comes_with_the_status_200(visitor: Visitor, accept: str) -> None:
    await visitor.turn(ending="blocked", ending_way="filtered", small_pictures=True)
    shown = await sent(visitor, "generate/core", WORDS, accept=accept)
    await visitor.turn(ending="blocked", ending_way="filtered_empty")
    empty = await sent(visitor, "generate/core", WORDS, accept=accept)
    assert (shown.status, empty.status) == (200, 200)
    if accept == "image/*":
        assert shown.headers["finish-reason"] == empty.headers["finish-reason"] == "CONTENT_FILTERED"
        assert (bool(shown.raw), bool(empty.raw)) == (True, False)
    else:
        assert shown.body["finish_reason"] == empty.body["finish_reason"] == "CONTENT_FILTERED"
        assert (bool(shown.body["image"]), bool(empty.body["image"])) == (True, False)
    assert (await visitor.item())["billed"] == 0


async def test_moderation_is_a_403_with_a_name(visitor: Visitor) -> None:
    await visitor.turn(refuse="content_blocked")
    refused = await sent(visitor, "generate/core", WORDS)
    assert (refused.status, refused.body["name"]) == (403, "content_moderation")
    assert set(refused.body) == {"id", "name", "errors"}


@pytest.mark.parametrize(
    ("endpoint", "fields", "files", "operation", "model"),
    [
        ("generate/core", {**WORDS, "style_preset": "anime"}, [("none", b"")], "generate", "generate/core"),
        ("generate/sd3", {**WORDS, "model": "sd3.5-medium"}, [("none", b"")], "generate", "sd3.5-medium"),
        (
            "generate/sd3",
            {**WORDS, "mode": "image-to-image", "strength": 0.5},
            [IMAGE],
            "edit",
            "sd3.5-large",
        ),
        ("generate/ultra", {**WORDS, "strength": 0.5}, [IMAGE], "edit", "generate/ultra"),
        ("edit/inpaint", WORDS, [IMAGE, ("mask", picture("L"))], "inpaint", "edit/inpaint"),
        ("edit/erase", {}, [IMAGE, ("mask", picture("L"))], "inpaint", "edit/erase"),
        ("edit/outpaint", {"left": 64}, [IMAGE], "edit", "edit/outpaint"),
        (
            "edit/search-and-replace",
            {**WORDS, "search_prompt": "dog"},
            [IMAGE],
            "edit",
            "edit/search-and-replace",
        ),
        ("edit/remove-background", {"output_format": "webp"}, [IMAGE], "edit", "edit/remove-background"),
    ],
)
async def test_each_endpoint_draws(
    visitor: Visitor,
    endpoint: str,
    fields: dict[str, object],
    files: list[tuple[str, bytes]],
    operation: str,
    model: str,
) -> None:
    assert (await sent(visitor, endpoint, fields, files)).status == 200
    item = await visitor.item()
    assert (item["operation"], item["model"]) == (operation, model)
    assert (item["mask"] is not None) == any(name == "mask" for name, _ in files)


@pytest.mark.parametrize(
    ("endpoint", "fields", "files", "told"),
    [
        ("generate/core", {}, [("none", b"")], "prompt"),
        ("generate/core", {**WORDS, "width": 512}, [("none", b"")], "width"),
        ("generate/core", {**WORDS, "aspect_ratio": "4:3"}, [("none", b"")], "aspect_ratio"),
        ("generate/core", {**WORDS, "seed": "x"}, [("none", b"")], "seed"),
        ("generate/core", WORDS, [IMAGE], "image"),
        ("generate/sd3", {**WORDS, "output_format": "webp"}, [("none", b"")], "output_format"),
        ("generate/sd3", {**WORDS, "mode": "image-to-image"}, [("none", b"")], "mode"),
        ("generate/ultra", WORDS, [IMAGE], "strength"),
        ("edit/inpaint", WORDS, [], "image"),
        ("edit/inpaint", WORDS, [("image", b"no picture")], "image"),
        ("edit/outpaint", {}, [IMAGE], "left"),
        ("edit/search-and-replace", WORDS, [IMAGE], "search_prompt"),
    ],
)
async def test_each_mistake_is_named(
    visitor: Visitor, endpoint: str, fields: dict[str, object], files: list[tuple[str, bytes]], told: str
) -> None:
    refused = await sent(visitor, endpoint, fields, files)
    assert refused.status == 400
    assert refused.body["errors"][0].startswith(f"{told}:")
    assert await visitor.accepted() == 0


async def test_a_body_that_is_no_form_is_refused(visitor: Visitor) -> None:
    headers = {"Authorization": KEY["Authorization"]}
    refused = await visitor.ask(Asked("POST", "/v2beta/stable-image/generate/core", WORDS, headers=headers))
    assert refused.body["errors"] == ["content-type: must be multipart/form-data"]
