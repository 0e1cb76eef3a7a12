"""A job: what the lab accepted, how far it is, and its lines in the ledger."""

import asyncio
import base64
import os
from dataclasses import dataclass, field
from typing import Any, Self

from safelight.lab.fate import Fate
from safelight.lab.submits import Submit

QUEUE_SHARE, QUEUE_MOST_S = 0.1, 1.0
_PREFIX = {"sync": "syn_", "poll": "pol_", "callback": "cal_"}


@dataclass(slots=True, eq=False)
class Job:
    """One accepted submit; a job is open until `finished_at` is set."""

    id: str
    shape: str
    prompt: str
    n: int
    width: int
    height: int
    reference: str
    callback_url: str | None
    created_at: float
    fate: Fate
    key: str | None = None
    fingerprint: str = ""
    dialect: str = ""
    model: str = ""
    operation: str = ""
    format: str = "png"
    inputs: tuple[str, ...] = ()
    mask: str | None = None
    details: dict[str, Any] = field(default_factory=dict)
    given: Any = None
    """The body as it came, until a restart."""
    is_billed_anyway: bool = False
    status: str = "queued"
    delivered: int = 0
    cost: int = 0
    finished_at: float | None = None
    is_told: bool = False
    is_ending: bool = False
    looks: int = 0
    place: int = -1
    life: asyncio.Task[None] | None = None
    running_tried: asyncio.Event | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def line_up(self) -> str:
        """The line in which it stands, and the list in which it is found: one for each upstream."""
        return self.dialect or self.shape

    @property
    def starts_at(self) -> float:
        """When drawing begins: jobs stand in line for a tenth of their latency."""
        return self.created_at + min(QUEUE_MOST_S, QUEUE_SHARE * self.fate.latency_s)

    @property
    def ends_at(self) -> float:
        """When drawing is over."""
        return self.starts_at + self.fate.latency_s

    def accepted_line(self) -> dict[str, Any]:
        """The ledger line of the acceptance; enough to go on after a restart."""
        line: dict[str, Any] = {"event": "accepted"}
        line |= {name: getattr(self, name) for name in _KEPT}
        if self.dialect:
            line |= {name: getattr(self, name) for name in _KEPT_OF_DIALECTS}
        line["fate"] = self.fate.to_json()
        return line

    def end(self, status: str, at: float) -> None:
        """Become final."""
        self.status = status
        self.is_ending = True
        self.finished_at = at
        self.delivered = self.fate.delivered if status == "done" else 0
        is_billed_anyway = self.is_billed_anyway and status != "canceled"
        self.cost = self.n if is_billed_anyway and status != "done" else self.delivered
        self.ended.set()

    @classmethod
    def from_submit(cls, submit: Submit, fate: Fate, *, now: float, is_billed_anyway: bool = False) -> Self:
        """A fresh job, with a random id unless the submit has one; without a reference that is its id."""
        job_id = submit.id or _PREFIX[submit.shape] + _random_id()
        return cls(
            id=job_id,
            shape=submit.shape,
            prompt=submit.prompt,
            n=submit.n,
            width=submit.width,
            height=submit.height,
            reference=submit.reference or job_id,
            callback_url=submit.callback_url,
            created_at=now,
            fate=fate,
            key=submit.key,
            fingerprint=submit.fingerprint,
            dialect=submit.dialect,
            model=submit.model,
            operation=submit.operation,
            format=submit.format,
            inputs=tuple(submit.inputs),
            mask=submit.mask,
            details=submit.details,
            given=submit.given,
            is_billed_anyway=is_billed_anyway,
        )

    @classmethod
    def from_line(cls, line: dict[str, Any]) -> Self:
        """The job as its accepted line tells it."""
        kept = {name: line[name] for name in (*_KEPT, *_KEPT_OF_DIALECTS) if name in line}
        if "inputs" in kept:
            kept["inputs"] = tuple(kept["inputs"])
        return cls(fate=Fate.from_json(line["fate"]), **kept)


def _random_id() -> str:
    return base64.b64encode(os.urandom(15), b"Az").decode()


_KEPT = (
    "id",
    "shape",
    "prompt",
    "n",
    "width",
    "height",
    "reference",
    "callback_url",
    "created_at",
    "key",
    "fingerprint",
)
_KEPT_OF_DIALECTS = (
    "dialect",
    "model",
    "operation",
    "format",
    "inputs",
    "mask",
    "details",
    "is_billed_anyway",
)
