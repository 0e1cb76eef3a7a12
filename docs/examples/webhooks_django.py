"""A receiver of webhooks in Django: prove, remember, answer; work later. Put `receive` into your urls.py."""

from __future__ import annotations

import os
from queue import SimpleQueue
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.views.decorators.csrf import csrf_exempt

from safelight import verify_webhook
from safelight.client import WebhookEvent, WebhookRejected

seen: set[str] = set()
"""In earnest a model with a unique field: ids must survive a restart."""
to_do: SimpleQueue[WebhookEvent] = SimpleQueue()
"""In earnest the queue that your workers read."""


def receive(request: HttpRequest) -> Any:
    """Verify the raw bytes before anything is parsed; an id that came before is only answered."""
    secrets = os.environ["SAFELIGHT_WEBHOOK_SECRETS"].split(",")
    try:
        event = verify_webhook(request.headers, request.body, secrets)
    except WebhookRejected:
        return HttpResponseBadRequest()
    if event.id not in seen:
        seen.add(event.id)
        to_do.put(event)
    return HttpResponse(status=204)


# The signature proves the sender; a form's token has no part in this. Written as a call, so that it keeps its type.
receive = csrf_exempt(receive)
