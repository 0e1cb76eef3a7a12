"""Test credentials of the dialects: never random, so that a client can be set up against the lab."""

from __future__ import annotations

import base64
import hashlib


def api_key(name: str) -> str:
    """The API key of one upstream."""
    return f"{name}-test-api-key"


def access_key(name: str) -> str:
    """The public half of a key pair."""
    return f"{name}-test-access-key"


def secret_key(name: str) -> str:
    """The secret half of a key pair."""
    return f"{name}-test-secret-key-of-32-characters"


def callback_secrets(name: str) -> tuple[str, str]:
    """The secret that signs callbacks now, and the one that it is rotated to."""
    return f"{name}-test-callback-secret", f"{name}-test-next-callback-secret"


def standard_secrets(name: str) -> tuple[str, str]:
    """The same in the form of Standard Webhooks: `whsec_` and base64."""
    now, then = callback_secrets(name)
    return _whsec(now), _whsec(then)


def _whsec(text: str) -> str:
    return "whsec_" + base64.b64encode(hashlib.sha256(text.encode()).digest()[:24]).decode()
