"""A call: one request as a dialect sees it."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from aiohttp import web

from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.forms import Part, read_form

GIVEN_CHARS = 1000


class Call:
    """A request with its raw body read; `path` is without the dialect's prefix, `at` what the route caught."""

    def __init__(self, request: web.Request, *, path: str, body: bytes, at: Mapping[str, str]) -> None:
        self.request = request
        self.method = request.method
        self.path = path
        self.body = body
        self.at = at

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers, by name without regard to case."""
        return self.request.headers

    @property
    def query(self) -> Mapping[str, str]:
        """The query; of a name that comes twice, the first."""
        return self.request.query

    @property
    def origin(self) -> str:
        """Scheme, host and port under which the caller has reached the lab."""
        return str(self.request.url.origin())

    def json(self) -> Any:
        """The body as JSON, sent as such."""
        if self.request.content_type != "application/json":
            raise Fault("header", ("content-type",), "must be application/json")
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            raise Fault("body", (), "is not JSON") from None

    def fields(self) -> Fields:
        """The body as an object of JSON."""
        value = self.json()
        if not isinstance(value, dict):
            raise Fault("body", (), "must be a JSON object")
        return Fields(value)

    def form(self) -> tuple[Fields, list[Part]]:
        """A multipart body: its plain fields and its files; a plain field that comes twice is a list."""
        parts = read_form(self.body, self.headers.get("Content-Type", ""))
        values: dict[str, Any] = {}
        for part in (part for part in parts if part.file_name is None):
            before = values.get(part.name)
            values[part.name] = part.text if before is None else [*_listed(before), part.text]
        return Fields(values, is_text=True), [part for part in parts if part.file_name is not None]

    def given(self) -> Any:
        """The query and the body as they came, with long texts cut: for the witness."""
        if self.request.content_type == "application/json":
            body = self.json()
        elif self.request.content_type == "multipart/form-data":
            body = self.form()[0].values
        else:
            body = None
        return _cut([dict(self.query), body])

    def only_query(self, known: Collection[str]) -> None:
        """Refuse a query parameter that is not known."""
        for name in self.query:
            if name not in known:
                raise Fault("unknown", ("query", name), "unknown parameter")


def _cut(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _cut(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_cut(member) for member in value]
    return value[:GIVEN_CHARS] if isinstance(value, str) else value


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
