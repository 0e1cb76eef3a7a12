"""Declarations in a few lines, for the tests of the language."""

from __future__ import annotations

import re
from typing import Any

import aiohttp
from pydantic import SecretStr

from safelight.domain.provider import AttemptRef, InputImage
from safelight.providers import DeclaredProvider, load_declaration
from tests.providers.upstream import Upstream

HEAD = """
name = "upstream"
[submit]
path = "/v1/jobs"
after_uncertain = "none"
body = { prompt = "{prompt}" }
[answer]
provider_ref = "id"
status = "status"
statuses = { queued = "queued", running = "running", done = "succeeded", failed = "failed" }
outputs = { items = "images", url = "url" }
[poll]
path = "/v1/jobs/{provider_ref}"
"""
MODELS = """
[[models]]
name = "m"
upstream_model = "owner/m/turbo"
price = 1
operations = ["generate", "edit"]
max_images = 4
takes_mask = true
values = { kind = "txt2img" }
[[models]]
name = "other"
price = 1
"""
ATTEMPT = AttemptRef(
    reference="t1-1", provider_ref="j1", upstream_model="owner/m/turbo", operation="generate"
)
CREDENTIALS = {"api_key": SecretStr("key-1")}
PNG = InputImage("image/png", b"png-bytes", "https://shop.example/inputs/1")
HIDDEN = InputImage("image/webp", b"webp-bytes")


def declared(extra: str = "", *, head: str = HEAD) -> Any:
    """A declaration; tables in `extra` are added, and a `submit` table there replaces the usual one."""
    if "[submit]" in extra:
        head = re.sub(r"\[submit\].*?(?=\n\[answer\])", "", head, flags=re.DOTALL)
    if "[poll]" in extra:
        head = re.sub(r"\[poll\].*", "", head, flags=re.DOTALL)
    return load_declaration(head + extra + MODELS)


def provider(
    session: aiohttp.ClientSession,
    upstream: Upstream,
    extra: str = "",
    *,
    head: str = HEAD,
    credentials: dict[str, SecretStr] | None = None,
    **changes: Any,
) -> DeclaredProvider:
    return DeclaredProvider(
        declared(extra, head=head),
        credentials=CREDENTIALS if credentials is None else credentials,
        session=session,
        base_url=changes.pop("base_url", upstream.base_url),
        **changes,
    )


SUBMIT = """
[submit]
path = "/v1/jobs"
after_uncertain = "none"
"""
