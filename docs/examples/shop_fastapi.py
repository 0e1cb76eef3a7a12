"""A shop's backend in FastAPI: an order's picture is asked for once, however often the order is sent."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import Body, Depends, FastAPI, HTTPException, Request, Response

from safelight import AsyncClient
from safelight.client import ApiError


@contextlib.asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    """One client for the whole life of the process: it keeps its connections."""
    async with AsyncClient(os.environ["SAFELIGHT_URL"], os.environ["SAFELIGHT_API_KEY"]) as client:
        app.state.safelight = client
        yield


app = FastAPI(lifespan=lifespan)


def safelight(request: Request) -> AsyncClient:
    """The client of this process."""
    client: AsyncClient = request.app.state.safelight
    return client


Safelight = Annotated[AsyncClient, Depends(safelight)]


@app.post("/orders/{order}/picture", status_code=202)
async def ask(order: str, prompt: Annotated[str, Body(embed=True)], client: Safelight) -> dict[str, str]:
    """The order's number is the key: after a crash, a double click or a lost answer it is the same task."""
    try:
        receipt = await client.create(prompt, idempotency_key=f"order-{order}", size="64x64")
    except ApiError as error:
        raise HTTPException(error.status, error.detail) from None
    return {"task": receipt.id}


@app.get("/pictures/{task_id}")
async def picture(task_id: str, client: Safelight) -> Response:
    """The picture, or 202 while it is drawn."""
    try:
        task = await client.get(task_id)
    except ApiError as error:
        raise HTTPException(error.status, error.detail) from None
    if task.failure is not None:
        raise HTTPException(410, task.failure.message)
    if not task.assets:
        return Response(status_code=202)
    return Response(await client.download(task.assets[0]), media_type=task.assets[0].content_type)


@app.post("/live-ticket")
async def live_ticket(client: Safelight) -> dict[str, str]:
    """For `new EventSource(url)` in the page: the key itself never leaves this server."""
    ticket = await client.event_ticket()
    return {"url": f"{os.environ['SAFELIGHT_URL']}/v1/events?ticket={ticket}"}
