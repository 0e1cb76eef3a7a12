"""A right client of ComfyUI."""

from __future__ import annotations

from typing import Any

from tests.lab.dialects.forms import FORM_TYPE, form
from tests.lab.dialects.speaker import PROMPT, Answered, Asked, Speaker, picture

KEY = {"Authorization": "Bearer comfyui-test-api-key"}


def graph(prompt: str, n: int) -> dict[str, Any]:
    """Text to picture, as the server's own examples have it."""
    sampler = {
        "model": ["1", 0],
        "positive": ["2", 0],
        "negative": ["3", 0],
        "latent_image": ["4", 0],
        "seed": 7,
        "steps": 20,
        "cfg": 8,
        "sampler_name": "euler",
        "scheduler": "normal",
        "denoise": 1,
    }
    return {
        "1": {
            "class_type": "CheckpointLoaderSimple",
            "inputs": {"ckpt_name": "v1-5-pruned-emaonly.safetensors"},
        },
        "2": {"class_type": "CLIPTextEncode", "inputs": {"text": prompt, "clip": ["1", 1]}},
        "3": {"class_type": "CLIPTextEncode", "inputs": {"text": "blurry", "clip": ["1", 1]}},
        "4": {"class_type": "EmptyLatentImage", "inputs": {"width": 256, "height": 256, "batch_size": n}},
        "5": {"class_type": "KSampler", "inputs": sampler},
        "6": {"class_type": "VAEDecode", "inputs": {"samples": ["5", 0], "vae": ["1", 2]}},
        "7": {"class_type": "SaveImage", "inputs": {"images": ["6", 0], "filename_prefix": "lab"}},
    }


def graph_from(picture_name: str) -> dict[str, Any]:
    """Picture to picture: an uploaded picture in the place of the empty one."""
    nodes = graph(PROMPT, 1)
    nodes["4"] = {"class_type": "VAEEncode", "inputs": {"pixels": ["8", 0], "vae": ["1", 2]}}
    nodes["8"] = {"class_type": "LoadImage", "inputs": {"image": picture_name}}
    return nodes


class ComfyUiSpeaker(Speaker):
    """Puts a graph into the line and reads the history."""

    def submit(self, *, prompt: str = PROMPT, n: int = 1, callback_url: str | None = None) -> Asked:
        return Asked("POST", "/prompt", {"prompt": graph(prompt, n), "client_id": "a-client"}, headers=KEY)

    def before_edit(self) -> Asked:
        data = form({"type": "input", "overwrite": "true"}, [("image", picture())])
        return Asked("POST", "/upload/image", data=data, headers={**KEY, **FORM_TYPE})

    def edit(self, picture_url: str) -> Asked:
        name = "image.png" if picture_url.endswith("picture.png") else "missing.png"
        return Asked("POST", "/prompt", {"prompt": graph_from(name)}, headers=KEY)

    def poll(self, accepted: Any) -> Asked:
        return Asked("GET", f"/history/{accepted['prompt_id']}", headers=KEY)

    def cancel(self, accepted: Any) -> Asked:
        return Asked("POST", "/queue", {"delete": [accepted["prompt_id"]]}, headers=KEY)

    def is_final(self, polled: Answered) -> bool:
        words = {entry["status"]["status_str"] for entry in polled.body.values()}
        return bool(words & {"success", "error"})

    def pictures(self, last: Answered) -> list[str | bytes]:
        entry = next(iter(last.body.values()))
        return [
            f"/view?filename={image['filename']}&type=output" for image in entry["outputs"]["9"]["images"]
        ]


SPEAKER = ComfyUiSpeaker()
