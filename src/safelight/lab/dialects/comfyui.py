"""ComfyUI: graphs in a line, a history by id, pictures uploaded first and found by file name."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from safelight.lab.dialects import keys
from safelight.lab.job import Job
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.reply import Ending, Reply, Way
from safelight.lab.speech.routes import Route
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

CREDENTIALS = {"api_key": keys.api_key("comfyui")}
CHECKPOINTS = ("sd_xl_base_1.0.safetensors", "v1-5-pruned-emaonly.safetensors")
SAMPLERS = ("euler", "euler_ancestral", "heun", "dpmpp_2m", "ddim")
SCHEDULERS = ("normal", "karras", "simple")
# What each node takes: plain values by their type, links by the type of what they lead to.
NODES: Mapping[str, Mapping[str, Any]] = {
    "CheckpointLoaderSimple": {"ckpt_name": CHECKPOINTS},
    "CLIPTextEncode": {"text": str, "clip": "link"},
    "EmptyLatentImage": {"width": int, "height": int, "batch_size": int},
    "LoadImage": {"image": "picture"},
    "LoadImageMask": {"image": "picture", "channel": ("alpha", "red", "green", "blue")},
    "RepeatLatentBatch": {"samples": "link", "amount": int},
    "VAEEncode": {"pixels": "link", "vae": "link"},
    "VAEEncodeForInpaint": {"pixels": "link", "vae": "link", "mask": "link", "grow_mask_by": int},
    "KSampler": {
        "model": "link",
        "positive": "link",
        "negative": "link",
        "latent_image": "link",
        "seed": int,
        "steps": int,
        "cfg": (int, float),
        "sampler_name": SAMPLERS,
        "scheduler": SCHEDULERS,
        "denoise": (int, float),
    },
    "VAEDecode": {"samples": "link", "vae": "link"},
    "SaveImage": {"images": "link", "filename_prefix": str},
}


def _refusal(name: str, kind: str, message: str, *, nodes: Any = ()) -> Way:
    error = {"type": kind, "message": message, "details": "", "extra_info": {}}
    return Way(name, Reply(400, {"error": error, "node_errors": dict(nodes)}))


REFUSALS = {
    "invalid_request": (
        _refusal("validation", "prompt_outputs_failed_validation", "Prompt outputs failed validation"),
        _refusal("no_prompt", "no_prompt", "No prompt provided"),
        _refusal("no_outputs", "prompt_no_outputs", "Prompt has no outputs"),
        _refusal("node_type", "invalid_prompt", "Cannot execute because a node has no such type"),
    ),
    # A proxy in front of it; ComfyUI itself asks for no key.
    "credentials": (
        Way("proxy", Reply(401, "<html>401 Authorization Required</html>", content_type="text/html")),
        Way("forbidden", Reply(403, {"message": "this key may not come here"})),
    ),
    "upstream_fault": (Way("aiohttp", Reply(500, "500 Internal Server Error", content_type="text/plain")),),
    "not_found": (Way("empty", Reply(200, {})),),
}
ENDINGS = {
    "failed": (
        Ending("error", {"type": "RuntimeError", "message": "mat1 and mat2 shapes cannot be multiplied"}),
        Ending("out_of_memory", {"type": "torch.OutOfMemoryError", "message": "Allocation on device 0"}),
    ),
}


class ComfyUi(Dialect):
    """One ComfyUI server."""

    name = "comfyui"
    shape = "poll"
    features = Features(
        is_open=True,
        reasons=True,
        edit=True,
        mask=True,
        keeps_size=True,
        look_up=True,
        cancel=True,
        position=True,
        run_time=True,
        reference="extra_data",
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", "/upload/image", "other", "upload"),
        Route("POST", "/prompt", "submit", "read"),
        Route("GET", "/history/{id}", "poll", "history"),
        Route("GET", "/history", "other", "histories"),
        Route("GET", "/queue", "poll", "queue"),
        Route("POST", "/queue", "cancel", "delete"),
        Route("POST", "/interrupt", "cancel", "interrupt"),
        Route("GET", "/view", "result", "show", is_open=True),
    )
    refusals = REFUSALS
    endings = ENDINGS

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self._stored: dict[str, Picture] = {}

    async def authenticate(self, call: Call) -> None:
        """The key of a proxy; without one the server is open."""
        given = call.headers.get("Authorization")
        if given is not None and given != f"Bearer {self.credentials['api_key']}":
            raise self.refused("credentials")

    def fault(self, fault: Fault) -> Reply:
        """A node error, or a graph that is none."""
        error = {
            "type": "prompt_outputs_failed_validation",
            "message": "Prompt outputs failed validation",
            "details": f"{fault.name}: {fault.message}",
            "extra_info": {},
        }
        node = str(fault.path[1]) if len(fault.path) > 1 else "0"
        detail = {"type": f"invalid_{fault.kind}", "message": fault.message, "details": fault.name}
        return Reply(400, {"error": error, "node_errors": {node: {"errors": [detail]}}})

    async def upload(self, call: Call) -> Reply:
        """POST /upload/image: kept under its name; the same name again needs `overwrite`."""
        fields, parts = call.form()
        fields.choice("type", ("input", "temp", "output"), "input")
        folder = fields.text("subfolder", "")
        is_overwritten = fields.choice("overwrite", ("true", "1", "false"), "false") != "false"
        fields.close()
        if len(parts) != 1 or parts[0].name != "image":
            return Reply(400)
        picture = await self.workshop.inputs.check(parts[0].data, ("image",))
        name = str(parts[0].file_name)
        known = self._stored.get(name)
        if known is not None and known.sha256 != picture.sha256 and not is_overwritten:
            name = f"{uuid4().hex[:4]} ({name})"
        self._stored[name] = picture
        return Reply(200, {"name": name, "subfolder": folder, "type": "input"})

    async def read(self, call: Call) -> Submit:
        """POST /prompt: a graph in API format."""
        fields = call.fields()
        graph = fields.inner("prompt")
        fields.text("client_id", None)
        extra = fields.raw("extra_data", {})
        chosen = fields.text("prompt_id", None)
        fields.flag("front", False)
        fields.number("number", 0)
        fields.close()
        nodes = _nodes_of(graph, fields.raw("prompt"), self._stored)
        return self._submit(nodes, extra if isinstance(extra, dict) else {}, chosen)

    def accepted(self, call: Call, view: View) -> Reply:
        """The id, and the number in the line."""
        return Reply(200, {"prompt_id": view.job.id, "number": view.job.place, "node_errors": {}})

    async def history(self, call: Call) -> Reply:
        """GET /history/{id}: empty until the graph has ended, and for ids that it does not know."""
        job = self.workshop.books.jobs.get(call.at["id"])
        if job is None or job.dialect != self.name:
            return Reply(200, {})
        view = self.look(job)
        is_there = not view.is_open or view.phase == "unknown"
        return Reply(200, {job.id: self.record(view)} if is_there else {})

    async def histories(self, call: Call) -> Reply:
        """GET /history: the latest that have ended."""
        query = Fields(call.query, ("query",), is_text=True)
        most = query.whole("max_items", 10_000, low=1)
        query.close()
        views = [self.view(job) for job in self.jobs() if job.finished_at is not None]
        return Reply(200, {view.job.id: self.record(view) for view in views[-most:]})

    async def queue(self, call: Call) -> Reply:
        """GET /queue: what runs and what waits, as tuples."""
        call.only_query(())
        views = [self.view(job) for job in self.jobs() if job.finished_at is None]
        return Reply(
            200,
            {
                "queue_running": [_item(view.job) for view in views if view.phase != "queued"],
                "queue_pending": [_item(view.job) for view in views if view.phase == "queued"],
            },
        )

    async def delete(self, call: Call) -> Reply:
        """POST /queue: takes waiting graphs out; running ones stay."""
        fields = call.fields()
        wanted = fields.many("delete", [])
        fields.flag("clear", False)
        fields.close()
        for job in [job for job in self.jobs() if job.id in wanted and job.status == "queued"]:
            await self.cancel(job)
        return Reply(200)

    async def interrupt(self, call: Call) -> Reply:
        """POST /interrupt: the running graph, if it is the named one."""
        named = Fields(call.json() if call.body else {}).text("prompt_id", None)
        for job in [job for job in self.jobs() if job.status == "running" and named in (None, job.id)]:
            await self.cancel(job)
        return Reply(200)

    async def show(self, call: Call) -> Reply:
        """GET /view: the bytes behind a file name."""
        call.only_query(("filename", "subfolder", "type", "channel", "preview"))
        stem, _, number = call.query.get("filename", "").removesuffix("_.png").rpartition("_")
        job = self.workshop.books.jobs.get(stem.removeprefix("safelight_"))
        if job is None or call.query.get("type") != "output" or not number.isdecimal():
            return Reply(404)
        pictures = await self.pictures(job)
        index = int(number)
        return Reply(200, pictures[index], content_type="image/png") if index < len(pictures) else Reply(404)

    def record(self, view: View) -> Any:
        """The history's entry."""
        job = view.job
        outputs = [
            {"filename": f"safelight_{job.id}_{index:05}_.png", "subfolder": "", "type": "output"}
            for index in range(len(view.urls))
        ]
        is_good = view.phase == "done"
        return {
            "prompt": _item(job),
            # Node 4 shows a preview, as graphs of people do: it is not a result.
            "outputs": {"9": {"images": outputs}, "4": {"images": [_preview(job)]}} if is_good else {},
            "status": {
                "status_str": "success" if is_good else view.word({"failed": "error", "unknown": "dreaming"}),
                "completed": is_good,
                "messages": _messages(view),
            },
        }

    def _submit(
        self, nodes: Mapping[str, Mapping[str, Any]], extra: Mapping[str, Any], chosen: Any
    ) -> Submit:
        sampler = _only(nodes, "KSampler")
        positive = nodes[sampler["positive"][0]]["inputs"]["text"]
        latent, count = nodes[sampler["latent_image"][0]], 1
        if latent["class_type"] == "RepeatLatentBatch":
            latent, count = nodes[latent["inputs"]["samples"][0]], latent["inputs"]["amount"]
        loaded = [node["inputs"]["image"] for node in nodes.values() if node["class_type"] == "LoadImage"]
        masks = [node["inputs"]["image"] for node in nodes.values() if node["class_type"] == "LoadImageMask"]
        size = latent["inputs"] if latent["class_type"] == "EmptyLatentImage" else {}
        picture = self._stored[loaded[0]] if loaded else None
        return Submit(
            shape="poll",
            prompt=positive,
            n=size.get("batch_size", 1) * count,
            width=size.get("width", picture.width if picture else 1024),
            height=size.get("height", picture.height if picture else 1024),
            reference=str(extra.get("safelight_reference") or chosen or ""),
            id=chosen or str(uuid4()),
            model=_only(nodes, "CheckpointLoaderSimple")["ckpt_name"],
            operation="edit" if loaded else "generate",
            inputs=tuple(self._stored[name].sha256 for name in loaded),
            mask=self._stored[masks[0]].sha256 if masks else None,
            details={"extra": dict(extra), "seed": sampler["seed"], "denoise": sampler["denoise"]},
        )


def _nodes_of(graph: Fields, nodes: Any, stored: Mapping[str, Picture]) -> Mapping[str, Mapping[str, Any]]:
    """Every node checked: its type, its inputs, and that its links lead to a node."""
    for number in nodes:
        node = graph.inner(number)
        kind = node.choice("class_type", tuple(NODES))
        inputs = node.inner("inputs")
        for name, wanted in NODES[kind].items():
            _check_input(inputs, name, wanted, nodes, stored)
        inputs.close()
        node.raw("_meta", None)
        node.close()
    if not any(node["class_type"] == "SaveImage" for node in nodes.values()):
        raise Fault("missing", ("prompt",), "has no outputs")
    for kind in ("KSampler", "CheckpointLoaderSimple"):
        _only(nodes, kind)
    return dict(nodes)


def _check_input(
    inputs: Fields, name: str, wanted: Any, nodes: Mapping[str, Any], stored: Mapping[str, Picture]
) -> None:
    value = inputs.raw(name)
    if wanted == "link":
        is_link = isinstance(value, list) and len(value) == 2 and value[0] in nodes
        if not is_link or not isinstance(value[1], int):
            raise inputs.fault("value", name, "must be a link to a node of the graph")
    elif wanted == "picture":
        if value not in stored:
            raise inputs.fault("picture", name, "Invalid image file")
    elif isinstance(wanted, tuple) and isinstance(wanted[0], str):
        inputs.choice(name, wanted)
    elif not isinstance(value, wanted) or isinstance(value, bool):
        raise inputs.fault("type", name, "has the wrong type")


def _only(nodes: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    found = [node["inputs"] for node in nodes.values() if node["class_type"] == kind]
    if not found:
        raise Fault("missing", ("prompt",), f"has no {kind}")
    inputs: Mapping[str, Any] = found[0]
    return inputs


def _item(job: Job) -> list[Any]:
    """A member of the queue: number, id, graph, extra data, outputs to execute."""
    return [job.place, job.id, {}, job.details["extra"], ["9"]]


def _preview(job: Job) -> dict[str, str]:
    return {"filename": f"ComfyUI_temp_{job.id}_00001_.png", "subfolder": "", "type": "temp"}


def _messages(view: View) -> list[Any]:
    job = view.job
    started, ended = int(job.starts_at * 1000), int((job.finished_at or time.time()) * 1000)
    first = ["execution_start", {"prompt_id": job.id, "timestamp": started}]
    last: dict[str, Any] = {"prompt_id": job.id, "timestamp": ended}
    if view.is_open:
        return [first]
    if view.phase == "done":
        return [first, ["execution_success", last]]
    if view.phase == "canceled":
        return [first, ["execution_interrupted", last]]
    error = {"exception_type": view.told("type", ""), "exception_message": view.told("message", "")}
    return [first, ["execution_error", last | error]]


DIALECT = ComfyUi
