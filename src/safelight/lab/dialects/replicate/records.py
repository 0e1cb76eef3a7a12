"""Replicate's record: what of it depends on the model and on the time."""

from __future__ import annotations

import time
from typing import Any

from safelight.lab.dialects.replicate.endpoints import MODELS
from safelight.lab.job import Job
from safelight.lab.speech.view import View

LIFE_S = 3600.0


def output_of(view: View) -> Any:
    """A list of addresses or one address by itself, as the model likes."""
    if view.phase != "done":
        return None
    if MODELS[view.job.model].gives_list or view.job.fate.variant == "all_files":
        return list(view.urls)
    return view.urls[0] if view.urls else None


def logs_of(view: View) -> str:
    """Progress is nowhere but here, as a bar."""
    if view.phase == "queued":
        return ""
    done = view.progress // 10
    return f"Using seed: 42\n{view.progress:3d}%|{'█' * done}{' ' * (10 - done)}| {done}/10 [00:01<00:00]\n"


def is_removed(job: Job) -> bool:
    """An hour after the end nothing of it is left but the record."""
    if job.finished_at is None:
        return False
    return job.fate.variant == "data_removed" or time.time() >= job.finished_at + LIFE_S
