"""DashScope (Model Studio), asynchronous: a header that asks for it, and tasks of which a part may succeed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import uuid4

from safelight.lab.dialects import keys
from safelight.lab.dialects.dashscope.endpoints import (
    DRAWING,
    EDITING,
    OPTIONS,
    SPEAKING,
    Wish,
    read_drawing,
    read_edit,
    read_message,
)
from safelight.lab.dialects.dashscope.words import (
    ENDINGS,
    REFUSALS,
    VARIANTS,
    WORDS,
    fault_error,
    said,
    unknown,
)
from safelight.lab.job import Job
from safelight.lab.speech.call import Call
from safelight.lab.speech.dialect import Dialect
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Fields, Path
from safelight.lab.speech.inputs import Picture
from safelight.lab.speech.reply import Refused, Reply
from safelight.lab.speech.routes import Route
from safelight.lab.speech.view import View
from safelight.lab.submits import Submit

CREDENTIALS = {"api_key": keys.api_key("dashscope")}
LIFE_S = 24 * 3600.0
SERVICES = "/api/v1/services/aigc"
# Times without a zone are taken as those of its home.
ZONE = timezone(timedelta(hours=8))
STATES = frozenset(WORDS.values())


class DashScope(Dialect):
    """Wan's tasks."""

    name = "dashscope"
    shape = "poll"
    features = Features(
        edit=True,
        mask=True,
        list=True,
        cancel=True,
        confirms_cancel=True,
        waiting=True,
        reasons=True,
        partial_items=True,
        result_life_s=LIFE_S,
        is_refreshable=False,
    )
    credentials = CREDENTIALS
    routes = (
        Route("POST", f"{SERVICES}/text2image/image-synthesis", "submit", "read"),
        Route("POST", f"{SERVICES}/image2image/image-synthesis", "submit", "read_edit"),
        Route("POST", f"{SERVICES}/image-generation/generation", "submit", "read_message"),
        Route("GET", "/api/v1/tasks", "list", "list"),
        Route("GET", "/api/v1/tasks/{id}", "poll", "poll"),
        Route("POST", "/api/v1/tasks/{id}/cancel", "cancel", "stop"),
    )
    refusals = REFUSALS
    endings = ENDINGS
    options = OPTIONS
    variants = VARIANTS

    async def authenticate(self, call: Call) -> None:
        """`Authorization: Bearer …`"""
        given = call.headers.get("Authorization")
        if given is None:
            raise self.refused("credentials", "missing")
        if given.removeprefix("Bearer ") != self.credentials["api_key"]:
            raise self.refused("credentials", "wrong")

    def fault(self, fault: Fault) -> Reply:
        """A code and a text."""
        return fault_error(fault)

    def nowhere(self, call: Call) -> Reply:
        """The shape of all errors."""
        return said(404, code="InvalidURL", message="The request URL is invalid.")

    async def read(self, call: Call) -> Submit:
        """POST text2image: a prompt and its parameters."""
        fields, name = _opened(call, DRAWING)
        return _submit(name, read_drawing(fields, DRAWING[name]))

    async def read_message(self, call: Call) -> Submit:
        """POST image-generation: the newer protocol, from 2.6 on."""
        fields, name = _opened(call, SPEAKING)
        submit = _submit(name, read_message(fields, SPEAKING[name]))
        submit.details["is_message"] = True
        return submit

    async def read_edit(self, call: Call) -> Submit:
        """POST image2image: pictures by address."""
        fields, name = _opened(call, EDITING)
        return _submit(name, await read_edit(fields, name, self._look_at))

    def accepted(self, call: Call, view: View) -> Reply:
        """The id and the state."""
        return said(200, output={"task_status": "PENDING", "task_id": view.job.id})

    async def poll(self, call: Call) -> Reply:
        """GET one; what is not known is a state, too."""
        job = self._found(call)
        return unknown(call.at["id"]) if job is None else self._told(self.look(job))

    async def list(self, call: Call) -> Reply:
        """GET many, by window, model, state and page; the latest first."""
        call.only_query(
            (
                *("start_time", "end_time", "model_name", "api_key_id", "region", "status"),
                "page_no",
                "page_size",
            )
        )
        query = Fields(call.query, ("query",), is_text=True)
        size, page = query.whole("page_size", 10, low=1, high=100), query.whole("page_no", 1, low=1)
        state = query.choice("status", STATES, None)
        start, end = _time(query, "start_time"), _time(query, "end_time")
        found = [
            view
            for view in (self.view(job) for job in self.jobs()[::-1])
            if _is_inside(view.job, start, end)
            and state in {None, view.word(WORDS)}
            and query.text("model_name", view.job.model) == view.job.model
        ]
        return said(
            200,
            total=len(found),
            data=[_line(view) for view in found[(page - 1) * size : page * size]],
            total_page=-(-len(found) // size),
            page_no=page,
            page_size=size,
        )

    async def stop(self, call: Call) -> Reply:
        """POST cancel: only what is pending."""
        job = self._found(call)
        if job is not None and job.status == "queued" and await self.cancel(job):
            return said(200)
        text = "Failed to cancel the task, please confirm if the task is in PENDING status."
        return said(400, code="UnsupportedOperation", message=text)

    def record(self, view: View) -> Any:
        """The output: results that are pictures, and results that are errors."""
        job = view.job
        output: dict[str, Any] = {
            "task_id": job.id,
            "task_status": "SUSPENDED" if _is_suspended(view) else view.word(WORDS),
            "submit_time": _clock(job.created_at),
        }
        if view.phase != "queued":
            output["scheduled_time"] = _clock(job.starts_at)
        if view.is_open:
            return output | ({} if job.details.get("is_message") else {"task_metrics": _metrics(view)})
        output["end_time"] = _clock(job.finished_at or job.ends_at)
        if view.phase != "done":
            return output | {"code": view.told("code", "Canceled"), "message": view.told("message", "")}
        if job.details.get("is_message"):
            return output | {"finished": True, "choices": [_choice(url) for url in view.urls]}
        missing = {"code": "InternalError.Timeout", "message": "An internal timeout error has occurred."}
        results = [{"orig_prompt": job.prompt, "url": url} for url in view.urls]
        return output | {"results": results + [missing] * view.missing, "task_metrics": _metrics(view)}

    def new_id(self) -> str:
        """A UUID."""
        return str(uuid4())

    def _told(self, view: View) -> Reply:
        usage = {"usage": {"image_count": len(view.urls)}} if view.phase == "done" else {}
        return said(200, output=self.record(view), **usage)

    async def _look_at(self, source: object, path: Path) -> Picture:
        return await self.picture(source, path, most=10 << 20)

    def _found(self, call: Call) -> Job | None:
        job = self.workshop.books.jobs.get(call.at["id"])
        return job if job is not None and job.dialect == self.name else None


def _opened(call: Call, models: Any) -> tuple[Fields, str]:
    call.only_query(())
    if call.headers.get("X-DashScope-Async") != "enable":
        text = "current user api does not support synchronous calls."
        raise Refused(said(403, code="AccessDenied", message=text))
    fields = call.fields()
    return fields, fields.choice("model", tuple(models))


def _submit(name: str, wish: Wish) -> Submit:
    return Submit(
        shape="poll",
        prompt=wish.prompt,
        n=wish.n,
        width=wish.width,
        height=wish.height,
        model=name,
        operation="inpaint" if wish.mask else "edit" if wish.pictures else "generate",
        inputs=tuple(picture.sha256 for picture in wish.pictures),
        mask=None if wish.mask is None else wish.mask.sha256,
        details={"parameters": wish.given},
    )


def _is_suspended(view: View) -> bool:
    return view.phase == "queued" and view.job.fate.variant == "suspended"


def _metrics(view: View) -> dict[str, int]:
    failed = view.missing if view.phase == "done" else 0
    return {"TOTAL": view.job.n, "SUCCEEDED": len(view.urls), "FAILED": failed}


def _choice(url: str) -> dict[str, Any]:
    content = [{"image": url, "type": "image"}]
    return {"finish_reason": "stop", "message": {"role": "assistant", "content": content}}


def _line(view: View) -> dict[str, Any]:
    job = view.job
    return {
        "task_id": job.id,
        "status": view.word(WORDS),
        "model_name": job.model,
        "region": "cn-beijing",
        "api_key_id": "1",
        "gmt_create": int(job.created_at * 1000),
        "start_time": int(job.starts_at * 1000),
        "end_time": None if job.finished_at is None else int(job.finished_at * 1000),
    }


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, ZONE).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _time(query: Fields, name: str) -> float | None:
    text = query.text(name, None)
    try:
        moment = None if text is None else datetime.strptime(text, "%Y%m%d%H%M%S").replace(tzinfo=ZONE)
    except ValueError:
        raise query.fault("value", name, "must be like 20260420000000") from None
    return None if moment is None else moment.astimezone(UTC).timestamp()


def _is_inside(job: Job, start: float | None, end: float | None) -> bool:
    return (start is None or job.created_at >= start) and (end is None or job.created_at <= end)


DIALECT = DashScope
