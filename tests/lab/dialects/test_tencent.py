"""Tencent Hunyuan: signatures to the byte, actions, fields, one job at a time, and its own client as a witness."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import web
from tencentcloud.common.credential import Credential
from tencentcloud.common.exception.tencent_cloud_sdk_exception import TencentCloudSDKException
from tencentcloud.common.profile.client_profile import ClientProfile
from tencentcloud.common.profile.http_profile import HttpProfile
from tencentcloud.hunyuan.v20230901.hunyuan_client import HunyuanClient
from tencentcloud.hunyuan.v20230901.models import (
    Image,
    QueryHunyuanImageJobRequest,
    SubmitHunyuanImageJobRequest,
)

from tests.lab.dialects.conftest import Caller
from tests.lab.dialects.speaker import Visitor, data_url, picture
from tests.lab.dialects.speakers.tencent import KEY_PAIR, QUERY, SUBMIT, asked

pytestmark = pytest.mark.parametrize("name", ["tencent"])

Client = Callable[..., HunyuanClient]


async def said(visitor: Visitor, fields: dict[str, Any] | None = None, **other: Any) -> Any:
    """The answer to a submit, out of its envelope; the status of all answers is 200."""
    answered = await visitor.ask(asked(SUBMIT, {"Prompt": "a fox", **(fields or {})}, **other))
    assert answered.status == 200
    assert answered.body["Response"]["RequestId"]
    return answered.body["Response"]


@pytest.fixture
async def client(visitor: Visitor, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Client]:
    """Makes the real client, which knows no path but the root: what it calls is passed on with the prefix."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")

    async def pass_on(request: web.Request) -> web.Response:
        url = f"{visitor.base}/{visitor.name}{request.path_qs}"
        async with visitor.session.post(url, data=await request.read(), headers=request.headers) as answer:
            return web.Response(
                status=answer.status, body=await answer.read(), content_type="application/json"
            )

    app = web.Application(client_max_size=16 << 20)
    app.router.add_post("/", pass_on)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    profile = ClientProfile()
    profile.httpProfile = HttpProfile(protocol="http", endpoint=f"127.0.0.1:{runner.addresses[0][1]}")

    def make(
        key: str = KEY_PAIR[0], secret: str = KEY_PAIR[1], region: str = "ap-guangzhou"
    ) -> HunyuanClient:
        return HunyuanClient(Credential(key, secret), region, profile)

    yield make
    await runner.cleanup()


async def test_its_own_client_makes_pictures(visitor: Visitor, client: Client) -> None:
    request = SubmitHunyuanImageJobRequest()
    request.Prompt, request.Num, request.Resolution, request.Seed = "一只红狐狸", 2, "720:1280", 7
    submitted = await asyncio.to_thread(client().SubmitHunyuanImageJob, request)
    query = QueryHunyuanImageJobRequest()
    query.JobId = submitted.JobId
    await visitor.item()
    job = await asyncio.to_thread(client().QueryHunyuanImageJob, query)
    assert (job.JobStatusMsg, job.JobErrorCode, job.ResultDetails) == ("处理完成", "", ["Success"] * 2)
    assert len(set(job.ResultImage)) == 2
    item = await visitor.item()
    assert (item["prompt"], item["n"], item["size"]) == ("一只红狐狸", 2, "720x1280")
    assert item["details"]["Seed"] == 7


async def test_its_own_client_edits_a_picture(visitor: Visitor, client: Client) -> None:
    request = SubmitHunyuanImageJobRequest()
    request.Prompt, request.ContentImage = "in blue", Image()
    request.ContentImage.ImageBase64 = base64.b64encode(picture()).decode()
    await asyncio.to_thread(client().SubmitHunyuanImageJob, request)
    item = await visitor.item()
    assert (item["operation"], item["inputs"]) == ("edit", [hashlib.sha256(picture()).hexdigest()])


@pytest.mark.parametrize(
    ("pair", "code"),
    [
        ({"secret": "another-secret"}, "AuthFailure.SignatureFailure"),
        ({"key": "another-key"}, "AuthFailure.SecretIdNotFound"),
        ({"region": "ap-tokyo"}, "InvalidParameterValue.ParameterValueError"),
        ({"region": ""}, "MissingParameter"),
    ],
)
async def test_its_own_client_understands_a_no(client: Client, pair: dict[str, str], code: str) -> None:
    request = SubmitHunyuanImageJobRequest()
    request.Prompt = "a fox"
    with pytest.raises(TencentCloudSDKException) as refused:
        await asyncio.to_thread(client(**pair).SubmitHunyuanImageJob, request)
    assert refused.value.get_code() == code
    assert refused.value.get_request_id()


@pytest.mark.parametrize(
    ("other", "code"),
    [
        ({"secret": "another"}, "AuthFailure.SignatureFailure"),
        ({"key": "another"}, "AuthFailure.SecretIdNotFound"),
        ({"late_s": 301}, "AuthFailure.SignatureExpire"),
        ({"late_s": -360}, "AuthFailure.SignatureExpire"),  # some of it passes on the way
        ({"instead": '{"Prompt": "another"}'}, "AuthFailure.SignatureFailure"),
        ({"Host": "another.example"}, "AuthFailure.SignatureFailure"),
        ({"Content_Type": "application/json"}, "AuthFailure.SignatureFailure"),
        ({"stamp_late_s": 9}, "AuthFailure.SignatureFailure"),
        ({"X_TC_Timestamp": ""}, "AuthFailure.SignatureFailure"),
        ({"X_TC_Timestamp": "now"}, "AuthFailure.SignatureFailure"),
        ({"Authorization": ""}, "AuthFailure.SignatureFailure"),
        ({"Authorization": "Bearer key"}, "AuthFailure.SignatureFailure"),
        ({"X_TC_Version": "2022-12-29"}, "InvalidParameterValue.ParameterValueError"),
        ({"X_TC_Version": ""}, "MissingParameter"),
        ({"X_TC_Region": ""}, "MissingParameter"),
        ({"X_TC_Action": "TextToImage"}, "InvalidAction"),
        ({"X_TC_Action": ""}, "MissingParameter"),
    ],
)
async def test_a_call_that_is_not_right_is_refused(
    visitor: Visitor, other: dict[str, Any], code: str
) -> None:
    assert (await said(visitor, **other))["Error"]["Code"] == code
    assert await visitor.accepted() == 0


async def test_clocks_may_differ_by_minutes(visitor: Visitor) -> None:
    for late_s in (-280, 280):
        assert (await said(visitor, late_s=late_s))["JobId"]


async def test_type_and_host_have_to_be_signed(visitor: Visitor) -> None:
    right = asked(SUBMIT, {"Prompt": "a fox"}).headers["Authorization"]
    fewer = right.replace("SignedHeaders=content-type;host", "SignedHeaders=host")
    assert (await said(visitor, Authorization=fewer))["Error"]["Code"] == "AuthFailure.SignatureFailure"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"Prompt": None}, "MissingParameter"),
        ({"Prompt": "x" * 1025}, "InvalidParameterValue.ParameterValueError"),
        ({"Num": 5}, "InvalidParameterValue.ParameterValueError"),
        ({"Num": "1"}, "InvalidParameterValue.ParameterValueError"),
        ({"Resolution": "1024x1024"}, "InvalidParameterValue.ParameterValueError"),
        ({"Clarity": "x3"}, "InvalidParameterValue.ParameterValueError"),
        ({"Revise": 2}, "InvalidParameterValue.ParameterValueError"),
        ({"Revise": True}, "InvalidParameterValue.ParameterValueError"),
        ({"Seed": 0}, "InvalidParameterValue.ParameterValueError"),
        ({"LogoParam": {"LogoRect": {"Z": 1}}}, "UnknownParameter"),
        ({"prompt": "a fox"}, "UnknownParameter"),
        ({"ContentImage": {}}, "MissingParameter"),
        ({"ContentImage": {"ImageUrl": "ftp://host/x.png"}}, "InvalidParameterValue.ImageRequestError"),
        ({"ContentImage": {"ImageBase64": data_url(picture())}}, "InvalidParameterValue.ImageRequestError"),
        (
            {"ContentImage": {"ImageBase64": base64.b64encode(picture("RGB", "WEBP")).decode()}},
            "InvalidParameterValue.ImageRequestError",
        ),
    ],
)
async def test_a_wrong_field_has_its_code(visitor: Visitor, fields: dict[str, Any], code: str) -> None:
    assert (await said(visitor, fields))["Error"]["Code"] == code
    assert await visitor.accepted() == 0


async def test_with_a_picture_there_are_four_resolutions(visitor: Visitor, caller: Caller) -> None:
    image = {"ContentImage": {"ImageUrl": caller.picture_url}}
    assert (await said(visitor, {**image, "Resolution": "768:1024"}))["JobId"]
    refused = await said(visitor, {**image, "Resolution": "1280:720"})
    assert refused["Error"]["Code"] == "InvalidParameterValue.ParameterValueError"


async def test_a_clarity_makes_pictures_larger(visitor: Visitor) -> None:
    await said(visitor, {"Resolution": "768:1024", "Clarity": "x2"})
    assert (await visitor.item())["size"] == "1536x2048"


async def test_an_account_that_has_bought_no_more_has_one_job_at_a_time(visitor: Visitor) -> None:
    await visitor.turn(variant="one_job", latency_s=[0.3, 0.3])
    first = await said(visitor)
    assert (await said(visitor))["Error"]["Code"] == "RequestLimitExceeded.JobNumExceed"
    await visitor.item()
    assert (await said(visitor))["JobId"] != first["JobId"]


@pytest.mark.parametrize(("variant", "gaps"), [(None, 0), ("gaps", 1)])
async def test_every_picture_has_a_word_of_its_own(visitor: Visitor, variant: str | None, gaps: int) -> None:
    await visitor.turn(partial=1, seed=3, variant=variant)
    submitted = await visitor.submit(n=4)
    job = (await visitor.finished(submitted)).body["Response"]
    there = [url for url in job["ResultImage"] if url]
    assert 0 < len(there) < 4
    assert len(job["ResultImage"]) - len(there) == gaps * (4 - len(there))
    assert job["ResultDetails"][len(there) :] == ["OperationDenied.ImageIllegalDetected"] * (4 - len(there))


async def test_states_are_numbers_in_texts(visitor: Visitor) -> None:
    await visitor.turn(latency_s=[0.5, 0.5])
    poll = visitor.speaker.poll((await visitor.submit()).body)
    seen: list[str] = []
    async with asyncio.timeout(60):
        while not seen or seen[-1] != "5":
            seen.append((await visitor.ask(poll)).body["Response"]["JobStatusCode"])
            await asyncio.sleep(0.02)
    assert sorted(set(seen)) == ["1", "2", "5"]


async def test_a_job_that_there_is_not_is_an_error(visitor: Visitor) -> None:
    answered = await visitor.ask(asked(QUERY, {"JobId": "1300000000-1-1"}))
    assert answered.body["Response"]["Error"]["Code"] == "ResourceNotFound"


async def test_a_caller_who_knows_the_lab_may_sign_the_path_with_its_prefix(visitor: Visitor) -> None:
    assert (await said(visitor, path="/tencent/"))["JobId"]
    refused = await said(visitor, path="/another/")
    assert refused["Error"]["Code"] == "AuthFailure.SignatureFailure"
