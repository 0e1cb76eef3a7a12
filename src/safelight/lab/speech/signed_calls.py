"""Calls that are signed as a whole, in the way that Tencent Cloud and Volcengine share but for a few words."""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass
from urllib.parse import quote

from safelight.lab.speech.call import Call

_CREDENTIAL = re.compile(r"Credential=([^/,\s]+)/([^,\s]+)")
_HEADERS = re.compile(r"SignedHeaders=([^,\s]+)")
_SIGNATURE = re.compile(r"Signature=([0-9a-f]{64})(?:$|[,\s])")


@dataclass(frozen=True, slots=True)
class Proof:
    """What the header Authorization says; the scope begins with the day."""

    access_key: str
    scope: str
    headers: tuple[str, ...]
    signature: str


def read_proof(call: Call, algorithm: str) -> Proof | None:
    """The proof of a call, or None if it is not one of this algorithm."""
    given = call.headers.get("Authorization", "")
    found = [pattern.search(given) for pattern in (_CREDENTIAL, _HEADERS, _SIGNATURE)]
    credential, headers, signature = found
    if not given.startswith(f"{algorithm} ") or credential is None or headers is None or signature is None:
        return None
    return Proof(credential[1], credential[2], tuple(headers[1].split(";")), signature[1])


def is_signed(call: Call, proof: Proof, *, algorithm: str, secret: str, moment: str) -> bool:
    """Whether the secret has signed this very call; `moment` is the time as the scheme writes it."""
    key = secret.encode()
    for step in proof.scope.split("/"):
        key = hmac.digest(key, step.encode("utf-8", "replace"), "sha256")
    # The upstream itself has no prefix: who comes through a proxy has signed the path without it.
    for path in (call.path, call.request.rel_url.raw_path):
        request = hashlib.sha256(_canonical(call, proof.headers, path)).hexdigest()
        message = f"{algorithm}\n{moment}\n{proof.scope}\n{request}".encode("utf-8", "replace")
        if hmac.compare_digest(hmac.digest(key, message, "sha256").hex(), proof.signature):
            return True
    return False


def _canonical(call: Call, names: tuple[str, ...], path: str) -> bytes:
    query = "&".join(f"{_quoted(name)}={_quoted(call.query[name])}" for name in sorted(call.query))
    headers = "".join(f"{name}:{call.headers.get(name, '').strip()}\n" for name in names)
    body = hashlib.sha256(call.body).hexdigest()
    return "\n".join((call.method, path, query, headers, ";".join(names), body)).encode("utf-8", "replace")


def _quoted(text: str) -> str:
    return quote(text, safe="-_.~")
