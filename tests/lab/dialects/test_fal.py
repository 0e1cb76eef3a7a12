"""fal: what is its own, and its own client as a witness."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import Any

import fal_client
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.fal import KEY

pytestmark = pytest.mark.parametrize("name", ["fal"])
EDIT = "/fal-ai/nano-banana/edit"


async def submit(visitor: Visitor, path: str = "/fal-ai/flux/dev", **fields: Any) -> Any:
    """A submit with these fields; the whole answer."""
    return await visitor.ask(Asked("POST", path, {"prompt": "a fox", **fields}, headers=KEY))


@pytest.mark.parametrize(
    ("fields", "where", "kind"),
    [
        ({"prompt": None}, ["body", "prompt"], "value_error.missing"),
        ({"prompt": 1}, ["body", "prompt"], "type_error"),
        ({"image_size": "1024x1024"}, ["body", "image_size"], "value_error"),
        ({"image_size": {"width": 512}}, ["body", "image_size", "height"], "value_error.missing"),
        ({"num_images": 9}, ["body", "num_images"], "value_error"),
        ({"aspect_ratio": "1:1"}, ["body", "aspect_ratio"], "value_error.extra"),
    ],
)
async def test_a_wrong_field_is_named_in_a_list_of_details(
    visitor: Visitor, fields: dict[str, Any], where: list[str], kind: str
) -> None:
    refused = await submit(visitor, **fields)
    [detail] = refused.body["detail"]
    assert (refused.status, detail["loc"], detail["type"]) == (422, where, kind)
    assert await visitor.accepted() == 0


async def test_a_key_is_a_key_and_no_bearer(visitor: Visitor) -> None:
    asked = visitor.speaker.submit()
    bearer = {"Authorization": "Bearer fal-test-api-key"}
    refused = await visitor.ask(Asked("POST", asked.path, asked.json, headers=bearer))
    assert (refused.status, await visitor.accepted()) == (401, 0)


async def test_pictures_come_by_address_and_by_data_url(visitor: Visitor, caller: Caller) -> None:
    urls = [caller.picture_url, data_url(picture())]
    accepted = await submit(visitor, EDIT, image_urls=urls)
    last = await visitor.finished(accepted)
    assert set(last.body) == {"images", "description"}
    item = await visitor.item()
    assert item["inputs"] == [hashlib.sha256(picture()).hexdigest()] * 2
    assert (item["operation"], item["model"]) == ("edit", EDIT[1:])


@pytest.mark.parametrize(
    "url",
    [
        "data:image/png;base64,AAAA",
        "data:image/png;base64,???",
        data_url(picture(form="JPEG")),
        base64.b64encode(picture()).decode(),
    ],
)
async def test_what_is_no_picture_is_refused(visitor: Visitor, url: str) -> None:
    refused = await submit(visitor, EDIT, image_urls=[url])
    assert (refused.status, refused.body["detail"][0]["loc"]) == (422, ["body", "image_urls", 0])


async def test_other_pictures_give_another_drawing(visitor: Visitor) -> None:
    drawn = set()
    await visitor.turn(small_pictures=False)
    for mode in ("RGB", "L"):
        accepted = await submit(visitor, EDIT, image_urls=[data_url(picture(mode))])
        [url] = visitor.speaker.pictures(await visitor.finished(accepted))
        drawn.add((await visitor.ask(Asked("GET", str(url)))).raw)
    assert len(drawn) == 2


async def test_addresses_made_by_hand_with_the_subpath_lead_nowhere(visitor: Visitor) -> None:
    accepted = await visitor.submit()
    identity = accepted.body["request_id"]
    for path in (f"/fal-ai/flux/dev/requests/{identity}/status", f"/fal-ai/other/requests/{identity}/status"):
        assert (await visitor.ask(Asked("GET", path, headers=KEY))).status in {404, 405}


async def test_completed_may_be_a_failure(visitor: Visitor) -> None:
    await visitor.turn(ending="blocked", ending_way="policy")
    accepted = await visitor.submit()
    result = await visitor.finished(accepted)
    status = await visitor.ask(visitor.speaker.poll(accepted.body))
    assert (status.status, status.body["status"]) == (200, "COMPLETED")
    assert status.body["error"] == "Invalid status code: 422"
    assert (result.status, result.body["detail"][0]["type"]) == (422, "content_policy_violation")
    assert result.headers["X-Fal-Retryable"] == "false"


async def test_an_open_request_has_a_place_in_the_line_and_no_response(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[30, 30])
    accepted = await visitor.submit()
    for place in range(2):
        accepted = accepted if place == 0 else await visitor.submit()
        status = await visitor.ask(visitor.speaker.poll(accepted.body))
        assert (status.status, status.body["status"], status.body["queue_position"]) == (
            202,
            "IN_QUEUE",
            place,
        )
    assert (await visitor.ask(visitor.speaker.result(accepted.body))).status == 400


async def test_a_canceled_request_is_completed_with_an_error(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[30, 30])
    accepted = await visitor.submit()
    answers = [await visitor.ask(visitor.speaker.cancel(accepted.body)) for _ in range(2)]
    assert [(each.status, each.body["status"]) for each in answers] == [
        (200, "OK"),
        (400, "ALREADY_COMPLETED"),
    ]
    status = await visitor.ask(visitor.speaker.poll(accepted.body))
    assert (status.body["status"], status.body["error_type"]) == ("COMPLETED", "client_cancelled")


async def test_pictures_that_a_check_takes_out_are_black_and_marked(visitor: Visitor, caller: Caller) -> None:
    await visitor.turn(ending="blocked", ending_way="black")
    last = await visitor.finished(await visitor.submit(callback_url=caller.callback_url))
    assert (last.status, last.body["has_nsfw_concepts"]) == (200, [True])
    await caller.until(lambda: bool(caller.taken))
    told = json.loads(caller.taken[0][1])
    assert (told["status"], told["payload"]["has_nsfw_concepts"]) == ("OK", [True])


async def test_a_request_may_be_known_at_the_addresses_of_the_answer_only(visitor: Visitor) -> None:
    await visitor.turn(variant="cluster")
    accepted = await visitor.submit()
    named = accepted.body["status_url"]
    by_hand = named.replace("/cluster/", "/")
    assert (await visitor.ask(Asked("GET", by_hand, headers=KEY))).status == 404
    assert (await visitor.ask(Asked("GET", named, headers=KEY))).status in (200, 202)


async def test_a_callback_may_come_without_its_payload(visitor: Visitor, caller: Caller) -> None:
    await visitor.turn(variant="payload_error")
    await visitor.submit(callback_url=caller.callback_url)
    await caller.until(lambda: len(caller.taken) == 1)
    assert b'"payload":null,"payload_error":' in caller.taken[0][1]


@pytest.mark.parametrize(("rotated", "count"), [(None, 1), ("both", 2), ("new_only", 1)])
async def test_the_published_keys_hold_the_one_that_signs(
    visitor: Visitor, caller: Caller, rotated: str | None, count: int
) -> None:
    await visitor.turn(secret_rotated=rotated)
    await visitor.submit(callback_url=caller.callback_url)
    await caller.until(lambda: len(caller.taken) == 1)
    headers, raw = caller.taken[0]
    names = ("Request-Id", "User-Id", "Timestamp")
    parts = [headers[f"X-Fal-Webhook-{name}"] for name in names]
    message = "\n".join((*parts, hashlib.sha256(raw).hexdigest())).encode()
    keys = (await visitor.ask(Asked("GET", "/.well-known/jwks.json"))).body["keys"]
    assert len(keys) == count
    public = base64.urlsafe_b64decode(keys[-1]["x"] + "=")
    signature = bytes.fromhex(headers["X-Fal-Webhook-Signature"])
    Ed25519PublicKey.from_public_bytes(public).verify(signature, message)


async def test_the_own_client_of_fal_gets_its_picture(
    visitor: Visitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fal_client.client, "QUEUE_URL_FORMAT", f"{visitor.base}/fal/")
    client = fal_client.AsyncClient(key="fal-test-api-key")
    handle = await client.submit("fal-ai/flux/dev", {"prompt": "a fox", "num_images": 2})
    output = await handle.get()
    assert isinstance(await handle.status(), fal_client.Completed)
    assert [image["content_type"] for image in output["images"]] == ["image/jpeg"] * 2
    await visitor.turn(ending="failed", ending_way="internal_server_error")
    handle = await client.submit("fal-ai/flux/dev", {"prompt": "a fox"})
    with pytest.raises(fal_client.FalClientHTTPError):
        await handle.get()
    await visitor.turn(latency_s=[30, 30])
    handle = await client.submit("fal-ai/flux/dev", {"prompt": "a fox"})
    assert isinstance(await handle.status(), fal_client.Queued)
    await handle.cancel()
    status = await handle.status()
    assert isinstance(status, fal_client.Completed)
    assert status.error_type == "client_cancelled"
    await (await client._client).aclose()
