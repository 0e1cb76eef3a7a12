"""Cases about options: those that the upstream knows, and those that are passed on, arrive as they were given."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from safelight.cli.conformance.cases import Case
from safelight.cli.conformance.ways import Way, ways_of
from safelight.cli.conformance.workbench import Nonconformity, Workbench, expect
from safelight.domain.provider import Submission
from safelight.providers.declaration import Call
from safelight.providers.templates import placeholders

USUAL: Mapping[str, Any] = {
    "cfg_scale": 6.5,
    "guidance": 4.5,
    "guidance_scale": 4.5,
    "negative_prompt": "no fog, no rain",
    "num_inference_steps": 21,
    "output_format": "jpeg",
    "prompt_extend": True,
    "prompt_upsampling": True,
    "quality": "high",
    "resolution": "2K",
    "seed": 20_261_129,
    "steps": 21,
    "strength": 0.35,
    "style": "realistic",
    "watermark": True,
}
"""A value for each well-known option, for upstreams whose dialect offers none of its own."""


def option_cases(bench: Workbench) -> Iterator[Case]:
    """One case for each way of sending that has options of its own."""
    seen = set()
    for way in ways_of(bench):
        call = bench.declaration.submit.fitting(way.submission(bench))
        offered = bench.dialect["options"]
        passed_on = [name for name in _passed_on(call) if name not in offered]
        names = dict.fromkeys((*_offered(bench, way), *passed_on))
        what = (call.path, repr(call.body), frozenset(names))
        if names and what not in seen:
            seen.add(what)
            yield Case(f"options: {way.name}", partial(_arrive, bench, way, tuple(names)))


def _offered(bench: Workbench, way: Way) -> list[str]:
    places = {way.word, way.model.upstream_model or way.model.name}
    known = bench.dialect["options"].items()
    return [name for name, option in known if not option["only"] or places & set(option["only"])]


def _passed_on(call: Call) -> Iterator[str]:
    parts = {"query": call.query, "headers": call.headers, "body": call.body}
    for _, placeholder in placeholders(parts, "submit"):
        if placeholder.name == "seed":
            yield "seed"
        elif placeholder.root == "options" and placeholder.name != "options":
            yield placeholder.name.split(".")[1]


async def _arrive(bench: Workbench, way: Way, names: Sequence[str]) -> None:
    await bench.turn()
    before = await _given(bench, way.submission(bench))
    for name in names:
        value, beside = _sample(bench, name)
        changed = await _given(bench, way.submission(bench, {**beside, name: value})) - before
        expect(
            any(_text(value) in text for _, text in changed), f"the option {name} = {value!r} does not arrive"
        )


def _sample(bench: Workbench, name: str) -> tuple[Any, Mapping[str, Any]]:
    option = bench.dialect["options"].get(name)
    if option is not None:
        return option["value"], option["beside"]
    if name not in USUAL:
        raise Nonconformity(f"there is no value to try the option {name} with: neither usual nor offered")
    return USUAL[name], {}


async def _given(bench: Workbench, submission: Submission) -> set[tuple[str, str]]:
    """What the upstream is told, without what differs from attempt to attempt."""
    outcome = await bench.submit(submission)
    if outcome.word not in ("accepted", "done"):
        raise Nonconformity(
            f"with {dict(submission.options)} a submit is {outcome.word} {outcome.reason}: {bench.told[-1:]}"
        )
    leaves = set()
    for place, leaf in _leaves((await bench.witness())["given"], ""):
        text = leaf.replace(submission.reference, "")
        leaves.add((place, text.replace(submission.callback_url or submission.reference, "")))
    return leaves


def _leaves(value: Any, place: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield from _leaves(member, f"{place}.{name}")
    elif isinstance(value, list):
        for index, member in enumerate(value):
            yield from _leaves(member, f"{place}.{index}")
    elif isinstance(value, str):
        yield place, value
    else:
        yield place, json.dumps(value)


def _text(value: Any) -> str:
    """As it is written in a form, and as a leaf of JSON looks."""
    return value if isinstance(value, str) else json.dumps(value)
