"""The forms in which upstreams take a picture: address, data URL, base64, file part."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from safelight.domain.provider import InputImage

FORMS = frozenset({"url", "data_url", "link", "base64", "file", "type", "name"})
"""`link` is the address where there is one, else the data URL; `name` is for upstreams that keep pictures
under one and have code of their own to bring them there."""

NEEDS_DATA = frozenset({"data_url", "link", "base64", "file", "name"})
NEEDS_URL = frozenset({"url", "link"})


@dataclass(frozen=True, slots=True)
class FilePart:
    """A picture as a part of a multipart body."""

    content_type: str
    data: bytes = field(repr=False)
    given_name: str = ""

    @property
    def name(self) -> str:
        return self.given_name or f"image.{self.content_type.rpartition('/')[2]}"


class ImageForms(Mapping[str, Any]):
    """One picture in every form; each is made only when a template asks for it."""

    def __init__(self, image: InputImage) -> None:
        self._image = image

    def __getitem__(self, form: str) -> Any:
        image = self._image
        match form:
            case "url":
                return image.url
            case "data_url":
                return f"data:{image.content_type};base64,{self['base64']}"
            case "link":
                return image.url or self["data_url"]
            case "base64":
                return base64.b64encode(image.data).decode("ascii")
            case "file":
                return FilePart(image.content_type, image.data)
            case "type":
                return image.content_type
        raise KeyError(form)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(FORMS))

    def __len__(self) -> int:
        return len(FORMS)
