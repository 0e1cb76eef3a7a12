"""A receiver of webhooks in Flask: prove, remember, answer; work later."""

from __future__ import annotations

import os
from queue import SimpleQueue

from flask import Flask, abort, request

from safelight import verify_webhook
from safelight.client import WebhookEvent, WebhookRejected

app = Flask(__name__)
seen: set[str] = set()
"""In earnest a table with a unique column: ids must survive a restart."""
to_do: SimpleQueue[WebhookEvent] = SimpleQueue()
"""In earnest the queue that your workers read."""


@app.post("/hooks/safelight")
def receive() -> tuple[str, int]:
    """Verify the raw bytes before anything is parsed; an id that came before is only answered."""
    secrets = os.environ["SAFELIGHT_WEBHOOK_SECRETS"].split(",")
    try:
        event = verify_webhook(dict(request.headers), request.get_data(), secrets)
    except WebhookRejected:
        abort(400)
    if event.id not in seen:
        seen.add(event.id)
        to_do.put(event)
    return "", 204
