"""Tasks as customers see them: three words, no inner state, nothing of any upstream."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from safelight.assets.signing import UrlSigner, Variant
from safelight.db.views import EventView, TaskView
from safelight.domain.failure import Failure, FailureClass
from safelight.domain.task import STAGES, UPSTREAM, State, is_terminal, public_stage, public_status
from safelight.settings import Settings

_HOST = re.compile(r"([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_OWN_MACHINE = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True, slots=True)
class Links:
    """Makes download addresses below `base`, each good for `life_s` seconds."""

    base: str
    signer: UrlSigner
    life_s: int

    def to(self, account_id: UUID, asset_id: str, variant: Variant) -> str:
        """The signed address of an asset or of its thumbnail."""
        expires_at = int(time.time()) + self.life_s
        query = self.signer.sign(
            UUID(asset_id), account_id=account_id, variant=variant, expires_at=expires_at
        )
        end = "/thumbnail" if variant == "thumbnail" else ""
        return f"{self.base}/v1/assets/{asset_id}{end}?{query}"


def base_of(request: Request, settings: Settings) -> str:
    """Our own address: the configured one, else the one that the caller has really reached.

    A Host header is its sender's word, and what we sign below it may travel on: it is taken only where it names the
    caller's own machine, the address at which this connection came in, or the one that we listen on by name.
    """
    if settings.public_url:
        return settings.public_url.rstrip("/")
    reached, port = request.scope.get("server") or ("localhost", 80)
    given = _HOST.fullmatch(request.headers.get("host", ""))
    own = (*_OWN_MACHINE, _bracketed(reached), _bracketed(settings.host))
    host = given[0] if given and given[1].lower() in own else f"{_bracketed(reached)}:{port}"
    return f"{request.scope['scheme']}://{host}"


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def task_json(task: TaskView, links: Links) -> dict[str, Any]:
    """The one public shape of a task."""
    return {
        "id": str(task.id),
        "status": public_status(task.state),
        "model": task.model,
        "operation": task.operation,
        "prompt": task.prompt,
        "n": task.n,
        "progress": progress_json(task),
        "assets": [_asset_json(asset, task.account_id, links) for asset in task.assets],
        "failure": _failure(task),
        "credits": credits_json(task),
        "metadata": task.metadata,
        "created_at": time_text(task.created_at),
        "finished_at": time_text(task.finished_at) if task.finished_at else None,
        "erased_at": time_text(task.erased_at) if task.erased_at else None,
    }


def timeline_json(events: Iterable[EventView]) -> list[dict[str, str]]:
    """Stages and when they began; moves that a customer cannot see are left out."""
    stages: list[dict[str, str]] = []
    for event in events:
        stage = public_stage(event.target)
        if not stages or STAGES.index(stages[-1]["stage"]) < STAGES.index(stage):
            stages.append({"stage": stage, "at": time_text(event.created_at)})
    return stages


def states_of(status: str) -> list[State]:
    """The inner states behind a public word; empty if it is none."""
    return [state for state in State if public_status(state) == status]


def time_text(moment: datetime) -> str:
    """A time as all answers write it: RFC 3339, UTC."""
    return moment.isoformat().replace("+00:00", "Z")


def json_answer(document: Any, status: int = 200, *, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON answer; prompts are written as they are."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    return Response(text.encode(), status, headers, "application/json")


def credits_json(task: TaskView) -> dict[str, int]:
    """What the task holds, or what became of that."""
    return {
        "held": 0 if is_terminal(task.state) else task.held,
        "captured": task.captured or 0,
        "released": task.released or 0,
    }


def progress_json(task: TaskView) -> dict[str, Any]:
    """Hints for a progress bar."""
    # The furthest stage that was shown, which a task from before this was kept has not.
    stage = max(task.stage, STAGES.index(public_stage(task.state, task.review_reason)))
    progress: dict[str, Any] = {"stage": STAGES[stage]}
    if task.percent is not None and not is_terminal(task.state):
        progress["percent"] = task.percent
    if task.position is not None and task.state in UPSTREAM:
        progress["position"] = task.position
    return progress


def _failure(task: TaskView) -> dict[str, Any] | None:
    if task.failure_class is None or task.failure_code is None:
        return None
    failure = Failure(FailureClass(task.failure_class), task.failure_code)
    return {
        "class": failure.failure_class,
        "code": failure.code,
        "message": failure.message,
        "retryable": failure.is_retryable_by_customer,
    }


def _asset_json(asset: dict[str, Any], account_id: UUID, links: Links) -> dict[str, Any]:
    asset_id = asset["id"]
    return {
        "id": asset_id,
        "url": links.to(account_id, asset_id, "original"),
        "thumbnail_url": links.to(account_id, asset_id, "thumbnail"),
        "content_type": asset["content_type"],
        "width": asset["width"],
        "height": asset["height"],
        "bytes": asset["bytes"],
        "sha256": asset["sha256"],
    }
