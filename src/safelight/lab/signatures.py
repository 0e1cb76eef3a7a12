"""Signatures of callbacks: the schemes that upstreams use, each with its old, its next and a foreign key."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

FOREIGN = "a key that is nobody's"


@dataclass(frozen=True, slots=True)
class Parcel:
    """What is signed: the raw body, when, under which message id, about which job."""

    id: str
    at: int
    body: bytes
    job_id: str


class Scheme(Protocol):
    """One family of signatures; `signature` names the header that carries it."""

    family: str
    signature: str

    def headers(self, parcel: Parcel, rotated: str | None = None) -> dict[str, str]:
        """The headers of a genuine callback; `rotated` is the knob `secret_rotated`."""
        ...

    def forged(self, parcel: Parcel) -> dict[str, str]:
        """The same headers, signed with a key that is nobody's."""
        ...


class Unsigned:
    """No signature: the receiver has nothing to go by."""

    family = "none"
    signature = ""

    def headers(self, parcel: Parcel, rotated: str | None = None) -> dict[str, str]:
        """None."""
        return {}

    forged = headers


class StaticToken:
    """A shared secret in a header; nothing of the message is covered."""

    family = "static_token"

    def __init__(self, signature: str, *, keys: tuple[str, str], template: str = "{}") -> None:
        self.signature = signature
        self._keys = keys
        self._template = template

    def headers(self, parcel: Parcel, rotated: str | None = None) -> dict[str, str]:
        """The token."""
        return {self.signature: self._template.format(_only(self._keys, rotated))}

    def forged(self, parcel: Parcel) -> dict[str, str]:
        """Another token."""
        return {self.signature: self._template.format("a-token-of-nobody")}


class HmacSigned:
    """HMAC-SHA256 in a header; `message` says what is covered, the raw body unless said otherwise."""

    family = "hmac"

    def __init__(
        self,
        signature: str,
        *,
        keys: tuple[str, str],
        prefix: str = "",
        encoding: str = "hex",
        message: Callable[[Parcel], bytes] = lambda parcel: parcel.body,
        also: Callable[[Parcel], Mapping[str, str]] = lambda parcel: {},
    ) -> None:
        self.signature = signature
        self._keys = keys
        self._prefix = prefix
        self._encoding = encoding
        self._message = message
        self._also = also

    def headers(self, parcel: Parcel, rotated: str | None = None) -> dict[str, str]:
        """The signature, and what else the scheme sends (`also`), such as the time."""
        return self._signed(parcel, _only(self._keys, rotated))

    def forged(self, parcel: Parcel) -> dict[str, str]:
        """The same by a foreign key."""
        return self._signed(parcel, FOREIGN)

    def _signed(self, parcel: Parcel, key: str) -> dict[str, str]:
        digest = hmac.digest(key.encode(), self._message(parcel), hashlib.sha256)
        text = digest.hex() if self._encoding == "hex" else base64.b64encode(digest).decode()
        return {**self._also(parcel), self.signature: self._prefix + text}


class StandardSigned:
    """Standard Webhooks: id, time and body under HMAC-SHA256; the header has room for several signatures."""

    family = "standard_webhooks"

    def __init__(self, *, keys: tuple[str, str], prefix: str = "webhook") -> None:
        self.signature = f"{prefix}-signature"
        self._keys = keys
        self._prefix = prefix

    def headers(self, parcel: Parcel, rotated: str | None = None) -> dict[str, str]:
        """While both keys live there are two signatures in the header."""
        keys = self._keys if rotated == "both" else (_only(self._keys, rotated),)
        return self._signed(parcel, keys)

    def forged(self, parcel: Parcel) -> dict[str, str]:
        """The same by a foreign key."""
        return self._signed(parcel, ("whsec_" + base64.b64encode(FOREIGN.encode()).decode(),))

    def _signed(self, parcel: Parcel, keys: Sequence[str]) -> dict[str, str]:
        message = f"{parcel.id}.{parcel.at}.".encode() + parcel.body
        digests = [
            hmac.digest(base64.b64decode(key.removeprefix("whsec_")), message, "sha256") for key in keys
        ]
        return {
            f"{self._prefix}-id": parcel.id,
            f"{self._prefix}-timestamp": str(parcel.at),
            self.signature: " ".join("v1," + base64.b64encode(digest).decode() for digest in digests),
        }


class Ed25519Signed:
    """Ed25519 over id, user, time and the body's hash, one a line; public keys in a JWKS.

    `names` are the headers: `id`, `user`, `timestamp`, `signature` and, where there is one, `key_id`.
    """

    family = "ed25519_jwks"

    def __init__(self, names: Mapping[str, str], *, seeds: tuple[str, str], user: str) -> None:
        self.signature = names["signature"]
        self._names = names
        self._seeds = seeds
        self._user = user

    def headers(self, parcel: Parcel, rotated: str | None = None) -> dict[str, str]:
        """A rotated upstream signs with its next key at once: receivers must read the JWKS again."""
        return self._signed(parcel, self._seeds[0 if rotated is None else 1])

    def forged(self, parcel: Parcel) -> dict[str, str]:
        """The same by a foreign key."""
        return self._signed(parcel, FOREIGN)

    def jwks(self, rotated: str | None = None) -> dict[str, Any]:
        """The public keys: the old one, both, or only the new one."""
        seeds = {None: self._seeds[:1], "both": self._seeds, "new_only": self._seeds[1:]}[rotated]
        return {"keys": [_public(seed) for seed in seeds]}

    def _signed(self, parcel: Parcel, seed: str) -> dict[str, str]:
        digest = hashlib.sha256(parcel.body).hexdigest()
        message = "\n".join((parcel.job_id, self._user, str(parcel.at), digest))
        values = {
            "id": parcel.job_id,
            "user": self._user,
            "timestamp": str(parcel.at),
            "key_id": key_id(seed),
            "signature": _ed25519(seed).sign(message.encode()).hex(),
        }
        return {header: values[name] for name, header in self._names.items()}


def key_id(seed: str) -> str:
    """The name of an Ed25519 key in its JWKS."""
    return hashlib.sha256(seed.encode()).hexdigest()[:16]


def _only(keys: tuple[str, str], rotated: str | None) -> str:
    # A scheme with room for one signature goes on with the old key until that is gone.
    return keys[1 if rotated == "new_only" else 0]


def _ed25519(seed: str) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(hashlib.sha256(seed.encode()).digest())


def _public(seed: str) -> dict[str, str]:
    raw = _ed25519(seed).public_key().public_bytes_raw()
    x = base64.urlsafe_b64encode(raw).decode().rstrip("=")
    return {"kty": "OKP", "crv": "Ed25519", "use": "sig", "kid": key_id(seed), "x": x}
