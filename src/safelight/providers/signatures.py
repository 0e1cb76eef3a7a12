"""The closed set of ways in which upstreams prove that a callback is theirs."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, Protocol

from pydantic import Field

from safelight.errors import CallbackRejected, ConfigurationError
from safelight.providers.matching import Section

RawHeaders = Sequence[tuple[bytes, bytes]]

_HEX_SHA256 = re.compile(rb"[0-9a-fA-F]{64}")
_HeaderName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]+$")]


class HmacSha256(Section):
    """HMAC-SHA256 over the raw body. `secrets` name credentials: the first must be set, the rest may be."""

    kind: Literal["hmac_sha256"]
    header: _HeaderName
    prefix: str = ""
    encoding: Literal["hex", "base64"] = "hex"
    secrets: tuple[str, ...] = Field(min_length=1)


class StaticToken(Section):
    """The same secret in every callback: it proves the sender, not the body."""

    kind: Literal["static_token"]
    header: _HeaderName
    prefix: str = ""
    secrets: tuple[str, ...] = Field(min_length=1)


class Unsigned(Section):
    """No proof at all: the token in the callback address is the only one."""

    kind: Literal["none"]


Signature = Annotated[HmacSha256 | StaticToken | Unsigned, Field(discriminator="kind")]

BODY_PROVING = ("hmac_sha256",)
"""The families whose proof covers the body."""


class Verifier(Protocol):
    """Accepts a callback silently or raises CallbackRejected."""

    def verify(self, headers: RawHeaders, raw: bytes) -> None: ...


def secret_names(signature: HmacSha256 | StaticToken | Unsigned) -> tuple[str, ...]:
    """The credentials a signature may use, the required one first."""
    return () if isinstance(signature, Unsigned) else signature.secrets


def build_verifier(
    signature: HmacSha256 | StaticToken | Unsigned, credentials: Mapping[str, str], provider: str
) -> Verifier:
    """The verifier for a declared signature; raises ConfigurationError without a usable secret."""
    if isinstance(signature, Unsigned):
        return _AcceptAll()
    secrets = _collect(signature.secrets, credentials, provider)
    header = signature.header.lower().encode("ascii")
    prefix = signature.prefix.encode("utf-8")
    if isinstance(signature, StaticToken):
        return _StaticTokenVerifier(header, prefix, secrets)
    return _HmacVerifier(header, prefix, signature.encoding, secrets)


def _collect(names: tuple[str, ...], credentials: Mapping[str, str], provider: str) -> tuple[bytes, ...]:
    present = [name for name in names if name in credentials]
    if names[0] not in present:
        raise ConfigurationError(f"provider {provider}: set its credential {names[0]!r}; callbacks need it")
    for name in present:
        # HMAC takes an empty key without complaint, and then everybody can sign.
        if not credentials[name].strip():
            raise ConfigurationError(
                f"provider {provider}: its credential {name!r} is empty; set or remove it"
            )
    return tuple(credentials[name].strip().encode("utf-8") for name in present)


@dataclass(frozen=True, slots=True)
class _AcceptAll:
    def verify(self, headers: RawHeaders, raw: bytes) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _StaticTokenVerifier:
    header: bytes
    prefix: bytes
    secrets: tuple[bytes, ...] = field(repr=False)

    def verify(self, headers: RawHeaders, raw: bytes) -> None:
        given = _single_value(headers, self.header, self.prefix)
        if not _is_any(given, self.secrets):
            raise CallbackRejected("signature_wrong")


@dataclass(frozen=True, slots=True)
class _HmacVerifier:
    header: bytes
    prefix: bytes
    encoding: str
    secrets: tuple[bytes, ...] = field(repr=False)

    def verify(self, headers: RawHeaders, raw: bytes) -> None:
        digest = self._decode(_single_value(headers, self.header, self.prefix))
        expected = [hmac.digest(secret, raw, hashlib.sha256) for secret in self.secrets]
        if not _is_any(digest, expected):
            raise CallbackRejected("signature_wrong")

    def _decode(self, given: bytes) -> bytes:
        if self.encoding == "hex":
            # fromhex() skips white space, so the form is checked first. Both cases are the same number.
            if not _HEX_SHA256.fullmatch(given):
                raise CallbackRejected("signature_malformed")
            return bytes.fromhex(given.decode("ascii"))
        try:
            return binascii.a2b_base64(given, strict_mode=True)
        except ValueError:
            raise CallbackRejected("signature_malformed") from None


def _single_value(headers: RawHeaders, name: bytes, prefix: bytes) -> bytes:
    values = [value for key, value in headers if key.lower() == name]
    if not values:
        raise CallbackRejected("signature_missing")
    # Two values: a proxy may have checked the other one.
    if len(values) > 1:
        raise CallbackRejected("signature_duplicated")
    value = values[0].strip(b" \t")
    if not value.isascii() or not value.startswith(prefix) or len(value) == len(prefix):
        raise CallbackRejected("signature_malformed")
    return value[len(prefix) :]


def _is_any(given: bytes, expected: Sequence[bytes]) -> bool:
    # Every secret is tried, so that the time does not tell which one fits.
    return sum(hmac.compare_digest(given, candidate) for candidate in expected) > 0
