"""Tencent Hunyuan image: actions in headers, errors with status 200, one job at a time."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import FailureClass
from safelight.domain.provider import UpdateStatus
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import (
    ACCESS_KEY,
    BAD_KEY,
    HTML,
    NO_MONEY,
    PNG,
    PNG_BASE64,
    REFUSED_CONTENT,
    REFUSED_FAULT,
    REFUSED_INPUT,
    SECRET_KEY,
    TOO_FAST,
    Asker,
    urls_of,
)

TAKEN = {"Response": {"JobId": "1400000000-1", "RequestId": "r1"}}


def record(state: str, **more: Any) -> dict[str, Any]:
    return {"Response": {"JobStatusCode": state, "JobStatusMsg": "words", "RequestId": "r1", **more}}


def error(code: str) -> dict[str, Any]:
    return {"Response": {"Error": {"Code": code, "Message": "its words"}, "RequestId": "r1"}}


@pytest.fixture
def tencent(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    pair = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
    return Asker("tencent", session, upstream, credentials=pair)


async def test_a_submit_names_its_action_in_a_header_and_is_signed(tencent: Asker) -> None:
    update = await tencent.submits(200, TAKEN, n=2, size="768x1280", options={"seed": 7, "logo_add": 0})
    asked = tencent.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/")
    named = {name: asked.headers[name] for name in ("x-tc-action", "x-tc-version", "x-tc-region")}
    assert named == {
        "x-tc-action": "SubmitHunyuanImageJob",
        "x-tc-version": "2023-09-01",
        "x-tc-region": "ap-guangzhou",
    }
    assert asked.headers["authorization"].startswith(f"TC3-HMAC-SHA256 Credential={ACCESS_KEY}/")
    assert "/hunyuan/tc3_request, SignedHeaders=content-type;host" in asked.headers["authorization"]
    assert asked.body == {"Prompt": "a fox", "Num": 2, "Resolution": "768:1280", "Seed": 7, "LogoAdd": 0}
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "1400000000-1")


async def test_a_ratio_becomes_a_resolution_that_there_is(tencent: Asker) -> None:
    body = await tencent.sends(200, TAKEN, aspect_ratio="16:9")
    assert body["Resolution"] == "1280:720"


async def test_an_edit_carries_its_picture_as_base64(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    pair = {"access_key": ACCESS_KEY, "secret_key": SECRET_KEY}
    tencent = Asker("tencent", session, upstream, model="hunyuan-image-edit", credentials=pair)
    body = await tencent.sends(200, TAKEN, operation="edit", images=[PNG])
    assert body["ContentImage"] == {"ImageBase64": PNG_BASE64}


@pytest.mark.parametrize(
    ("state", "status"),
    [("1", "queued"), ("2", "running"), ("4", "failed"), ("5", "succeeded"), ("3", "running")],
)
async def test_a_look_reads_the_number_of_the_state(tencent: Asker, state: str, status: str) -> None:
    update = await tencent.polls(200, record(state, ResultImage=["https://t/1"], ResultDetails=["Success"]))
    asked = tencent.upstream.asked[0]
    assert asked.headers["x-tc-action"] == "QueryHunyuanImageJob"
    assert asked.body == {"JobId": "j1"}
    assert update.status == status


@pytest.mark.parametrize("images", [["https://t/1", "", "https://t/3"], ["https://t/1", "https://t/3"]])
async def test_some_of_the_pictures_may_be_missing(tencent: Asker, images: list[str]) -> None:
    details = ["Success", "OperationDenied.ImageIllegalDetected", "Success"]
    update = await tencent.polls(200, record("5", ResultImage=images, ResultDetails=details))
    assert update.status is UpdateStatus.SUCCEEDED
    assert urls_of(update) == ["https://t/1", "https://t/3"]


async def test_a_finished_job_without_any_picture_says_why(tencent: Asker) -> None:
    details = ["OperationDenied.ImageIllegalDetected"] * 2
    update = await tencent.polls(200, record("5", ResultImage=[], ResultDetails=details))
    assert update.status is UpdateStatus.BLOCKED


@pytest.mark.parametrize(
    ("code", "failure_class"),
    [
        ("OperationDenied.TextIllegalDetected", FailureClass.CONTENT_BLOCKED),
        ("OperationDenied.ImageIllegalDetected", FailureClass.CONTENT_BLOCKED),
        ("FailedOperation.GenerateImageFailed", FailureClass.CONTENT_BLOCKED),
        ("InvalidParameterValue.ImageRequestError", FailureClass.INVALID_REQUEST),
        ("FailedOperation.ImageDownloadError", FailureClass.INVALID_REQUEST),
        ("FailedOperation.EngineServerError", FailureClass.UPSTREAM_FAULT),
    ],
)
async def test_a_failed_job_has_a_code(tencent: Asker, code: str, failure_class: FailureClass) -> None:
    update = await tencent.polls(200, record("4", JobErrorCode=code, JobErrorMsg="its words"))
    assert update.failure is not None
    assert update.failure.failure_class is failure_class
    assert update.excerpt == "its words"


@pytest.mark.parametrize(
    ("code", "outcome"),
    [
        ("OperationDenied.TextIllegalDetected", REFUSED_CONTENT),
        ("OperationDenied.ImageIllegalDetected", REFUSED_CONTENT),
        ("ResourceUnavailable.InArrears", NO_MONEY),
        ("ResourceUnavailable.LowBalance", NO_MONEY),
        ("FailedOperation.ResourcePackExhausted", NO_MONEY),
        ("FailedOperation.FreeResourcePackExhausted", NO_MONEY),
        ("FailedOperation.ServiceStopArrears", NO_MONEY),
        ("ResourceInsufficient.ChargeResourceExhaust", NO_MONEY),
        ("RequestLimitExceeded", TOO_FAST),
        ("RequestLimitExceeded.JobNumExceed", TOO_FAST),
        ("LimitExceeded", TOO_FAST),
        ("FailedOperation.EngineServerLimitExceeded", TOO_FAST),
        ("AuthFailure.SignatureFailure", BAD_KEY),
        ("UnauthorizedOperation", BAD_KEY),
        ("FailedOperation.ServiceNotActivated", BAD_KEY),
        ("InvalidParameter", REFUSED_INPUT),
        ("InvalidParameterValue.ParameterValueError", REFUSED_INPUT),
        ("MissingParameter", REFUSED_INPUT),
        ("FailedOperation.ImageDecodeFailed", REFUSED_INPUT),
        ("InternalError", REFUSED_FAULT),
        ("FailedOperation.EngineRequestTimeout", REFUSED_FAULT),
        ("Something.New", REFUSED_FAULT),
    ],
)
async def test_what_a_refusal_with_status_200_means(tencent: Asker, code: str, outcome: str) -> None:
    assert await tencent.refuses(200, error(code)) == outcome


@pytest.mark.parametrize(("status", "body"), [(502, HTML), (500, b""), (200, HTML), (200, {"Response": {}})])
async def test_what_is_not_its_own_word_leaves_a_submit_open(tencent: Asker, status: int, body: Any) -> None:
    assert await tencent.refuses(status, body) == "uncertain"


async def test_an_error_never_ends_a_task(tencent: Asker) -> None:
    assert await tencent.poll_fails(200, error("InternalError")) == "nothing"


def test_one_job_at_a_time(tencent: Asker) -> None:
    capabilities = tencent.provider.capabilities
    assert (capabilities.max_active_tasks, capabilities.result_lifetime_s) == (1, 3600)
