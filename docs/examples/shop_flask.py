"""A shop's backend in Flask: an order's picture is asked for once, however often the order is sent."""

from __future__ import annotations

import functools
import os

from flask import Flask, Response, request

from safelight import Client
from safelight.client import ApiError

app = Flask(__name__)


@functools.cache
def safelight() -> Client:
    """One client for the whole life of the process; all threads may use it."""
    return Client(os.environ["SAFELIGHT_URL"], os.environ["SAFELIGHT_API_KEY"])


@app.errorhandler(ApiError)
def refused(error: ApiError) -> tuple[dict[str, str], int]:
    """What safelight refused, in its own words."""
    return {"detail": error.detail}, error.status


@app.post("/orders/<order>/picture")
def ask(order: str) -> tuple[dict[str, str], int]:
    """The order's number is the key: after a crash, a double click or a lost answer it is the same task."""
    prompt = request.get_json()["prompt"]
    receipt = safelight().create(prompt, idempotency_key=f"order-{order}", size="64x64")
    return {"task": receipt.id}, 202


@app.get("/pictures/<task_id>")
def picture(task_id: str) -> Response:
    """The picture, or 202 while it is drawn."""
    task = safelight().get(task_id)
    if task.failure is not None:
        return Response(task.failure.message, 410)
    if not task.assets:
        return Response(status=202)
    return Response(safelight().download(task.assets[0]), mimetype=task.assets[0].content_type)
