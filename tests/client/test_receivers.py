"""The receivers of docs/examples work: they take what is proved, once, and refuse the rest."""

from __future__ import annotations

import base64
import json
import time
from datetime import UTC, datetime
from typing import Any

import django
import pytest
from django.conf import settings
from django.test import RequestFactory
from fastapi.testclient import TestClient
from standardwebhooks.webhooks import Webhook

from docs.examples import webhooks_django, webhooks_fastapi, webhooks_flask

SECRET = "whsec_" + base64.b64encode(b"s" * 32).decode()
BODY = json.dumps(
    {"type": "task.ready", "timestamp": "2026-01-01T12:00:00Z", "data": {"task_id": "0199"}}
).encode()
PATH = "/hooks/safelight"


@pytest.fixture(autouse=True)
def held_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every receiver finds its secret in its environment; one of an earlier rotation stands before it."""
    old = "whsec_" + base64.b64encode(b"o" * 32).decode()
    monkeypatch.setenv("SAFELIGHT_WEBHOOK_SECRETS", f"{old},{SECRET}")


def signed(event_id: str) -> dict[str, str]:
    """Headers of a call that is made now."""
    now = int(time.time())
    signature = Webhook(SECRET).sign(event_id, datetime.fromtimestamp(now, UTC), BODY.decode())
    return {"webhook-id": event_id, "webhook-timestamp": str(now), "webhook-signature": signature}


def test_the_receiver_in_fastapi() -> None:
    with TestClient(webhooks_fastapi.app) as client:
        answers = [client.post(PATH, content=BODY, headers=signed("evt_1")).status_code for _ in range(2)]
        forged = client.post(PATH, content=BODY + b" ", headers=signed("evt_2")).status_code
    assert (answers, forged) == ([204, 204], 400)
    assert webhooks_fastapi.finished == ["0199"]


def test_the_receiver_in_flask() -> None:
    client = webhooks_flask.app.test_client()
    answers = [client.post(PATH, data=BODY, headers=signed("evt_1")).status_code for _ in range(2)]
    forged = client.post(PATH, data=BODY + b" ", headers=signed("evt_2")).status_code
    assert (answers, forged) == ([204, 204], 400)
    assert webhooks_flask.to_do.qsize() == 1


def test_the_receiver_in_django() -> None:
    if not settings.configured:
        settings.configure(ALLOWED_HOSTS=["testserver"])
        django.setup()

    def post(body: bytes, headers: dict[str, str]) -> Any:
        request = RequestFactory().post(PATH, data=body, content_type="application/json", headers=headers)
        return webhooks_django.receive(request).status_code

    assert [post(BODY, signed("evt_1")) for _ in range(2)] == [204, 204]
    assert post(BODY + b" ", signed("evt_2")) == 400
    assert webhooks_django.to_do.qsize() == 1
