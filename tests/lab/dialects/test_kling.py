"""Kling: its two kinds of keys, the caller's references, callbacks at every change."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from standardwebhooks import Webhook

from safelight.lab.signatures import Parcel, StandardSigned
from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Asked, Visitor, data_url, picture
from tests.lab.dialects.speakers.kling import KEY, PATH, SECRET

pytestmark = pytest.mark.parametrize("name", ["kling"])

KEY_PAIR = ("kling-test-access-key", "kling-test-secret-key-of-32-characters")


def token(*, secret: str = KEY_PAIR[1], from_s: float = -5, **claims: Any) -> str:
    """A JWT made by hand, which holds from so many seconds after now."""
    now = int(time.time())
    body = {"iss": KEY_PAIR[0], "exp": now + 1800, "nbf": now + from_s, **claims}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=")
        for part in ({"alg": "HS256", "typ": "JWT"}, body)
    ]
    signature = hmac.new(secret.encode(), b".".join(parts), hashlib.sha256).digest()
    return b".".join((*parts, base64.urlsafe_b64encode(signature).rstrip(b"="))).decode()


async def submit(visitor: Visitor, headers: dict[str, str] = KEY, **fields: Any) -> Any:
    """A submit with these fields; the whole answer."""
    return await visitor.ask(Asked("POST", PATH, {"prompt": "a fox", **fields}, headers=headers))


async def test_a_token_of_the_key_pair_is_let_in(visitor: Visitor) -> None:
    accepted = await submit(visitor, {"Authorization": f"Bearer {token()}"})
    assert (accepted.status, accepted.body["code"]) == (200, 0)
    assert accepted.body["data"]["task_status"] == "submitted"


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ("", 1001),
        ("kling-test-api-key", 1002),
        ("Bearer no.to.ken", 1000),
        ("Bearer nothing", 1002),
        ({"secret": "another"}, 1000),
        ({"iss": "another"}, 1000),
        ({"exp": 1}, 1004),
        ({"from_s": 900}, 1003),
    ],
)
async def test_any_other_token_is_refused_with_its_code(
    visitor: Visitor, given: str | dict[str, Any], code: int
) -> None:
    header = given if isinstance(given, str) else f"Bearer {token(**given)}"
    refused = await submit(visitor, {"Authorization": header})
    assert (refused.status, refused.body["code"]) == (401, code)
    assert await visitor.accepted() == 0


@pytest.mark.parametrize(
    "fields",
    [
        {"prompt": "x" * 2501},
        {"n": 10},
        {"n": "1"},
        {"aspect_ratio": "5:4"},
        {"resolution": "4k"},
        {"size": "1024x1024"},
        {"callback_url": "ftp://host"},
        {"image_reference": "face"},
        {"watermark_info": {"on": True}},
        {"image": data_url(picture())},
        {"image": base64.b64encode(b"no picture at all").decode()},
        {"image": base64.b64encode(picture()).decode(), "negative_prompt": "blur"},
    ],
)
async def test_a_wrong_field_is_refused(visitor: Visitor, fields: dict[str, Any]) -> None:
    refused = await submit(visitor, **fields)
    assert (refused.status, refused.body["code"]) == (400, 1201)
    assert await visitor.accepted() == 0


async def test_an_unknown_model_is_a_missing_resource(visitor: Visitor) -> None:
    refused = await submit(visitor, model_name="kling-v9")
    assert (refused.status, refused.body["code"]) == (404, 1203)


async def test_a_task_is_found_by_the_callers_reference_which_is_unique(visitor: Visitor) -> None:
    first = await submit(visitor, external_task_id="ours-1")
    found = await visitor.ask(Asked("GET", f"{PATH}/ours-1", headers=KEY))
    assert found.body["data"]["task_id"] == first.body["data"]["task_id"]
    assert found.body["data"]["task_info"] == {"external_task_id": "ours-1"}
    second = await submit(visitor, external_task_id="ours-1")
    assert (second.status, second.body["code"]) == (400, 1201)
    item = await visitor.item()
    assert (item["reference"], item["times_accepted"]) == ("ours-1", 1)


async def test_a_good_end_may_have_the_newer_word(visitor: Visitor) -> None:
    await visitor.turn(variant="newer_word")
    accepted = await visitor.submit()
    assert (await visitor.item())["outcome"] == "done"
    last = await visitor.ask(visitor.speaker.poll(accepted.body))
    assert last.body["data"]["task_status"] == "succeeded"
    assert last.body["data"]["task_result"]["images"]


async def test_pictures_come_bare_and_by_address(visitor: Visitor, caller: Caller) -> None:
    for source in (caller.picture_url, base64.b64encode(picture()).decode()):
        await submit(visitor, image=source, image_reference="subject", image_fidelity=0.7)
        item = await visitor.item()
        assert (item["operation"], item["inputs"]) == ("edit", [hashlib.sha256(picture()).hexdigest()])


async def test_the_list_is_paged_with_the_latest_first(visitor: Visitor) -> None:
    ids = [(await submit(visitor)).body["data"]["task_id"] for _ in range(5)]
    pages = []
    for number in range(1, 5):
        listed = await visitor.ask(Asked("GET", f"{PATH}?pageNum={number}&pageSize=2", headers=KEY))
        pages.append([task["task_id"] for task in listed.body["data"]])
    assert pages == [ids[:2:-1], ids[2:0:-1], ids[:1], []]
    assert (await visitor.ask(Asked("GET", f"{PATH}?pageSize=501", headers=KEY))).body["code"] == 1201


async def test_callbacks_are_bare_task_objects_at_every_change(visitor: Visitor, caller: Caller) -> None:
    await submit(visitor, callback_url=caller.callback_url, external_task_id="ours-1", n=2)
    await caller.until(lambda: len(caller.taken) == 2)
    bodies = [json.loads(raw) for _, raw in caller.taken]
    assert [body["task_status"] for body in bodies] == ["processing", "succeed"]
    assert [body["task_info"]["external_task_id"] for body in bodies] == ["ours-1"] * 2
    assert [image["index"] for image in bodies[-1]["task_result"]["images"]] == [0, 1]
    assert bodies[-1]["final_unit_deduction"] == "2"


async def test_a_stale_callback_is_signed_rightly_with_an_old_time(visitor: Visitor, caller: Caller) -> None:
    await visitor.turn(callback_stale_s=900, callback_loss=0)
    await submit(visitor, callback_url=caller.callback_url)
    await caller.until(lambda: len(caller.taken) == 2)
    headers, raw = caller.taken[-1]
    assert int(headers["webhook-timestamp"]) <= time.time() - 899
    assert not visitor.speaker.is_genuine(headers, raw)
    message = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + raw
    digest = hmac.new(base64.b64decode(SECRET.removeprefix("whsec_")), message, hashlib.sha256).digest()
    assert headers["webhook-signature"] == "v1," + base64.b64encode(digest).decode()


async def test_while_a_secret_is_rotated_there_are_two_signatures(visitor: Visitor, caller: Caller) -> None:
    secrets = (await visitor.read("/lab/dialects/kling"))["credentials"]
    await visitor.turn(secret_rotated="both")
    await submit(visitor, callback_url=caller.callback_url)
    await caller.until(lambda: len(caller.taken) == 2)
    headers, raw = caller.taken[-1]
    assert len(headers["webhook-signature"].split()) == 2
    for name in ("callback_secret", "next_callback_secret"):
        Webhook(secrets[name]).verify(raw, headers)


async def test_two_codes_of_429_mean_money_and_have_no_time(visitor: Visitor) -> None:
    for way, code in (("arrears", 1101), ("pack_used_up", 1102)):
        await visitor.turn(refuse="funds", refuse_way=way)
        refused = await submit(visitor)
        assert (refused.status, refused.body["code"]) == (429, code)
        assert "Retry-After" not in refused.headers


def test_the_published_example_of_a_signature_comes_out(name: str) -> None:
    secret = "whsec_dGVzdHNlY3JldHRlc3RzZWNyZXR0ZXN0c2VjcmV0MTI="
    body = (
        b'{"id":"1234567890","status":"succeeded","message":"",'
        b'"create_time":1781080778802,"update_time":1781080794151}'
    )
    headers = StandardSigned(keys=(secret, secret)).headers(Parcel("9876543210", 1781080794, body, ""))
    assert headers["webhook-signature"] == "v1,UsKlJP00XoQyOn410NM9xv34sP+Gl0jnOO9Lcpr7NJ4="
