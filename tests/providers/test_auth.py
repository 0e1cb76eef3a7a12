"""Who is calling: every way to sign in, against the vendors' own code where it can be had."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import TypeAdapter
from tencentcloud.common.credential import Credential
from tencentcloud.common.sign import Sign
from yarl import URL

from safelight.providers.auth import (
    Auth,
    Tc3Auth,
    Unsigned,
    VolcV4Auth,
    build_authorizer,
    choose,
    sign_tc3,
    sign_volc_v4,
)

AUTH: TypeAdapter[Any] = TypeAdapter(Auth)
KEYS = {"access_key": "AKexample", "secret_key": "c2VjcmV0LWtleQ=="}
MOMENT = datetime(2026, 11, 29, 10, 20, 30, tzinfo=UTC)
BODY = b'{"req_key": "jimeng_t2i_v40", "prompt": "\\u706b"}'


def call(url: str, headers: dict[str, str] | None = None) -> Unsigned:
    return Unsigned("POST", URL(url), headers or {"Content-Type": "application/json"}, BODY)


def way(**values: Any) -> Any:
    return AUTH.validate_python(values)


def test_a_header_is_filled_from_the_credentials() -> None:
    authorize = build_authorizer(way(kind="header", value="Key {credentials.api_key}"), {"api_key": "k1"})
    assert authorize(call("https://a.example/")) == {"Authorization": "Key k1"}


def test_an_optional_header_is_left_out_without_its_secret() -> None:
    optional = way(kind="header", header="mj-api-secret", value="{credentials.api_key}", is_optional=True)
    assert build_authorizer(optional, {})(call("https://a.example/")) == {}
    assert build_authorizer(optional, {"api_key": "s"})(call("https://a.example/")) == {"mj-api-secret": "s"}


def test_basic_carries_user_and_password() -> None:
    authorize = build_authorizer(way(kind="basic"), {"username": "ü", "password": "p:w"})
    value = authorize(call("https://a.example/"))["Authorization"]
    assert base64.b64decode(value.removeprefix("Basic ")).decode() == "ü:p:w"


def test_a_token_is_made_for_every_call() -> None:
    value = build_authorizer(way(kind="jwt_hs256"), KEYS)(call("https://a.example/"))["Authorization"]
    head, claims, signature = value.removeprefix("Bearer ").split(".")
    assert json.loads(unpadded(head)) == {"alg": "HS256", "typ": "JWT"}
    said = json.loads(unpadded(claims))
    assert said["iss"] == KEYS["access_key"]
    assert said["exp"] - said["nbf"] == 1805
    expected = hmac.new(KEYS["secret_key"].encode(), f"{head}.{claims}".encode(), hashlib.sha256).digest()
    assert unpadded(signature) == expected


def unpadded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def test_tencents_own_client_signs_the_same() -> None:
    url = "https://hunyuan.tencentcloudapi.com/"
    ours = sign_tc3(Tc3Auth(kind="tc3", service="hunyuan"), KEYS, call(url), MOMENT)
    theirs = tc3_of_the_sdk("hunyuan.tencentcloudapi.com", "hunyuan")
    assert ours["Authorization"] == theirs
    assert ours["X-TC-Timestamp"] == str(int(MOMENT.timestamp()))


def tc3_of_the_sdk(host: str, service: str) -> str:
    """The header as tencentcloud-sdk-python makes it, out of its own signing functions."""
    credential = Credential(KEYS["access_key"], KEYS["secret_key"])
    day = MOMENT.strftime("%Y-%m-%d")
    canonical = (
        f"POST\n/\n\ncontent-type:application/json\nhost:{host}\n\ncontent-type;host\n"
        f"{hashlib.sha256(BODY).hexdigest()}"
    )
    scope = f"{day}/{service}/tc3_request"
    to_sign = f"TC3-HMAC-SHA256\n{int(MOMENT.timestamp())}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    signature = Sign.sign_tc3(credential.secret_key, day, service, to_sign)
    return (
        f"TC3-HMAC-SHA256 Credential={KEYS['access_key']}/{scope}, "
        f"SignedHeaders=content-type;host, Signature={signature}"
    )


def test_the_volcengine_signature_is_the_one_of_its_own_client() -> None:
    """The expected value was computed once with volcengine 1.0.229 (auth/SignerV4.py) for this very call."""
    url = "https://visual.volcengineapi.com/?Action=CVSync2AsyncSubmitTask&Version=2022-08-31"
    auth = VolcV4Auth(kind="volc_v4", region="cn-north-1", service="cv")
    headers = sign_volc_v4(auth, KEYS, call(url), MOMENT)
    assert headers["X-Date"] == "20261129T102030Z"
    assert headers["X-Content-Sha256"] == hashlib.sha256(BODY).hexdigest()
    scope = "AKexample/20261129/cn-north-1/cv/request"
    assert headers["Authorization"] == (
        f"HMAC-SHA256 Credential={scope}, SignedHeaders=content-type;host;x-content-sha256;x-date, "
        "Signature=bdc11669bfdfb5b86507e6cd99e74c1944521d4fd3d718d92e7fac4b487a2dba"
    )


def test_the_host_is_signed_with_the_port_that_is_sent() -> None:
    auth = VolcV4Auth(kind="volc_v4", region="r", service="s")
    plain = sign_volc_v4(auth, KEYS, call("http://127.0.0.1/"), MOMENT)["Authorization"]
    usual = sign_volc_v4(auth, KEYS, call("http://127.0.0.1:80/"), MOMENT)["Authorization"]
    other = sign_volc_v4(auth, KEYS, call("http://127.0.0.1:81/"), MOMENT)["Authorization"]
    assert plain == usual != other


@pytest.mark.parametrize(
    ("present", "kind"),
    [({"api_key": "k"}, "header"), (KEYS, "jwt_hs256"), ({**KEYS, "api_key": "k"}, "header"), ({}, "header")],
)
def test_the_first_way_whose_credentials_are_set_is_taken(present: dict[str, str], kind: str) -> None:
    ways = (way(kind="header"), way(kind="jwt_hs256"))
    assert choose(ways, present).kind == kind
