"""The calls that a declaration would make, written down with stand-ins and sent to nobody."""

from __future__ import annotations

import json
from typing import Any

import aiohttp

from safelight.domain.provider import AttemptRef, InputImage, Submission
from safelight.providers.auth import choose
from safelight.providers.calls import CallComposer
from safelight.providers.checks import credential_names
from safelight.providers.declaration import Call, Declaration, DeclaredModel
from safelight.providers.exchange import OutgoingCall
from safelight.providers.values import attempt_values, submission_values

_PICTURE = InputImage("image/png", b"...", "https://shop.example/inputs/1")


def dry_run(declaration: Declaration) -> list[dict[str, Any]]:
    """Every call by its name, with the lines that show it; secrets are stand-ins."""
    known = {name: f"<{name}>" for name in credential_names(declaration)}
    address = declaration.base_url or "https://upstream.example"
    composer = CallComposer(address, choose(declaration.auth, known), known, declaration.region)
    shown = []
    for model in declaration.models:
        for operation in model.operations:
            submission = _submission(model, operation)
            call = declaration.submit.fitting(submission)
            values = submission_values(declaration, submission)
            shown.append(_shown(f"submit ({model.name}, {operation})", composer, call, values))
    attempt = AttemptRef("0123456789abcdef-1", "<provider_ref>", declaration.models[0].name, "generate")
    values = attempt_values(declaration, attempt)
    for name in ("poll", "result", "look_up", "cancel"):
        call = getattr(declaration, name)
        if call is not None:
            shown.append(_shown(name, composer, call, values))
    return shown


def _submission(model: DeclaredModel, operation: str) -> Submission:
    is_edit = operation == "edit"
    size = next((size for size in model.sizes if size), None)
    return Submission(
        reference="0123456789abcdef-1",
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
