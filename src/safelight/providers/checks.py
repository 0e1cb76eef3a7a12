"""Finds what a declaration says in one table and takes back in another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from safelight.domain.provider import AfterUncertain, RecordKey, Trust
from safelight.providers.auth import HeaderAuth, named, needed
from safelight.providers.declaration import Call, Declaration, Submit
from safelight.providers.forms import FORMS, NEEDS_DATA, NEEDS_URL
from safelight.providers.signatures import needed_secrets, proves_body, secret_names
from safelight.providers.templates import EACH, Placeholder, check_template, placeholders
from safelight.providers.values import (
    ATTEMPT_VALUES,
    HEADER_VALUES,
    LIST_VALUES,
    LOOK_UP_VALUES,
    PATH_VALUES,
    SUBMIT_VALUES,
)


def contradictions(declaration: Declaration) -> list[str]:
    """Every fault that one table alone does not show: the place, then the mend."""
    found = [*_template_faults(declaration), *_promise_faults(declaration), *_reading_faults(declaration)]
    return found or list(_model_faults(declaration))


def credential_names(declaration: Declaration) -> tuple[str, ...]:
    """The credentials that a declaration knows, the needed ones first."""
    ways = [name for way in declaration.auth for name in named(way)]
    secrets = secret_names(declaration.callback.signature) if declaration.callback else ()
    return tuple(dict.fromkeys((*needed_credentials(declaration), *ways, *secrets)))


def needed_credentials(declaration: Declaration) -> tuple[str, ...]:
    """The credentials without which the provider cannot work; of several ways to sign in, the first counts."""
    return missing_credentials(declaration, {})


def missing_credentials(declaration: Declaration, present: Mapping[str, str]) -> tuple[str, ...]:
    """The needed credentials that are not there."""
    wanted = list(_in_templates(declaration))
    ways = [needed(way) for way in declaration.auth]
    if not any(all(present.get(name) for name in way) for way in ways):
        wanted.extend(ways[0])
    if declaration.callback is not None:
        wanted.extend(needed_secrets(declaration.callback.signature))
    return tuple(name for name in dict.fromkeys(wanted) if not present.get(name))


def _in_templates(declaration: Declaration) -> Iterator[str]:
    """A credential in a body is left out where it is not set; in a header it is needed."""
    for place, call, _ in calls_of(declaration):
        for _, placeholder in placeholders(call.headers, place):
            if placeholder.root == "credentials":
                yield placeholder.name.partition(".")[2]


def option_names(declaration: Declaration) -> tuple[str, ...] | None:
    """The options of customers that reach the upstream; None where all are passed on as they are."""
    names: dict[str, None] = {}
    if any(placeholder.name == "seed" for _, placeholder in _in_submits(declaration)):
        names["seed"] = None
    for _, placeholder in _in_submits(declaration):
        if placeholder.name == "options":
            return None
        if placeholder.root == "options":
            names[placeholder.name.split(".")[1]] = None
    return tuple(names)


def image_forms(declaration: Declaration) -> tuple[bool, bool]:
    """Whether the pictures' bytes are needed, and whether addresses of them are."""
    forms = {
        placeholder.name.rpartition(".")[2]
        for _, placeholder in _in_submits(declaration)
        if placeholder.root in ("image", "images", "mask", "item")
    }
    return bool(forms & NEEDS_DATA), bool(forms & NEEDS_URL)


def takes_callback_url(declaration: Declaration) -> bool:
    """Whether a submit tells the upstream where to call back."""
    return any(placeholder.name == "callback_url" for _, placeholder in _in_submits(declaration))


def record_keys(declaration: Declaration) -> Iterator[RecordKey]:
    """What the records of the upstream's list carry that tells whose they are."""
    if declaration.listing is None:
        return
    dialect = declaration.answer.overridden_by(declaration.listing.answer)
    submits = [call for _, call, _ in calls_of(declaration) if isinstance(call, Submit)]
    if dialect.reference is not None and all(_sends(call, "reference") for call in submits):
        yield RecordKey.REFERENCE
    if dialect.callback_url is not None and all(_sends(call, "callback_url") for call in submits):
        yield RecordKey.CALLBACK_URL
    if dialect.prompt is not None:
        yield RecordKey.PROMPT


def _in_submits(declaration: Declaration) -> Iterator[tuple[str, Placeholder]]:
    for place, call, _ in calls_of(declaration):
        if isinstance(call, Submit):
            parts = {"query": call.query, "headers": call.headers, "body": call.body}
            yield from placeholders(parts, place)


def calls_of(declaration: Declaration) -> Iterator[tuple[str, Call, frozenset[str]]]:
    """Every declared call with its place and the values its templates may speak of."""
    yield "submit", declaration.submit, SUBMIT_VALUES
    for index, variant in enumerate(declaration.submit.variants):
        yield f"submit.variants[{index}]", declaration.submit.varied(variant), SUBMIT_VALUES
    others = (
        ("poll", declaration.poll, ATTEMPT_VALUES),
        ("result", declaration.result, ATTEMPT_VALUES),
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
    templates += [
        ("auth.value", way.value, frozenset({"credentials"}))
        for way in declaration.auth
        if isinstance(way, HeaderAuth)
    ]
    for place, template, allowed in templates:
        try:
            check_template(template, place, allowed)
        except ValueError as error:
            yield str(error)
            return
    yield from _form_faults(declaration)


def _form_faults(declaration: Declaration) -> Iterator[str]:
    """Pictures are written in a form; the list itself is only what another list is made of."""
    for place, placeholder in _in_submits(declaration):
        name = placeholder.name
        is_picture = placeholder.root in ("image", "images", "mask", "item") and not place.endswith(
            f".{EACH}"
        )
        if is_picture and name.rpartition(".")[2] not in FORMS:
            forms = ", ".join(sorted(FORMS))
            yield f"{place} has {{{name}}}; say in which form, such as {{{placeholder.root}.link}}: {forms}"


def _promise_faults(declaration: Declaration) -> Iterator[str]:
    submit, callback = declaration.submit, declaration.callback
    if submit.after_uncertain is AfterUncertain.LOOK_UP and declaration.look_up is None:
        yield "submit.after_uncertain is 'look_up'; add a [look_up] table or write 'none'"
    if submit.after_uncertain is AfterUncertain.LIST and not set(record_keys(declaration)):
        yield (
            "submit.after_uncertain is 'list'; add a [list] table whose answer has a prompt, a callback_url "
            "or a reference that the submit carries, or write 'none'"
        )
    if submit.after_uncertain is AfterUncertain.SAME_KEY and not _sends(submit, "reference"):
        yield "submit.after_uncertain is 'same_key'; put {reference} into submit.headers or submit.body"
    if callback is not None and callback.trust is Trust.BODY and not proves_body(callback.signature):
        kind = callback.signature.kind
        yield f"callback.trust is 'body', but {kind!r} does not prove the body; write 'hint'"
    if callback is not None and (callback.address == "task") != takes_callback_url(declaration):
        yield (
            "callback.address is 'task' if and only if the submit carries {callback_url}; "
            "put it into the submit, or write address = 'account'"
        )
    if declaration.result is not None and declaration.poll is None:
        yield "result is read after a poll that says done; add a [poll] table"
    if not declaration.is_synchronous and declaration.poll is None and callback is None:
        yield "poll is absent; add a [poll] or a [callback] table, or set is_synchronous = true"


def _reading_faults(declaration: Declaration) -> Iterator[str]:
    for place, call, _ in calls_of(declaration):
        dialect = declaration.answer.overridden_by(call.answer)
        says_status = dialect.status or dialect.status_if_absent or dialect.statuses_by_http
        if not says_status and place in ("poll", "result", "look_up", "list"):
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
    return place.startswith("submit") and not declaration.is_synchronous


def _model_faults(declaration: Declaration) -> Iterator[str]:
    names = [model.name for model in declaration.models]
    if not names:
        yield "models is empty; add a [[models]] table, so that somebody can ask for something"
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"models has {name!r} twice; give each model its own name"
    for model in declaration.models:
        if model.takes_mask and "edit" not in model.operations:
            yield f"models: {model.name!r} takes a mask, but does not edit; add 'edit' to its operations"
        if model.p95_floor_s > model.p95_cap_s:
            yield f"models: {model.name!r} has a p95_floor_s above its p95_cap_s; swap them"
        if "edit" in model.operations and model.max_images == 0:
            yield f"models: {model.name!r} edits, but max_images is 0; say how many pictures it takes"


def _sends(call: Call, name: str) -> bool:
    parts = {"query": call.query, "headers": call.headers, "body": call.body}
    try:
        return any(placeholder.name == name for _, placeholder in placeholders(parts, "submit"))
    except ValueError:
        return True  # reported as a fault of the template
