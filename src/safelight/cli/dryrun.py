"""The calls that a declaration would make, written down with stand-ins and sent to nobody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import aiohttp

from safelight.domain.provider import AttemptRef, InputImage, Submission
from safelight.providers.auth import choose
from safelight.providers.calls import CallComposer
from safelight.providers.checks import credential_names
from safelight.providers.declaration import Call, Declaration, DeclaredModel, Listing
from safelight.providers.documents import write_time
from safelight.providers.exchange import OutgoingCall
from safelight.providers.values import attempt_values, submission_values

REFERENCE, PROVIDER_REF = "0123456789abcdef-1", "PROVIDER_REF"
_PICTURE = InputImage("image/png", b"...", "https://shop.example/inputs/1")
_SINCE, _UNTIL = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)


def dry_run(declaration: Declaration) -> list[dict[str, Any]]:
    """Every call by its name, with the lines that show it; secrets are stand-ins."""
    known = {name: f"<{name}>" for name in credential_names(declaration)}
    address = declaration.hosts.get(declaration.region) or declaration.base_url or "https://upstream.example"
    composer = CallComposer(address, choose(declaration.auth, known), known, declaration.region)
    shown = []
    for model in declaration.models:
        for operation in model.operations:
            submission = _submission(model, operation)
            call = declaration.submit.fitting(submission)
            values = submission_values(declaration, submission)
            shown.append(_shown(f"submit ({model.name}, {operation})", composer, call, values))
    model = declaration.models[0]
    attempt = AttemptRef(REFERENCE, PROVIDER_REF, model.upstream_model or model.name, model.operations[0])
    values = attempt_values(declaration, attempt)
    for name in ("poll", "result", "look_up", "cancel"):
        call = getattr(declaration, name)
        if call is not None:
            shown.append(_shown(name, composer, call, values))
    if declaration.listing is not None:
        shown.append(_shown("list", composer, declaration.listing, _first_page(declaration.listing)))
    return shown


def _first_page(listing: Listing) -> Mapping[str, Any]:
    """What the templates of a list may speak of, for the first page of a day."""
    return {
        "since": write_time(_SINCE, listing.time_format),
        "until": write_time(_UNTIL, listing.time_format),
        "cursor": None,
        "page": listing.first_page if listing.paging == "page" else None,
        "offset": 0 if listing.paging == "offset" else None,
        "limit": listing.limit,
    }


def _submission(model: DeclaredModel, operation: str) -> Submission:
    is_edit = operation == "edit"
    size = next((size for size in model.sizes if size), None)
    return Submission(
        reference=REFERENCE,
        upstream_model=model.upstream_model or model.name,
        operation=operation,
        prompt="a red shoe on white",
        n=1,
        size=size,
        aspect_ratio=None if size else next((ratio for ratio in model.aspect_ratios if ratio), None),
        images=(_PICTURE,) if is_edit else (),
        options={},
        callback_url="https://shop.example/callbacks/x/token",
        mask=_PICTURE if is_edit and model.takes_mask else None,
    )


def _shown(name: str, composer: CallComposer, call: Call, values: Any) -> dict[str, Any]:
    try:
        outgoing = composer.compose(call, values)
    except (ValueError, TypeError) as error:
        return {"call": name, "lines": [f"{name}: cannot be written down: {error}"]}
    return {"call": name, "lines": [f"{name}:", *_lines(outgoing)]}


def _lines(call: OutgoingCall) -> list[str]:
    head = [f"  {call.method} {call.url}", *(f"  {key}: {value}" for key, value in call.headers.items())]
    if isinstance(call.body, aiohttp.FormData):
        return [*head, "  (a multipart body)", ""]
    if not call.body:
        return [*head, ""]
    try:
        body = json.dumps(json.loads(call.body), indent=2, ensure_ascii=False)
    except ValueError:
        body = call.body.decode("ascii", "replace")
    return [*head, *(f"  {line}" for line in body.splitlines()), ""]
