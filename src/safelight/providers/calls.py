"""Turns a declared call and the values of one use into an HTTP call that is ready to be sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from yarl import URL

from safelight.domain.provider import AttemptRef, Submission
from safelight.errors import ConfigurationError
from safelight.providers.declaration import Call, HeaderAuth, NoAuth
from safelight.providers.exchange import OutgoingCall
from safelight.providers.templates import fill, fill_path

Values = Mapping[str, Any]


def submission_values(submission: Submission) -> Values:
    """What a submit's templates may speak of."""
    width, _, height = (submission.size or "").partition("x")
    return {
        "reference": submission.reference,
        "upstream_model": submission.upstream_model,
        "operation": submission.operation,
        "prompt": submission.prompt,
        "n": submission.n,
        "size": submission.size,
        "width": int(width) if width.isdecimal() else None,
        "height": int(height) if height.isdecimal() else None,
        "aspect_ratio": submission.aspect_ratio,
        "images": list(submission.images),
        "image": submission.images[0] if submission.images else None,
        "options": submission.options,
        "callback_url": submission.callback_url,
    }


def attempt_values(attempt: AttemptRef) -> Values:
    """What the templates of poll, look_up and cancel may speak of."""
    return {
        "reference": attempt.reference,
        "provider_ref": attempt.provider_ref,
        "upstream_model": attempt.upstream_model,
        "operation": attempt.operation,
    }


ATTEMPT_VALUES = frozenset({"reference", "provider_ref", "upstream_model", "operation", "credentials"})
SUBMIT_VALUES = (ATTEMPT_VALUES - {"provider_ref"}) | {
    *("prompt", "n", "size", "width", "height", "aspect_ratio"),
    *("images", "image", "options", "callback_url"),
}
LOOK_UP_VALUES = ATTEMPT_VALUES - {"provider_ref"}
LIST_VALUES = frozenset({"since", "until", "cursor", "limit", "credentials"})
PATH_VALUES = frozenset({"reference", "provider_ref", "upstream_model", "operation"})
"""A secret in an address would end up in every log on its way."""
HEADER_VALUES = frozenset({"reference", "upstream_model", "operation", "credentials"})
"""Texts of customers never go into headers."""


class CallComposer:
    """Fills one provider's calls. It knows the address and the credentials."""

    def __init__(self, base_url: str, auth: HeaderAuth | NoAuth, credentials: Mapping[str, str]) -> None:
        self._base_url = read_base_url(base_url)
        self._credentials = dict(credentials)
        self._auth = {auth.header: auth.value} if isinstance(auth, HeaderAuth) else {}

    def compose(self, call: Call, values: Values) -> OutgoingCall:
        """The call with its values; raises ValueError where they cannot be written down."""
        known = {**values, "credentials": self._credentials}
        headers = {"Accept": "application/json", **fill({**self._auth, **call.headers}, known)}
        body = None
        if call.body is not None:
            headers.setdefault("Content-Type", "application/json")
            # Escaped to ASCII: a lone surrogate in a prompt has no UTF-8 form.
            body = json.dumps(fill(call.body, known), allow_nan=False).encode("ascii")
        url = URL(f"{self._base_url}{fill_path(call.path, known)}", encoded=True)
        query = {key: _query_text(value) for key, value in fill(call.query, known).items()}
        return OutgoingCall(
            method=call.method,
            url=url.update_query(query) if query else url,
            headers=headers,
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


def _query_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else json.dumps(value)
