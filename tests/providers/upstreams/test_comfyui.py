"""ComfyUI: pictures uploaded before the graph that names them, a state that is a place, files for pictures."""

from __future__ import annotations

import json
from typing import Any

import aiohttp
import pytest

from safelight.domain.failure import FailureClass
from safelight.domain.provider import ProviderUpdate, UpdateStatus
from safelight.errors import ProviderError, ProviderUnavailable
from tests.providers.upstream import Upstream
from tests.providers.upstreams.asking import BAD_KEY, HTML, JPEG, PNG, REFUSED_INPUT, Asker, urls_of
from tests.providers.upstreams.parts import parts_of

TAKEN = {"prompt_id": "j1", "number": 4, "node_errors": {}}
STORED = {"name": "stored.png", "subfolder": "", "type": "input"}
EMPTY: dict[str, Any] = {"queue_running": [], "queue_pending": []}


@pytest.fixture
def comfyui(upstream: Upstream, session: aiohttp.ClientSession) -> Asker:
    return Asker("comfyui", session, upstream, credentials={})


def item(ref: str, number: int = 1, reference: str = "t1-1") -> list[Any]:
    """A member of the queue."""
    return [number, ref, {}, {"safelight_reference": reference}, ["7"]]


def entry(
    word: str | None, *events: tuple[str, dict[str, Any]], images: Any = (), reference: str = "t1-1"
) -> Any:
    """A member of the history."""
    return {
        "prompt": item("j1", reference=reference),
        "outputs": {"7": {"images": list(images)}, "9": {"text": ["a note"]}},
        "status": {
            "status_str": word,
            "completed": word == "success",
            "messages": [list(one) for one in events],
        },
    }


def file(name: str, kind: str = "output", folder: str = "") -> dict[str, str]:
    return {"filename": name, "subfolder": folder, "type": kind}


async def look(comfyui: Asker, *answers: Any) -> ProviderUpdate:
    """What a look says whose calls are answered so, in order."""
    for answer in answers:
        comfyui.upstream.answers(200, answer)
    return await comfyui.provider.poll(comfyui.attempt())


async def test_a_submit_is_a_graph_with_the_wishes_in_its_nodes(comfyui: Asker) -> None:
    wishes = {"n": 2, "size": "1216x832", "options": {"negative_prompt": "rain", "seed": 7}}
    update = await comfyui.submits(200, TAKEN, **wishes)
    asked = comfyui.upstream.asked[0]
    assert (asked.method, asked.path) == ("POST", "/prompt")
    assert "authorization" not in asked.headers
    nodes = {node["class_type"]: node["inputs"] for node in asked.body["prompt"].values()}
    assert nodes["EmptyLatentImage"] == {"width": 1216, "height": 832, "batch_size": 2}
    texts = [node["inputs"].get("text") for node in asked.body["prompt"].values()]
    assert [text for text in texts if text] == ["a fox", "rain"]
    assert nodes["CheckpointLoaderSimple"] == {"ckpt_name": "sd_xl_base_1.0.safetensors"}
    assert nodes["KSampler"]["seed"] == 7
    assert asked.body["extra_data"] == {"safelight_reference": "t1-1"}
    assert (update.status, update.provider_ref) == (UpdateStatus.QUEUED, "j1")


async def test_every_attempt_has_a_seed_of_its_own(comfyui: Asker) -> None:
    bodies = [await comfyui.sends(200, TAKEN, reference=f"t{number}-1") for number in (1, 2)]
    seeds = {
        node["inputs"]["seed"]
        for body in bodies
        for node in body["prompt"].values()
        if "seed" in node["inputs"]
    }
    assert len(seeds) == 2, "the same graph again would be answered from its cache"


@pytest.mark.parametrize("folder", ["", "inputs"])
async def test_an_edit_uploads_its_picture_and_names_it_as_it_was_stored(comfyui: Asker, folder: str) -> None:
    comfyui.upstream.answers(200, {**STORED, "subfolder": folder})
    body = await comfyui.sends(200, TAKEN, operation="edit", images=[JPEG], options={"strength": 0.3})
    uploaded, submitted = comfyui.upstream.asked
    assert (uploaded.method, uploaded.path) == ("POST", "/upload/image")
    assert parts_of(uploaded) == [
        ("image", ("image/jpeg", b"jpeg-bytes")),
        ("type", "input"),
        ("overwrite", "true"),
    ]
    assert b'filename="t1-1-0.jpeg"' in uploaded.raw
    nodes = {node["class_type"]: node["inputs"] for node in body["prompt"].values()}
    assert nodes["LoadImage"] == {"image": f"{folder}/stored.png" if folder else "stored.png"}
    assert (nodes["KSampler"]["denoise"], submitted.path) == (0.3, "/prompt")


async def test_a_mask_is_uploaded_after_the_picture(comfyui: Asker) -> None:
    comfyui.upstream.answers(200, STORED)
    comfyui.upstream.answers(200, {**STORED, "name": "mask.png"})
    body = await comfyui.sends(200, TAKEN, operation="edit", images=[PNG], mask=PNG)
    nodes = {node["class_type"]: node["inputs"] for node in body["prompt"].values()}
    assert nodes["LoadImageMask"] == {"image": "mask.png", "channel": "red"}
    assert b'filename="t1-1-mask.png"' in comfyui.upstream.asked[1].raw


@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        (500, b"500 Internal Server Error", "not_sent"),
        (400, b"", "not_sent"),
        (200, HTML, "not_sent"),
        (200, {"subfolder": ""}, "not_sent"),
        (401, HTML, "credentials"),
    ],
)
async def test_a_picture_that_is_not_taken_means_that_nothing_was_sent(
    comfyui: Asker, status: int, body: Any, reason: str
) -> None:
    comfyui.upstream.answers(status, body)
    with pytest.raises(ProviderUnavailable) as unavailable:
        await comfyui.provider.submit(comfyui.submission(operation="edit", images=[PNG]))
    assert unavailable.value.reason == reason
    assert [asked.path for asked in comfyui.upstream.asked] == ["/upload/image"]


async def test_a_server_behind_a_proxy_gets_its_key(
    upstream: Upstream, session: aiohttp.ClientSession
) -> None:
    comfyui = Asker("comfyui", session, upstream)
    await comfyui.submits(200, TAKEN)
    assert upstream.asked[0].headers["authorization"].startswith("Bearer ")


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (400, {"error": {"type": "no_prompt", "message": "No prompt provided"}}, REFUSED_INPUT),
        (400, {"error": {"type": "prompt_outputs_failed_validation", "message": "…"}}, REFUSED_INPUT),
        (401, HTML, BAD_KEY),
        (403, b"", BAD_KEY),
        (400, HTML, "uncertain"),
        (500, b"500 Internal Server Error", "uncertain"),
        (502, HTML, "uncertain"),
        (200, {"number": 4}, "uncertain"),
    ],
)
async def test_what_a_refusal_means(comfyui: Asker, status: int, body: Any, outcome: str) -> None:
    assert await comfyui.refuses(status, body) == outcome


async def test_a_graph_that_waits_is_found_in_its_place(comfyui: Asker) -> None:
    line = {"queue_running": [item("j0")], "queue_pending": [item("j1", 9), item("j2", 3)]}
    update = await look(comfyui, {}, line)
    assert (update.status, update.position) == (UpdateStatus.QUEUED, 1)
    assert [asked.path for asked in comfyui.upstream.asked] == ["/history/j1", "/queue"]


async def test_a_graph_that_runs_is_found_in_the_queue(comfyui: Asker) -> None:
    assert (await look(comfyui, {}, {**EMPTY, "queue_running": [item("j1")]})).status is UpdateStatus.RUNNING


async def test_a_graph_that_ends_between_the_two_looks_is_found(comfyui: Asker) -> None:
    done = {"j1": entry("success", images=[file("a.png")])}
    assert (await look(comfyui, {}, EMPTY, done)).status is UpdateStatus.SUCCEEDED


async def test_a_graph_that_is_nowhere_says_nothing(comfyui: Asker) -> None:
    with pytest.raises(ProviderError, match="any more"):
        await look(comfyui, {}, EMPTY, {})


async def test_pictures_are_files_and_previews_are_none(comfyui: Asker) -> None:
    events = (("execution_start", {"timestamp": 1_000}), ("execution_success", {"timestamp": 4_500}))
    images = [file("a b.png"), file("p.png", "temp"), file("c.png", folder="x/y"), {"type": "output"}]
    update = await look(comfyui, {"j1": entry("success", *events, images=images)})
    base = comfyui.upstream.base_url
    assert urls_of(update) == [
        f"{base}/view?filename=a+b.png&subfolder=&type=output",
        f"{base}/view?filename=c.png&subfolder=x%2Fy&type=output",
    ]
    assert (update.status, update.run_s) == (UpdateStatus.SUCCEEDED, 3.5)


@pytest.mark.parametrize(
    ("word", "events", "status"),
    [
        ("error", [("execution_error", {"exception_message": "Allocation on device 0"})], "failed"),
        ("success", [("execution_error", {"exception_message": "Allocation on device 0"})], "failed"),
        ("error", [("execution_interrupted", {})], "canceled"),
        ("pondering", [], "running"),
    ],
)
async def test_what_a_history_says_of_other_ends(
    comfyui: Asker, word: str, events: list[Any], status: str
) -> None:
    update = await look(comfyui, {"j1": entry(word, *events)})
    assert (update.status, update.outputs) == (status, ())
    if status == "failed":
        assert update.failure is not None
        assert update.failure.failure_class is FailureClass.UPSTREAM_FAULT
        assert update.excerpt == "Allocation on device 0"


@pytest.mark.parametrize(("status", "body"), [(500, b"500 Internal Server Error"), (200, HTML), (502, HTML)])
async def test_an_error_never_ends_a_graph(comfyui: Asker, status: int, body: Any) -> None:
    assert await comfyui.poll_fails(status, body) == "nothing"


@pytest.mark.parametrize(
    ("queue", "history", "status"),
    [
        ({**EMPTY, "queue_running": [item("j7")]}, {}, UpdateStatus.RUNNING),
        ({**EMPTY, "queue_pending": [item("j8", reference="t9-1"), item("j7")]}, {}, UpdateStatus.QUEUED),
        (EMPTY, {"j6": entry("success", reference="t9-1"), "j7": entry("success")}, UpdateStatus.SUCCEEDED),
        (EMPTY, {"j7": entry("error")}, UpdateStatus.FAILED),
    ],
)
async def test_a_lost_submit_is_found_by_our_reference(
    comfyui: Asker, queue: Any, history: Any, status: UpdateStatus
) -> None:
    comfyui.upstream.answers(200, queue)
    comfyui.upstream.answers(200, history)
    found = await comfyui.provider.look_up(comfyui.attempt(None))
    assert found is not None
    assert (found.provider_ref, found.status) == ("j7", status)


async def test_what_is_in_neither_place_was_not_taken(comfyui: Asker) -> None:
    comfyui.upstream.answers(200, {**EMPTY, "queue_pending": [item("j8", reference="t9-1"), [1]]})
    comfyui.upstream.answers(200, {"j6": entry("success", reference="t9-1")})
    assert await comfyui.provider.look_up(comfyui.attempt(None)) is None
    assert comfyui.upstream.asked[1].query == {"max_items": "500"}


@pytest.mark.parametrize("body", [{"message": "no route"}, {"error": {"code": 7}}, {"queue_running": []}])
@pytest.mark.parametrize("place", [0, 1])
async def test_json_of_somebody_else_proves_nothing(comfyui: Asker, body: Any, place: int) -> None:
    """A gateway that answers 200 must not make us believe that nothing was taken."""
    for answer in (EMPTY, body)[1 - place :]:
        comfyui.upstream.answers(200, answer)
    with pytest.raises(ProviderError, match="without its"):
        await comfyui.provider.look_up(comfyui.attempt(None))
    with pytest.raises(ProviderError, match="without its"):
        await comfyui.provider.cancel(comfyui.attempt())


@pytest.mark.parametrize(
    ("after", "history", "is_confirmed"),
    [
        (EMPTY, {}, True),
        ({**EMPTY, "queue_running": [item("j1")]}, {}, False),
        (EMPTY, {"j1": entry("success")}, False),
    ],
)
async def test_a_graph_that_waits_is_taken_out_unless_it_has_begun_meanwhile(
    comfyui: Asker, after: Any, history: Any, is_confirmed: bool
) -> None:
    for answer in ({**EMPTY, "queue_pending": [item("j1")]}, b"", after, history):
        comfyui.upstream.answers(200, answer)
    assert await comfyui.provider.cancel(comfyui.attempt()) is is_confirmed
    asked = comfyui.upstream.asked[1]
    assert (asked.method, asked.path, asked.body) == ("POST", "/queue", {"delete": ["j1"]})


async def test_a_graph_that_runs_is_interrupted_and_the_next_look_tells(comfyui: Asker) -> None:
    comfyui.upstream.answers(200, {**EMPTY, "queue_running": [item("j1")]})
    comfyui.upstream.answers(200)
    assert await comfyui.provider.cancel(comfyui.attempt()) is False
    asked = comfyui.upstream.asked[1]
    assert (asked.path, json.loads(asked.raw)) == ("/interrupt", {"prompt_id": "j1"})


async def test_another_graph_that_runs_is_not_interrupted(comfyui: Asker) -> None:
    comfyui.upstream.answers(200, {**EMPTY, "queue_running": [item("j0")]})
    assert await comfyui.provider.cancel(comfyui.attempt()) is False
    assert [asked.path for asked in comfyui.upstream.asked] == ["/queue"]
