"""Webhooks on the receiver's side: what is proved is read, and nothing else is."""

from __future__ import annotations

import base64
import hmac
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from standardwebhooks.webhooks import Webhook

from safelight import verify_webhook as exported
from safelight.client import WebhookRejected, verify_webhook

OLD = "whsec_" + base64.b64encode(b"o" * 32).decode()
NEW = "whsec_" + base64.b64encode(b"n" * 32).decode()
BODY = json.dumps(
    {
        "type": "task.ready",
        "timestamp": "2026-01-01T12:00:00.5Z",
        "data": {"task_id": "0199", "assets": ["Größe"]},
    },
    ensure_ascii=False,
).encode()
NOW = 1_767_268_800


def signed(body: bytes = BODY, *secrets: str, at: int = NOW) -> dict[str, str]:
    """Headers as the official library signs."""
    signatures = [
        Webhook(secret).sign("evt_1", datetime.fromtimestamp(at, UTC), body.decode())
        for secret in secrets or (NEW,)
    ]
    return {"Webhook-Id": "evt_1", "Webhook-Timestamp": str(at), "Webhook-Signature": " ".join(signatures)}


def test_an_event_is_read_from_the_raw_bytes() -> None:
    event = verify_webhook(signed(), BODY, NEW, now=NOW)
    assert (event.id, event.type, event.task_id) == ("evt_1", "task.ready", "0199")
    assert event.timestamp == datetime(2026, 1, 1, 12, 0, 0, 500_000, tzinfo=UTC)
    assert event.data["assets"] == ["Größe"]
    assert exported is verify_webhook


@pytest.mark.parametrize(("sent", "held"), [((OLD, NEW), (OLD,)), ((OLD, NEW), (NEW,)), ((NEW,), (OLD, NEW))])
def test_any_of_several_secrets_proves_it(sent: tuple[str, ...], held: tuple[str, ...]) -> None:
    assert verify_webhook(signed(BODY, *sent), BODY, held, now=NOW).type == "task.ready"


@pytest.mark.parametrize("off_s", [-300, 300])
def test_within_five_minutes_a_call_is_taken(off_s: int) -> None:
    assert verify_webhook(signed(), BODY, NEW, now=NOW + off_s).id == "evt_1"


@pytest.mark.parametrize("off_s", [-301, 301])
def test_beyond_five_minutes_it_is_refused_though_correctly_signed(off_s: int) -> None:
    with pytest.raises(WebhookRejected, match="too old"):
        verify_webhook(signed(), BODY, NEW, now=NOW + off_s)


@pytest.mark.parametrize(
    "changed",
    [
        {"Webhook-Id": "evt_2"},
        {"Webhook-Id": ""},
        {"Webhook-Timestamp": str(NOW + 1)},
        {"Webhook-Timestamp": "soon"},
        {"Webhook-Timestamp": "٣٣"},
        {"Webhook-Signature": ""},
        {"Webhook-Signature": "v1,"},
        {"Webhook-Signature": "v1,ключ"},
        {"Webhook-Signature": "v2,AAAA"},
        {"Webhook-Signature": "v1," + "A" * 44},
    ],
)
def test_a_bent_header_is_refused(changed: dict[str, str]) -> None:
    with pytest.raises(WebhookRejected):
        verify_webhook({**signed(), **changed}, BODY, NEW, now=NOW)


def test_json_that_was_parsed_and_written_again_is_another_text() -> None:
    with pytest.raises(WebhookRejected, match="no signature"):
        verify_webhook(signed(), json.dumps(json.loads(BODY)).encode(), NEW, now=NOW)
    text: Any = BODY.decode()
    with pytest.raises(TypeError, match="raw bytes"):
        verify_webhook(signed(), text, NEW, now=NOW)


@pytest.mark.parametrize("secrets", ["", "whsec_", [], ["whsec_c2hvcnQ="], "whsec_%%%"])
def test_an_empty_or_broken_secret_is_a_mistake_and_never_a_proof(secrets: Any) -> None:
    with pytest.raises(ValueError, match="secret"):
        verify_webhook(signed(), BODY, secrets, now=NOW)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"type":"x","timestamp":"now","data":{}}', b"\xff"])
def test_a_signed_body_that_is_no_event_is_refused(body: bytes) -> None:
    proof = hmac.digest(b"n" * 32, b"evt_1.%d." % NOW + body, "sha256")
    headers = {**signed(), "Webhook-Signature": "v1," + base64.b64encode(proof).decode()}
    with pytest.raises(WebhookRejected, match="no event"):
        verify_webhook(headers, body, NEW, now=NOW)
