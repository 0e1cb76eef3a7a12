"""The closed set of ways in which upstreams prove that a callback is theirs."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from safelight.providers.documents import check_expression
from safelight.providers.matching import Section

_PART = re.compile(r"body|body_sha256|timestamp|header:[A-Za-z0-9_-]+|path:.+")


def _check_part(part: str) -> str:
    if not _PART.fullmatch(part):
        raise ValueError(
            "is not a part; write 'body', 'body_sha256', 'timestamp', 'header:Name' or 'path:expression'"
        )
    if part.startswith("path:"):
        check_expression(part.removeprefix("path:"))
    return part


HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]
Part = Annotated[str, AfterValidator(_check_part)]


class _Signed(Section):
    """What all signatures over parts of a callback share.

    Signed are the `parts`, joined with `joiner`. With `timestamp_header` a callback older or newer than
    `tolerance_s` is refused.
    """

    header: HeaderName = Field(description="The header with the signature.")
    prefix: str = Field("", description="What stands before the signature in it.")
    encoding: Literal["hex", "base64"] = Field("hex", description="How the signature is written.")
    separator: str | None = Field(
        None, min_length=1, description="What stands between several signatures in one header."
    )
    parts: tuple[Part, ...] = Field(("body",), description="What is signed, in order.")
    joiner: str = Field(".", description="What stands between the parts.")
    timestamp_header: HeaderName | None = Field(None, description="The header with the time, in seconds.")
    tolerance_s: float = Field(300.0, gt=0, description="How old or how early a callback may be.")

    @model_validator(mode="after")
    def _check_timestamp(self) -> Self:
        if ("timestamp" in self.parts) != (self.timestamp_header is not None):
            raise ValueError(
                "signs a 'timestamp' if and only if it has a timestamp_header; add what is missing, "
                "an unsigned time proves nothing"
            )
        return self

    @property
    def proves_body(self) -> bool:
        return "body" in self.parts or "body_sha256" in self.parts


class HmacSha256(_Signed):
    """HMAC-SHA256. `secrets` name credentials: the first must be set, the rest may be (rotation).

    With `is_optional` an installation without the secret takes callbacks as unsigned hints. `key` says how
    the secret is turned into the key: its text, or the base64 after `whsec_`.
    """

    kind: Literal["hmac_sha256"] = Field(description="Chooses this way.")
    key: Literal["text", "whsec"] = Field("text", description="How the secret becomes the key.")
    secrets: tuple[str, ...] = Field(min_length=1, description="Names of credentials.")
    is_optional: bool = Field(False, description="Whether it works, with hints, without the secret.")


class StandardWebhooks(Section):
    """Standard Webhooks 1.0 (https://www.standardwebhooks.com): id, time and body, `v1,` base64, a list."""

    kind: Literal["standard_webhooks"] = Field(description="Chooses this way.")
    secrets: tuple[str, ...] = Field(min_length=1, description="Names of credentials.")
    header_prefix: HeaderName = Field("webhook", description="How the three headers begin.")
    tolerance_s: float = Field(300.0, gt=0, description="How old or how early a callback may be.")
    is_optional: bool = Field(False, description="Whether it works, with hints, without the secret.")

    @property
    def as_hmac(self) -> HmacSha256:
        """The same as a general HMAC signature."""
        name = self.header_prefix
        return HmacSha256(
            kind="hmac_sha256",
            header=f"{name}-signature",
            prefix="v1,",
            encoding="base64",
            separator=" ",
            parts=(f"header:{name}-id", "timestamp", "body"),
            timestamp_header=f"{name}-timestamp",
            tolerance_s=self.tolerance_s,
            key="whsec",
            secrets=self.secrets,
            is_optional=self.is_optional,
        )


class Ed25519Jwks(_Signed):
    """Ed25519 with the upstream's public keys, fetched from `jwks_url` and kept for `cache_s`."""

    kind: Literal["ed25519_jwks"] = Field(description="Chooses this way.")
    jwks_url: Annotated[str, Field(pattern=r"^https?://[^/\s]+/\S*$")] = Field(
        description="Where the keys are."
    )
    cache_s: float = Field(86_400.0, gt=0, le=86_400, description="How long they are kept.")


class StaticToken(Section):
    """The same secret in every callback: it proves the sender, not the body."""

    kind: Literal["static_token"] = Field(description="Chooses this way.")
    header: HeaderName = Field(description="The header with the token.")
    prefix: str = Field("", description="What stands before it.")
    secrets: tuple[str, ...] = Field(min_length=1, description="Names of credentials.")
    is_optional: bool = Field(False, description="Whether it works, with hints, without the secret.")


class Unsigned(Section):
    """No proof at all: the token in the callback address is the only one."""

    kind: Literal["none"] = Field(description="Chooses this way.")


Signature = Annotated[
    HmacSha256 | StandardWebhooks | Ed25519Jwks | StaticToken | Unsigned, Field(discriminator="kind")
]


def proves_body(signature: Signature) -> bool:
    """Whether the proof covers the body, so that what it says may be applied."""
    return isinstance(signature, StandardWebhooks) or (
        isinstance(signature, HmacSha256 | Ed25519Jwks) and signature.proves_body
    )


def secret_names(signature: Signature) -> tuple[str, ...]:
    """The credentials a signature may use, the required one first."""
    return () if isinstance(signature, Unsigned | Ed25519Jwks) else signature.secrets


def needed_secrets(signature: Signature) -> tuple[str, ...]:
    """The credentials that a signature cannot do without."""
    return () if getattr(signature, "is_optional", False) else secret_names(signature)[:1]
