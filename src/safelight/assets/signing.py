"""Download links that expire: signed, bound to one asset, one account and one variant."""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, cast
from urllib.parse import urlencode
from uuid import UUID

from safelight.errors import AssetError, ConfigurationError

Variant = Literal["original", "thumbnail"]

DEFAULT_LIFE_S: Final = 900
MAX_LIFE_S: Final = 86_400

_SKEW_S = 60
_VARIANTS = ("original", "thumbnail")
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_TIME = re.compile(r"[1-9][0-9]{0,11}")
_SIGNATURE = re.compile(r"[0-9a-f]{64}")
_KEY_ID = re.compile(r"[A-Za-z0-9_-]{1,32}")


@dataclass(frozen=True, slots=True)
class SignedLink:
    """What a genuine, live link allows; `expires_at` is in unix seconds."""

    asset_id: UUID
    account_id: UUID
    variant: Variant
    expires_at: int


class UrlSigner:
    """Signs with one key; `previous` keys still verify while they are rotated out.

    signer = UrlSigner(secret, key_id="2", previous={"1": old_secret})
    query = signer.sign(asset_id, account_id=account_id, variant="original", expires_at=now + 900)
    """

    def __init__(self, secret: bytes, *, key_id: str, previous: Mapping[str, bytes] | None = None) -> None:
        self._key_id = key_id
        self._secrets = {**(previous or {}), key_id: secret}
        for name, value in self._secrets.items():
            if not _KEY_ID.fullmatch(name) or len(value) < 32:
                raise ConfigurationError("a URL signing key needs a plain id and at least 32 bytes")

    def sign(self, asset_id: UUID, *, account_id: UUID, variant: Variant, expires_at: int) -> str:
        """The query string (without `?`) that opens this asset until `expires_at` (unix seconds)."""
        link = SignedLink(asset_id, account_id, variant, expires_at)
        return urlencode(
            {
                "account": str(account_id),
                "variant": variant,
                "expires": str(expires_at),
                "key": self._key_id,
                "signature": self._signature(link, self._key_id),
            }
        )

    def verify(self, query: Mapping[str, str], *, asset_id: UUID, now: float) -> SignedLink:
        """The link's meaning, or AssetError: `link_wrong`, or `link_expired` if it once was genuine."""
        link = _read(query, asset_id)
        key_id, signature = query.get("key", ""), query.get("signature", "")
        if link is None or key_id not in self._secrets or not _SIGNATURE.fullmatch(signature):
            raise _wrong()
        expected = self._signature(link, key_id)
        if not hmac.compare_digest(expected.encode("ascii"), signature.encode("ascii")):
            raise _wrong()
        if now >= link.expires_at:
            raise AssetError("link_expired", "the link has expired", is_retryable=False)
        if link.expires_at > now + MAX_LIFE_S + _SKEW_S:
            raise _wrong()
        return link

    def _signature(self, link: SignedLink, key_id: str) -> str:
        """HMAC over length-prefixed fields; no method, because GET and HEAD share a link."""
        fields = (
            "safelight-asset-v1",
            key_id,
            str(link.asset_id),
            str(link.account_id),
            link.variant,
            str(link.expires_at),
        )
        text = "".join(f"{len(field)}:{field}," for field in fields)
        return hmac.digest(self._secrets[key_id], text.encode("ascii"), "sha256").hex()


def _read(query: Mapping[str, str], asset_id: UUID) -> SignedLink | None:
    """Only the one canonical spelling of every field is read."""
    account, variant, expires = (query.get(name, "") for name in ("account", "variant", "expires"))
    if not _UUID.fullmatch(account) or not _TIME.fullmatch(expires) or variant not in _VARIANTS:
        return None
    return SignedLink(asset_id, UUID(account), cast("Variant", variant), int(expires))


def _wrong() -> AssetError:
    return AssetError("link_wrong", "the link is not genuine", is_retryable=False)
