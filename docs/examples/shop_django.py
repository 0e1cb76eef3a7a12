"""A shop's backend in Django: an order's picture is asked for once, however often the order is sent."""

from __future__ import annotations

import functools
import json
import os

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST

from safelight import Client
from safelight.client import ApiError


@functools.cache
def safelight() -> Client:
    """One client for the whole life of the process; all threads may use it."""
    return Client(os.environ["SAFELIGHT_URL"], os.environ["SAFELIGHT_API_KEY"])


def ask(request: HttpRequest, order: str) -> HttpResponse:
    """The order's number is the key: after a crash, a double click or a lost answer it is the same task."""
    prompt = json.loads(request.body)["prompt"]
    try:
        receipt = safelight().create(prompt, idempotency_key=f"order-{order}", size="64x64")
    except ApiError as error:
        return JsonResponse({"detail": error.detail}, status=error.status)
    return JsonResponse({"task": receipt.id}, status=202)


def picture(request: HttpRequest, task_id: str) -> HttpResponse:
    """The picture, or 202 while it is drawn."""
    try:
        task = safelight().get(task_id)
    except ApiError as error:
        return JsonResponse({"detail": error.detail}, status=error.status)
    if task.failure is not None:
        return HttpResponse(task.failure.message, status=410)
    if not task.assets:
        return HttpResponse(status=202)
    return HttpResponse(safelight().download(task.assets[0]), content_type=task.assets[0].content_type)


urlpatterns = [
    path("orders/<str:order>/picture", csrf_exempt(require_POST(ask))),
    path("pictures/<str:task_id>", require_GET(picture)),
]
