"""Makes a short piece of an upstream's text fit to be kept: no controls, secrets, tokens or picture bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

EXCERPT_CHARS = 300
MASK = "[redacted]"

_SCANNED_CHARS = 16_384
# A text without an end reaches to the end: else each quote in it would be tried as a beginning.
_JSON_VALUES = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|-?[0-9][0-9.eE+-]*', re.DOTALL)
_WORD = re.compile(r"[^\s\"'<>]+")
_ADDRESS = re.compile(r"https?:[^?]")
_PATTERNS = (
    (re.compile(r"(?i)\b(bearer|basic|key)(\s+)[^\s\"',]+"), rf"\1\2{MASK}"),
    (re.compile(r"(\\?/callbacks\\?/[^\s\"'/\\]+\\?/)[^\s\"'/?&\\]+"), rf"\1{MASK}"),
    (_WORD, lambda word: _without_query(word[0])),
    (re.compile(r"[A-Za-z0-9+/=_-]{100,}"), "[bytes]"),
)


class Redactor:
    """Knows the secrets of one provider and takes them out of text."""

    def __init__(self, secrets: Iterable[str]) -> None:
        forms = {form for secret in secrets if secret for form in _forms(secret)}
        # The longest first: a secret may be the beginning of another one.
        self._forms = sorted(forms, key=len, reverse=True)

    def excerpt(self, text: str | bytes, *also: str | None) -> str:
        """At most 300 clean characters of `text`, without our secrets and without the texts in `also`."""
        if isinstance(text, bytes):
            text = text[:_SCANNED_CHARS].decode("utf-8", "replace")
        # Controls go first: a secret with a control in its middle must not survive as the plain secret.
        clean = text[:_SCANNED_CHARS]
        if not clean.isprintable():
            clean = "".join(char if char.isprintable() else " " * char.isspace() for char in clean)
        for form in self._forms:
            clean = clean.replace(form, MASK)
        for extra in also:
            for form in sorted(_forms(extra), key=len, reverse=True) if extra else ():
                clean = clean.replace(form, MASK)
        for pattern, replacement in _PATTERNS:
            clean = pattern.sub(replacement, clean)
        return clean.strip()[:EXCERPT_CHARS]

    def masked(self, raw: bytes) -> bytes:
        """The whole of a JSON text without our secrets; it remains JSON."""
        # Some writers escape more letters than they must, such as the = at the end of a base64 text.
        if b"\\u" not in raw and not any(form.encode() in raw for form in self._forms):
            return raw
        return _JSON_VALUES.sub(self._masked_value, raw)

    def _masked_value(self, value: re.Match[bytes]) -> bytes:
        found = value[0].decode("utf-8", "replace")
        try:
            text = json.loads(found, strict=False) if found.startswith('"') else found
        except ValueError:
            text = found.strip('"')
        masked = text
        for form in self._forms:
            masked = masked.replace(form, MASK)
        # In the place of a number the mask is a text, too.
        return value[0] if masked == text else json.dumps(masked).encode()


def _without_query(word: str) -> str:
    """An address without what stands behind its question mark; any other word as it is."""
    address = _ADDRESS.search(word)
    mark = word.find("?", address.end()) if address else -1
    return word if mark in (-1, len(word) - 1) else word[: mark + 1] + MASK


def _forms(secret: str) -> set[str]:
    in_json = json.dumps(secret)[1:-1]
    return {secret, in_json, in_json.replace("/", "\\/"), quote(secret), quote(secret, safe="")}
