"""The words of Tencent Hunyuan: sizes, states, and every no, all of which come with status 200."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Reply, Way

RESOLUTIONS = {
    "768:768": (768, 768),
    "768:1024": (768, 1024),
    "1024:768": (1024, 768),
    "1024:1024": (1024, 1024),
    "720:1280": (720, 1280),
    "1280:720": (1280, 720),
    "768:1280": (768, 1280),
    "1280:768": (1280, 768),
}
WITH_PICTURE = ("768:768", "768:1024", "1024:768", "1024:1024")
CLARITIES = {"x2": 2, "x4": 4}
# 3 is not documented, so it stands for a word that nobody knows.
CODES = {"queued": "1", "running": "2", "unknown": "3", "failed": "4", "done": "5"}
MESSAGES = {"queued": "排队中", "running": "处理中", "unknown": "", "failed": "处理失败", "done": "处理完成"}
ILLEGAL_PICTURE = "OperationDenied.ImageIllegalDetected"
OPTIONS = {
    "negative_prompt": Option("fog and rain"),
    "style": Option("201"),
    "clarity": Option("x2"),
    "revise": Option(0),
    "seed": Option(20_261_129),
    "logo_add": Option(0),
}
VARIANTS = {
    "one_job": "The account has one job at a time, as every account that has bought no more.",
    "gaps": "A picture that is missing leaves an empty address in its place.",
}


def envelope(**told: Any) -> dict[str, Any]:
    """What every answer is wrapped in."""
    return {"Response": {**told, "RequestId": str(uuid4())}}


def refusal(code: str, message: str) -> Reply:
    """A no; the status says nothing."""
    return Reply(200, envelope(Error={"Code": code, "Message": message}))


def _no(name: str, code: str, message: str) -> Way:
    return Way(name, lambda: refusal(code, message))


def _end(name: str, code: str, message: str) -> Ending:
    return Ending(name, {"code": code, "message": message})


# The codes of the product are those of tencentcloud-sdk-python-hunyuan 3.1.180 (errorcodes.py); AuthFailure and
# the like are common to all Tencent Cloud APIs.
REFUSALS = {
    "invalid_request": (
        _no("value", "InvalidParameterValue.ParameterValueError", "The value of a parameter is wrong."),
        _no("parameter", "InvalidParameter", "A parameter is wrong."),
        _no("missing", "MissingParameter", "A parameter is missing."),
        _no("unknown", "UnknownParameter", "There is no such parameter."),
        _no("body", "InvalidParameter.InvalidParameter", "The body is not JSON."),
        _no("picture", "InvalidParameterValue.ImageRequestError", "The image cannot be requested."),
        _no("processing", "InvalidParameter.ImageProcessingFailureError", "The image cannot be processed."),
        _no("logo", "FailedOperation.ImageDownloadError", "The logo cannot be downloaded."),
        _no("decoding", "FailedOperation.ImageDecodeFailed", "The logo cannot be decoded."),
        _no("download", "FailedOperation.DownloadError", "The logo cannot be downloaded."),
    ),
    "content_blocked": (
        _no("text", "OperationDenied.TextIllegalDetected", "The text is illegal."),
        _no("picture", ILLEGAL_PICTURE, "The image may be sensitive."),
        # Its name says otherwise, but the SDK explains it as a picture with sensitive content.
        _no("generated", "FailedOperation.GenerateImageFailed", "The image holds sensitive content."),
    ),
    "credentials": (
        _no("signature", "AuthFailure.SignatureFailure", "The signature is wrong."),
        _no("expired", "AuthFailure.SignatureExpire", "The signature has expired."),
        _no("key", "AuthFailure.SecretIdNotFound", "There is no such SecretId."),
        _no("permission", "UnauthorizedOperation", "The operation is not authorized."),
        _no("not_activated", "FailedOperation.ServiceNotActivated", "The service is not activated."),
        _no("stopped", "FailedOperation.ServiceStop", "The service has been stopped by its user."),
        _no("unverified", "FailedOperation.UserUnAuthError", "The user is not verified."),
        _no("partner", "FailedOperation.PartnerAccountUnSupport", "Partners cannot activate it."),
        _no("not_exist", "ResourceUnavailable.NotExist", "The state of billing is not known."),
        _no("account_stopped", "ResourceUnavailable.StopUsing", "The account has been stopped."),
    ),
    "funds": (
        _no("arrears", "ResourceUnavailable.InArrears", "The account is in arrears."),
        _no("balance", "ResourceUnavailable.LowBalance", "The balance is too low."),
        _no("charge", "ResourceInsufficient.ChargeResourceExhaust", "The resource is used up."),
        _no("pack", "FailedOperation.ResourcePackExhausted", "The resource pack is used up."),
        _no("free_pack", "FailedOperation.FreeResourcePackExhausted", "The free pack is used up."),
        _no("stopped", "FailedOperation.ServiceStopArrears", "The service is stopped for arrears."),
        _no("pay_mode", "FailedOperation.SetPayModeExceed", "The pay mode was set too often this month."),
    ),
    "rate_limited": (
        _no("none", "RequestLimitExceeded", "The frequency of requests exceeds the limit."),
        _no("user", "RequestLimitExceeded.UinLimitExceeded", "The account's frequency exceeds the limit."),
        _no("quota", "LimitExceeded", "The quota is exceeded."),
        _no("engine", "FailedOperation.EngineServerLimitExceeded", "The engine has too many requests."),
    ),
    "concurrency_limited": (_no("jobs", "RequestLimitExceeded.JobNumExceed", "Too many jobs at once."),),
    "upstream_fault": (
        _no("internal", "InternalError", "Internal error."),
        _no("engine", "FailedOperation.EngineServerError", "The engine has failed."),
        _no("timeout", "FailedOperation.EngineRequestTimeout", "The engine did not answer in time."),
        _no("console", "FailedOperation.ConsoleServerError", "The console has failed."),
        _no("failed", "FailedOperation", "The operation has failed."),
    ),
    # What an unknown JobId gets is not documented; these two are in the product's list.
    "not_found": (
        _no("resource", "ResourceNotFound", "The resource does not exist."),
        _no("value", "InvalidParameterValue.ParameterValueError", "The JobId is wrong."),
    ),
}
ENDINGS = {
    "failed": (
        _end("engine", "FailedOperation.EngineServerError", "The engine has failed."),
        _end("timeout", "FailedOperation.EngineRequestTimeout", "The engine did not answer in time."),
        _end("internal", "InternalError", "Internal error."),
    ),
    "blocked": (
        _end("text", "OperationDenied.TextIllegalDetected", "The text is illegal."),
        _end("picture", ILLEGAL_PICTURE, "The image may be sensitive."),
        _end("generated", "FailedOperation.GenerateImageFailed", "The image holds sensitive content."),
        # The job is done, and not one of its pictures may be seen.
        Ending("every_picture", {"state": "done"}),
    ),
    "invalid_request": (
        _end("picture", "InvalidParameterValue.ImageRequestError", "The image cannot be requested."),
        _end("logo", "FailedOperation.ImageDownloadError", "The logo cannot be downloaded."),
    ),
}
