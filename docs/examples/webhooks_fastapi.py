"""A receiver of webhooks in FastAPI: prove, remember, answer; work later."""

from __future__ import annotations

import os
from typing import Annotated

from fastapi import BackgroundTasks, Depends, FastAPI, HTTPException, Request

from safelight import verify_webhook
from safelight.client import WebhookEvent, WebhookRejected

app = FastAPI()
seen: set[str] = set()
"""In earnest a table with a unique column: ids must survive a restart."""
finished: list[str] = []


def secrets() -> list[str]:
    """One secret, or several with commas between them while one is rotated."""
    return os.environ["SAFELIGHT_WEBHOOK_SECRETS"].split(",")


def work(event: WebhookEvent) -> None:
    """Whatever takes time: read the task, fetch its pictures, tell the shop."""
    if event.type == "task.ready" and event.task_id:
        finished.append(event.task_id)


@app.post("/hooks/safelight", status_code=204)
async def receive(
    request: Request, later: BackgroundTasks, held: Annotated[list[str], Depends(secrets)]
) -> None:
    """Verify the raw bytes before anything is parsed; an id that came before is only answered."""
    try:
        event = verify_webhook(request.headers, await request.body(), held)
    except WebhookRejected:
        raise HTTPException(400) from None
    if event.id not in seen:
        seen.add(event.id)
        later.add_task(work, event)
