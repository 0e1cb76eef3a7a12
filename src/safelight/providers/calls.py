"""Turns a declared call and the values of one use into an HTTP call that is ready to be sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

import aiohttp
from yarl import URL

from safelight.errors import ConfigurationError
from safelight.providers.auth import Auth, Unsigned, build_authorizer
from safelight.providers.declaration import Call
from safelight.providers.exchange import OutgoingCall
from safelight.providers.forms import FilePart
from safelight.providers.templates import fill, fill_path
from safelight.providers.values import Values

_CONTENT_TYPES = {"json": "application/json", "form": "application/x-www-form-urlencoded"}


class CallComposer:
    """Composes the calls to one provider; knows its address and its credentials."""

    def __init__(self, base_url: str, auth: Auth, credentials: Mapping[str, str], region: str) -> None:
        self.base_url = read_base_url(base_url)
        self._known = {"credentials": dict(credentials), "region": region}
        self._authorize = build_authorizer(auth, credentials)

    def compose(self, call: Call, values: Values, *, link: str | None = None) -> OutgoingCall:
        """The call with its values, to `link` instead of its path where the upstream gave one.

        Raises:
            ValueError, TypeError: it cannot be written down.
        """
        known = {**values, **self._known}
        url = URL(link or f"{self.base_url}{fill_path(call.path, known)}", encoded=True)
        query = {key: _as_text(value) for key, value in fill(call.query, known).items()}
        if query:
            url = url.update_query(query)
        headers = {"Accept": "application/json", **fill(call.headers, known)}
        body = _write_body(call, known, headers)
        signed = Unsigned(call.method, url, headers, body if isinstance(body, bytes) else b"")
        return OutgoingCall(
            method=call.method,
            url=url,
            headers={**headers, **self._authorize(signed)},
            body=body,
            timeout_s=call.timeout_s,
            max_answer_bytes=call.max_answer_bytes,
        )


def read_base_url(base_url: str) -> str:
    """A provider's address without its last slash; raises ConfigurationError."""
    try:
        url = URL(base_url)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host or url.query_string or url.fragment or url.user:
        raise ConfigurationError("base_url is not an address; write it as https://host or https://host/path")
    return base_url.rstrip("/")


def _write_body(call: Call, known: Values, headers: dict[str, str]) -> bytes | aiohttp.FormData | None:
    if call.body is None:
        return None
    body = fill(call.body, known)
    if call.encoding == "multipart":
        return _multipart(body)
    headers.setdefault("Content-Type", _CONTENT_TYPES[call.encoding])
    if call.encoding == "form":
        return urlencode({key: _as_text(value) for key, value in body.items()}).encode("ascii")
    # Escaped to ASCII: a lone surrogate in a prompt has no UTF-8 form.
    return json.dumps(body, allow_nan=False).encode("ascii")


def _multipart(body: Mapping[str, Any]) -> aiohttp.FormData:
    """Every member as a part; a list as several parts of one name."""
    form = aiohttp.FormData(quote_fields=False, default_to_multipart=True)
    for name, value in body.items():
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, FilePart):
                form.add_field(name, item.data, filename=item.name, content_type=item.content_type)
            else:
                # Written down here, so that a prompt without a UTF-8 form is a ValueError and not a send.
                form.add_field(name, _as_text(item).encode().decode())
    return form


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)
