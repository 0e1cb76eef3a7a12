"""Finds what a declaration says in one table and takes back in another."""

from __future__ import annotations

from collections.abc import Iterator

from safelight.domain.provider import AfterUncertain, Trust
from safelight.providers.calls import (
    ATTEMPT_VALUES,
    HEADER_VALUES,
    LIST_VALUES,
    LOOK_UP_VALUES,
    PATH_VALUES,
    SUBMIT_VALUES,
)
from safelight.providers.declaration import Call, Declaration, HeaderAuth
from safelight.providers.signatures import BODY_PROVING, secret_names
from safelight.providers.templates import check_template, placeholders


def contradictions(declaration: Declaration) -> list[str]:
    """Every fault that one table alone does not show: the place, then the mend."""
    found = [*_template_faults(declaration), *_promise_faults(declaration), *_reading_faults(declaration)]
    return found or list(_model_faults(declaration))


def credential_names(declaration: Declaration) -> tuple[str, ...]:
    """The credentials that a declaration cannot do without."""
    names: dict[str, None] = {}
    for place, call, _ in calls_of(declaration):
        parts = {"query": call.query, "headers": call.headers, "body": call.body}
        for _, placeholder in placeholders(parts, place):
            if placeholder.root == "credentials":
                names[placeholder.name.partition(".")[2]] = None
    if isinstance(declaration.auth, HeaderAuth):
        for _, placeholder in placeholders(declaration.auth.value, "auth.value"):
            names[placeholder.name.partition(".")[2]] = None
    if declaration.callback is not None:
        names.update(dict.fromkeys(secret_names(declaration.callback.signature)[:1]))
    return tuple(names)


def calls_of(declaration: Declaration) -> Iterator[tuple[str, Call, frozenset[str]]]:
    """Every declared call with its place and the values its templates may speak of."""
    yield "submit", declaration.submit, SUBMIT_VALUES
    others = (
        ("poll", declaration.poll, ATTEMPT_VALUES),
        ("look_up", declaration.look_up, LOOK_UP_VALUES),
        ("list", declaration.listing, LIST_VALUES),
        ("cancel", declaration.cancel, ATTEMPT_VALUES),
    )
    for place, call, values in others:
        if call is not None:
            yield place, call, values


def _template_faults(declaration: Declaration) -> Iterator[str]:
    templates = [
        (f"{place}.{part}", template, allowed & limit)
        for place, call, allowed in calls_of(declaration)
        for part, template, limit in (
            ("path", call.path, PATH_VALUES),
            ("query", call.query, allowed - {"credentials"}),
            ("headers", call.headers, HEADER_VALUES),
            ("body", call.body, allowed),
        )
    ]
    if isinstance(declaration.auth, HeaderAuth):
        templates.append(("auth.value", declaration.auth.value, frozenset({"credentials"})))
    for place, template, allowed in templates:
        try:
            check_template(template, place, allowed)
        except ValueError as error:
            yield str(error)


def _promise_faults(declaration: Declaration) -> Iterator[str]:
    submit, callback = declaration.submit, declaration.callback
    kind = callback.signature.kind if callback else "none"
    if submit.after_uncertain is AfterUncertain.LOOK_UP and declaration.look_up is None:
        yield "submit.after_uncertain is 'look_up'; add a [look_up] table or write 'none'"
    if submit.after_uncertain is AfterUncertain.SAME_KEY and not _sends_reference(submit):
        yield "submit.after_uncertain is 'same_key'; put {reference} into submit.headers or submit.body"
    if callback is not None and callback.trust is Trust.BODY and kind not in BODY_PROVING:
        yield f"callback.trust is 'body', but {kind!r} does not prove the body; write 'hint'"
    if not declaration.is_synchronous and declaration.poll is None and callback is None:
        yield "poll is absent; add a [poll] or a [callback] table, or set is_synchronous = true"


def _reading_faults(declaration: Declaration) -> Iterator[str]:
    for place, call, _ in calls_of(declaration):
        dialect = declaration.answer.overridden_by(call.answer)
        if (
            dialect.status is None
            and dialect.status_if_absent is None
            and place in ("poll", "look_up", "list")
        ):
            yield f"{place}.answer.status is absent; say where the status is, here or in [answer]"
        if dialect.status is not None and not dialect.statuses:
            yield f"{place}.answer.statuses is empty; map each word of the upstream to ours"
        if dialect.provider_ref is None and (place in ("look_up", "list") or _needs_ref(declaration, place)):
            yield f"{place}.answer.provider_ref is absent; say where the id is, here or in [answer]"
        if dialect.reference is None and place == "look_up":
            yield "look_up.answer.reference is absent; without it a stranger's record could be taken"
        if dialect.created_at is None and place == "list":
            yield "list.answer.created_at is absent; the window is checked with it"
        if dialect.outputs is not None and not (dialect.outputs.url or dialect.outputs.base64):
            yield f"{place}.answer.outputs has neither 'url' nor 'base64'; add one of them"


def _needs_ref(declaration: Declaration, place: str) -> bool:
    return place == "submit" and not declaration.is_synchronous


def _model_faults(declaration: Declaration) -> Iterator[str]:
    names = [model.name for model in declaration.models]
    if not names:
        yield "models is empty; add a [[models]] table, so that somebody can ask for something"
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"models has {name!r} twice; give each model its own name"
    for model in declaration.models:
        if model.p95_floor_s > model.p95_cap_s:
            yield f"models: {model.name!r} has a p95_floor_s above its p95_cap_s; swap them"
        if "edit" in model.operations and model.max_images == 0:
            yield f"models: {model.name!r} edits, but max_images is 0; say how many pictures it takes"


def _sends_reference(call: Call) -> bool:
    parts = {"query": call.query, "headers": call.headers, "body": call.body}
    try:
        return any(placeholder.name == "reference" for _, placeholder in placeholders(parts, "submit"))
    except ValueError:
        return True  # reported as a fault of the template
