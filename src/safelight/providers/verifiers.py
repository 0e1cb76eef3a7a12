"""Checks the proof of a callback over its raw bytes."""

from __future__ import annotations

import binascii
import hashlib
import hmac
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import aiohttp
from prometheus_client import Counter

from safelight.errors import CallbackRejected, ConfigurationError
from safelight.providers.documents import Unreadable, parse_object, pick
from safelight.providers.keysets import KeySet
from safelight.providers.signatures import (
    Ed25519Jwks,
    HmacSha256,
    Signature,
    StandardWebhooks,
    StaticToken,
    Unsigned,
)

RawHeaders = Sequence[tuple[bytes, bytes]]
Clock = Callable[[], float]

CALLBACK_SECRETS = Counter(
    "safelight_callback_secrets_total",
    "Callbacks by the secret that proved them; once no older one does any more, it may be removed.",
    ["provider", "secret"],
)

_HEX = re.compile(rb"[0-9a-fA-F]+")
_MOST_SIGNATURES = 10
"""In one header; a rotation has two."""


class Verifier(Protocol):
    """Accepts a callback silently or raises CallbackRejected."""

    async def verify(self, headers: RawHeaders, raw: bytes) -> None: ...


def build_verifier(
    signature: Signature,
    credentials: Mapping[str, str],
    provider: str,
    *,
    session: aiohttp.ClientSession,
    jwks_url: str | None = None,
    clock: Clock = time.time,
) -> Verifier | None:
    """The verifier for a declared signature; None for one that is optional and has no secret.

    Raises:
        ConfigurationError: no usable secret.
    """
    if isinstance(signature, Unsigned):
        return AcceptAll()
    if isinstance(signature, Ed25519Jwks):
        key_set = KeySet(jwks_url or signature.jwks_url, session, cache_s=signature.cache_s, clock=clock)
        return _Ed25519Verifier(_Envelope(signature, clock), key_set)
    if signature.is_optional and not credentials.get(signature.secrets[0]):
        return None
    secrets = _collect(signature.secrets, credentials, provider)
    if isinstance(signature, StaticToken):
        header, prefix = signature.header.lower().encode("ascii"), signature.prefix.encode("utf-8")
        return _StaticTokenVerifier(provider, header, prefix, secrets)
    if isinstance(signature, StandardWebhooks):
        signature = signature.as_hmac
    keys = secrets if signature.key == "text" else tuple(_whsec_key(secret, provider) for secret in secrets)
    return _HmacVerifier(provider, _Envelope(signature, clock), keys)


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


def _whsec_key(secret: bytes, provider: str) -> bytes:
    """The key in a Standard Webhooks secret: base64 after `whsec_`; without that prefix the bytes as they are."""
    # The beginning of a signature, which some pages show before the secret as well.
    has_other_prefix = secret.startswith(b"v1,")
    if not secret.startswith(b"whsec_") and not has_other_prefix:
        return secret
    try:
        key = binascii.a2b_base64(secret.removeprefix(b"whsec_"), strict_mode=True)
    except ValueError:
        key = b""
    if not key or has_other_prefix:
        raise ConfigurationError(
            f"provider {provider}: the callback secret is not 'whsec_' and base64 after it; copy it again"
        )
    return key


class _Envelope:
    """Takes signature, time and signed bytes out of a callback, and refuses what is not whole."""

    def __init__(self, signature: HmacSha256 | Ed25519Jwks, clock: Clock) -> None:
        self._signature = signature
        self._clock = clock

    def signatures(self, headers: RawHeaders) -> list[bytes]:
        """The given signatures, decoded; raises CallbackRejected where there is none that could be one."""
        value = single_value(headers, self._signature.header)
        separator, prefix = self._signature.separator, self._signature.prefix.encode()
        words = value.split(separator.encode()) if separator else [value]
        found = [
            decoded
            for word in words[:_MOST_SIGNATURES]
            if word.startswith(prefix) and (decoded := self._decode(word.removeprefix(prefix)))
        ]
        if not found:
            raise CallbackRejected("signature_malformed")
        return found

    def signed_bytes(self, headers: RawHeaders, raw: bytes) -> bytes:
        """What the upstream has signed; raises CallbackRejected for a stale callback."""
        return self._signature.joiner.encode().join(
            self._part(part, headers, raw) for part in self._signature.parts
        )

    def _part(self, part: str, headers: RawHeaders, raw: bytes) -> bytes:
        kind, _, name = part.partition(":")
        match kind:
            case "body":
                return raw
            case "body_sha256":
                return hashlib.sha256(raw).hexdigest().encode()
            case "timestamp":
                return self._timestamp(headers)
            case "header":
                return single_value(headers, name)
        return _picked(name, raw)

    def _timestamp(self, headers: RawHeaders) -> bytes:
        value = single_value(headers, str(self._signature.timestamp_header))
        if not value.isdigit() or len(value) > 12:
            raise CallbackRejected("timestamp_malformed")
        if abs(self._clock() - int(value)) > self._signature.tolerance_s:
            raise CallbackRejected("timestamp_stale")
        return value

    def _decode(self, word: bytes) -> bytes | None:
        if self._signature.encoding == "hex":
            # fromhex() skips white space, so the form is checked first. Both cases are the same number.
            is_hex = _HEX.fullmatch(word) is not None and len(word) % 2 == 0
            return bytes.fromhex(word.decode("ascii")) if is_hex else None
        try:
            return binascii.a2b_base64(word, strict_mode=True)
        except ValueError:
            return None


def _picked(expression: str, raw: bytes) -> bytes:
    """A member of the body that is signed in its place; the body is read before it is proved, strictly."""
    try:
        value = pick(expression, parse_object(raw))
    except Unreadable as error:
        raise CallbackRejected(error.reason) from None
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise CallbackRejected("signed_part_missing")
    return str(value).encode()


@dataclass(frozen=True, slots=True)
class AcceptAll:
    """For upstreams that prove nothing: the address with its token is the only proof."""

    async def verify(self, headers: RawHeaders, raw: bytes) -> None:
        return None


@dataclass(frozen=True, slots=True)
class _StaticTokenVerifier:
    provider: str
    header: bytes
    prefix: bytes
    secrets: tuple[bytes, ...] = field(repr=False)

    async def verify(self, headers: RawHeaders, raw: bytes) -> None:
        value = single_value(headers, self.header.decode())
        if not value.startswith(self.prefix) or len(value) == len(self.prefix):
            raise CallbackRejected("signature_malformed")
        _check_any(self.provider, [value.removeprefix(self.prefix)], self.secrets)


@dataclass(frozen=True, slots=True)
class _HmacVerifier:
    provider: str
    envelope: _Envelope
    keys: tuple[bytes, ...] = field(repr=False)

    async def verify(self, headers: RawHeaders, raw: bytes) -> None:
        given = self.envelope.signatures(headers)
        signed = self.envelope.signed_bytes(headers, raw)
        _check_any(self.provider, given, [hmac.digest(key, signed, "sha256") for key in self.keys])


@dataclass(frozen=True, slots=True)
class _Ed25519Verifier:
    envelope: _Envelope
    keys: KeySet

    async def verify(self, headers: RawHeaders, raw: bytes) -> None:
        given = self.envelope.signatures(headers)
        signed = self.envelope.signed_bytes(headers, raw)
        if not await self.keys.is_signed(given, signed):
            raise CallbackRejected("signature_wrong")


def single_value(headers: RawHeaders, name: str) -> bytes:
    """The one value of a header; raises CallbackRejected for none, several or one that is not ASCII."""
    wanted = name.lower().encode("ascii")
    values = [value for key, value in headers if key.lower() == wanted]
    if not values:
        raise CallbackRejected("signature_missing")
    # Two values: a proxy may have checked the other one.
    if len(values) > 1:
        raise CallbackRejected("signature_duplicated")
    value = values[0].strip(b" \t")
    if not value or not value.isascii():
        raise CallbackRejected("signature_malformed")
    return value


def _check_any(provider: str, given: Sequence[bytes], expected: Sequence[bytes]) -> None:
    """Accept what fits one of the secrets, of which the first is the current one; raises CallbackRejected."""
    # Every pair is tried, so that the time does not tell which one fits.
    fits = [sum(hmac.compare_digest(one, candidate) for one in given) > 0 for candidate in expected]
    if not any(fits):
        raise CallbackRejected("signature_wrong")
    CALLBACK_SECRETS.labels(provider, "current" if fits[0] else "older").inc()
