"""The closed set of ways in which upstreams want to be told who is calling."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from urllib.parse import quote

from pydantic import Field
from yarl import URL

from safelight.providers.matching import Section
from safelight.providers.templates import fill, placeholders


class HeaderAuth(Section):
    """A secret in a header. With `is_optional` the header is left out where the secret is not set."""

    kind: Literal["header"] = Field("header", description="Chooses this way.")
    header: str = Field("Authorization", description="The header.")
    value: str = Field(
        "Bearer {credentials.api_key}", description="Its template; it may speak of `{credentials.…}` only."
    )
    is_optional: bool = Field(False, description="Whether it works without the secret.")


class BasicAuth(Section):
    """HTTP Basic with the credentials `username` and `password`; left out with `is_optional` and no user."""

    kind: Literal["basic"] = Field(description="Chooses this way.")
    is_optional: bool = Field(False, description="Whether it works without a user.")


class JwtAuth(Section):
    """A token made for every call: HS256 with `iss` = credential `access_key`, signed with `secret_key`."""

    kind: Literal["jwt_hs256"] = Field(description="Chooses this way.")
    lifetime_s: int = Field(1800, gt=0, description="How long a token is good for.")
    not_before_s: int = Field(5, ge=0, description="How long before now it begins, for clocks that differ.")


class VolcV4Auth(Section):
    """Volcengine's signature, version 4, with the credentials `access_key` and `secret_key`."""

    kind: Literal["volc_v4"] = Field(description="Chooses this way.")
    region: str = Field(description="The region in the scope.")
    service: str = Field(description="The service in the scope.")


class Tc3Auth(Section):
    """Tencent Cloud's TC3-HMAC-SHA256, with the credentials `access_key` (SecretId) and `secret_key`."""

    kind: Literal["tc3"] = Field(description="Chooses this way.")
    service: str = Field(description="The service in the scope.")


class NoAuth(Section):
    """Nobody asks who is calling."""

    kind: Literal["none"] = Field(description="Chooses this way.")


Auth = Annotated[
    HeaderAuth | BasicAuth | JwtAuth | VolcV4Auth | Tc3Auth | NoAuth, Field(discriminator="kind")
]


@dataclass(frozen=True, slots=True)
class Unsigned:
    """What a call consists of before it is signed."""

    method: str
    url: URL
    headers: Mapping[str, str]
    body: bytes


Authorizer = Callable[[Unsigned], Mapping[str, str]]
"""Gives the headers that prove who is calling."""


def needed(auth: Auth) -> tuple[str, ...]:
    """The credentials that this way cannot do without."""
    return () if getattr(auth, "is_optional", False) else named(auth)


def named(auth: Auth) -> tuple[str, ...]:
    """The credentials that this way uses where they are set."""
    match auth:
        case HeaderAuth():
            return tuple(_credentials_in(auth.value))
        case BasicAuth():
            return ("username", "password")
        case JwtAuth() | VolcV4Auth() | Tc3Auth():
            return ("access_key", "secret_key")
        case _:
            return ()


def choose(ways: tuple[Auth, ...], credentials: Mapping[str, str]) -> Auth:
    """The first way whose credentials are all there; the first of all where none is."""
    return next((way for way in ways if all(credentials.get(name) for name in needed(way))), ways[0])


def build_authorizer(auth: Auth, credentials: Mapping[str, str]) -> Authorizer:
    """What signs calls in this way."""
    match auth:
        case HeaderAuth():
            headers = fill({auth.header: auth.value}, {"credentials": credentials})
            return lambda call: headers
        case BasicAuth():
            return lambda call: _basic(credentials)
        case JwtAuth():
            return lambda call: {"Authorization": f"Bearer {_jwt(auth, credentials, time.time())}"}
        case VolcV4Auth():
            return lambda call: sign_volc_v4(auth, credentials, call, datetime.now(UTC))
        case Tc3Auth():
            return lambda call: sign_tc3(auth, credentials, call, datetime.now(UTC))
        case _:
            return lambda call: {}


def _credentials_in(template: str) -> Iterator[str]:
    for _, placeholder in placeholders(template, "auth.value"):
        yield placeholder.name.partition(".")[2]


def _basic(credentials: Mapping[str, str]) -> dict[str, str]:
    if not credentials.get("username"):
        return {}
    pair = f"{credentials['username']}:{credentials.get('password', '')}"
    return {"Authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"}


def _jwt(auth: JwtAuth, credentials: Mapping[str, str], now: float) -> str:
    claims = {
        "iss": credentials["access_key"],
        "exp": int(now) + auth.lifetime_s,
        "nbf": int(now) - auth.not_before_s,
    }
    signed = f"{_segment({'alg': 'HS256', 'typ': 'JWT'})}.{_segment(claims)}"
    digest = hmac.digest(credentials["secret_key"].encode(), signed.encode(), "sha256")
    return f"{signed}.{_base64url(digest)}"


def _segment(value: Mapping[str, Any]) -> str:
    return _base64url(json.dumps(value, separators=(",", ":")).encode())


def _base64url(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")


def sign_volc_v4(
    auth: VolcV4Auth, credentials: Mapping[str, str], call: Unsigned, now: datetime
) -> dict[str, str]:
    """Volcengine's headers for a call. Source: volcengine 1.0.229, auth/SignerV4.py.

    The scope ends in `request` and the chain of keys begins with the bare secret key.
    """
    moment = now.strftime("%Y%m%dT%H%M%SZ")
    body_hash = hashlib.sha256(call.body).hexdigest()
    signed = {
        "content-type": call.headers.get("Content-Type", "application/json"),
        "host": _host(call.url),
        "x-content-sha256": body_hash,
        "x-date": moment,
    }
    canonical = _canonical(call, signed, body_hash)
    scope = f"{moment[:8]}/{auth.region}/{auth.service}/request"
    to_sign = f"HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = credentials["secret_key"].encode()
    for step in scope.split("/"):
        key = hmac.digest(key, step.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    return {
        "X-Date": moment,
        "X-Content-Sha256": body_hash,
        "Authorization": f"HMAC-SHA256 Credential={credentials['access_key']}/{scope}, "
        f"SignedHeaders={';'.join(signed)}, Signature={signature}",
    }


def sign_tc3(auth: Tc3Auth, credentials: Mapping[str, str], call: Unsigned, now: datetime) -> dict[str, str]:
    """Tencent Cloud's headers for a call. Source: tencentcloud-sdk-python 3.1, common/sign.py."""
    moment = int(now.timestamp())
    signed = {
        "content-type": call.headers.get("Content-Type", "application/json"),
        "host": _host(call.url),
    }
    canonical = _canonical(call, signed, hashlib.sha256(call.body).hexdigest())
    day = now.astimezone(UTC).strftime("%Y-%m-%d")
    scope = f"{day}/{auth.service}/tc3_request"
    to_sign = f"TC3-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = ("TC3" + credentials["secret_key"]).encode()
    for step in scope.split("/"):
        key = hmac.digest(key, step.encode(), "sha256")
    signature = hmac.digest(key, to_sign.encode(), "sha256").hex()
    return {
        "X-TC-Timestamp": str(moment),
        "Authorization": f"TC3-HMAC-SHA256 Credential={credentials['access_key']}/{scope}, "
        f"SignedHeaders={';'.join(signed)}, Signature={signature}",
    }


def _canonical(call: Unsigned, signed: Mapping[str, str], body_hash: str) -> str:
    query = "&".join(
        f"{quote(key, safe='-_.~')}={quote(value, safe='-_.~')}"
        for key, value in sorted(call.url.query.items())
    )
    headers = "".join(f"{name}:{value}\n" for name, value in signed.items())
    return "\n".join((call.method, call.url.raw_path or "/", query, headers, ";".join(signed), body_hash))


def _host(url: URL) -> str:
    default = {"http": 80, "https": 443}.get(url.scheme)
    return f"{url.host}" if url.port in (None, default) else f"{url.host}:{url.port}"
