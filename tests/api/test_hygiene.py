"""What every answer has in common: headers, problem documents, and no word that leaks."""

from __future__ import annotations

import dataclasses
import re
from unittest.mock import patch

import asyncpg
import pytest
import structlog.testing

from safelight.api.app import create_app
from safelight.api.parts import ApiParts
from safelight.db import views
from tests.api.door import Door, FakeReceive, running_door
from tests.api.test_admin_auth import ROUTES as ADMIN_ROUTES

PROBLEM_KEYS = {"type", "title", "status", "detail", "code", "request_id"}

_ENDPOINT = "/v1/webhook-endpoints/{id}"
WEBHOOK_ROUTES = {
    ("POST", "/v1/webhook-endpoints"),
    ("GET", "/v1/webhook-endpoints"),
    ("GET", _ENDPOINT),
    ("PATCH", _ENDPOINT),
    ("DELETE", _ENDPOINT),
    ("POST", f"{_ENDPOINT}/rotate"),
    ("POST", f"{_ENDPOINT}/enable"),
    ("POST", f"{_ENDPOINT}/test"),
    ("POST", f"{_ENDPOINT}/recover"),
    ("GET", f"{_ENDPOINT}/deliveries"),
    ("GET", f"{_ENDPOINT}/deliveries/{{delivery}}"),
    ("POST", f"{_ENDPOINT}/deliveries/{{delivery}}/redeliver"),
    ("GET", "/v1/balance/threshold"),
    ("PUT", "/v1/balance/threshold"),
}


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/v1/balance", 200),
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1/tasks/", 404),
        ("GET", "/docs", 404),
        ("GET", "/redoc", 404),
        ("DELETE", "/v1/tasks", 405),
        ("POST", "/v1/tasks", 415),
        ("GET", "/v1/tasks?limit=x", 422),
        ("POST", "/callbacks/studio/t", 202),
    ],
)
async def test_every_answer_has_an_id_and_safe_headers(
    door: Door, method: str, path: str, status: int
) -> None:
    answer = await door.request(method, path)
    assert answer.status == status
    assert re.fullmatch(r"[0-9a-f]{16}", answer.headers["X-Request-Id"])
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert "frame-ancestors 'none'" in answer.headers["Content-Security-Policy"]
    assert "Access-Control-Allow-Origin" not in answer.headers
    if status >= 400:
        problem = answer.json
        assert problem.keys() - {"errors"} == PROBLEM_KEYS
        assert problem["status"] == status
        assert problem["type"] == f"urn:safelight:problem:{answer.code}"
        assert problem["request_id"] == answer.headers["X-Request-Id"]


async def test_a_wrong_method_is_told_every_right_one(door: Door) -> None:
    assert (await door.ask("DELETE", "/v1/tasks")).headers["Allow"] == "GET, POST"
    assert (await door.ask("PUT", "/v1/assets/x")).headers["Allow"] == "GET, HEAD"


async def test_an_error_of_ours_says_nothing_and_is_logged_without_its_text(door: Door) -> None:
    secret = asyncpg.UniqueViolationError("Key (prompt)=(a secret prompt) already exists")
    with patch.object(views, "balance", side_effect=secret), structlog.testing.capture_logs() as logs:
        answer = await door.request("GET", "/v1/balance")
    assert (answer.status, answer.code) == (500, "internal")
    assert b"secret" not in answer.body
    (line,) = [line for line in logs if line["event"] == "request_failed"]
    assert line["request_id"] == answer.json["request_id"]
    assert (line["error"], line["route"]) == ("UniqueViolationError", "/v1/balance")
    assert "secret" not in str(line)


async def test_a_database_that_is_away_is_a_reason_to_come_back(door: Door) -> None:
    with patch.object(views, "balance", side_effect=asyncpg.CannotConnectNowError("starting up")):
        answer = await door.request("GET", "/v1/balance")
    assert (answer.status, answer.code, answer.headers["Retry-After"]) == (503, "unavailable", "2")


async def test_a_callback_that_finds_the_database_away_is_sent_again(
    door: Door, receive: FakeReceive
) -> None:
    receive.rejection = ConnectionRefusedError()
    assert (await door.ask("POST", "/callbacks/studio/t", data=b"{}")).status == 503


async def test_readiness_follows_the_database(parts: ApiParts) -> None:
    answers: list[bool | Exception] = [True, False, ConnectionRefusedError()]

    async def is_ready() -> bool:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    async with running_door(dataclasses.replace(parts, is_ready=is_ready)) as door:
        assert [(await door.ask("GET", "/readyz")).status for _ in range(3)] == [200, 503, 503]


async def test_metrics_count_open_tasks_by_state(door: Door) -> None:
    await door.submit({"prompt": "x"})
    answer = await door.ask("GET", "/metrics")
    assert answer.headers["Content-Type"].startswith("text/plain")
    assert re.search(r'^safelight_open_tasks\{state="queued"\} [1-9]', answer.body.decode(), re.MULTILINE)
    assert 'state="review"' in answer.body.decode()


async def test_the_document_describes_every_route_and_its_answers(parts: ApiParts) -> None:
    document = create_app(parts).openapi()
    assert {(method.upper(), path) for path, methods in document["paths"].items() for method in methods} == {
        ("POST", "/v1/tasks"),
        ("GET", "/v1/tasks"),
        ("GET", "/v1/tasks/{id}"),
        ("POST", "/v1/tasks/{id}/cancel"),
        ("POST", "/v1/tasks/{id}/erase"),
        ("GET", "/v1/assets/{id}"),
        ("GET", "/v1/assets/{id}/thumbnail"),
        ("POST", "/v1/uploads"),
        ("GET", "/v1/uploads/{id}"),
        ("GET", "/inputs/{token}"),
        ("POST", "/v1/images/generations"),
        ("POST", "/v1/images/generations/async"),
        ("POST", "/v1/images/edits"),
        ("POST", "/v1/images/edits/async"),
        ("GET", "/v1/images/tasks/{id}"),
        ("GET", "/v1/models"),
        ("POST", "/v1/session"),
        ("GET", "/v1/session"),
        ("DELETE", "/v1/session"),
        ("GET", "/v1/balance"),
        ("GET", "/v1/entries"),
        ("POST", "/v1/batches"),
        ("GET", "/v1/batches"),
        ("GET", "/v1/batches/{id}"),
        ("GET", "/v1/batches/{id}/results"),
        ("POST", "/v1/batches/{id}/cancel"),
        ("GET", "/v1/events"),
        ("GET", "/v1/tasks/{id}/events"),
        ("POST", "/v1/event-tickets"),
        ("POST", "/callbacks/{provider}"),
        ("POST", "/callbacks/{provider}/{token}"),
        ("GET", "/healthz"),
        ("GET", "/readyz"),
        ("GET", "/metrics"),
        *WEBHOOK_ROUTES,
        ("POST", "/admin/session"),
        ("GET", "/admin/session"),
        ("DELETE", "/admin/session"),
        *ADMIN_ROUTES,
    }
    submit = document["paths"]["/v1/tasks"]["post"]
    assert set(submit["responses"]) == {
        "202", "400", "401", "402", "404", "408", "409", "413", "415", "422", "429", "500", "503",
    }  # fmt: skip
    schemas = document["components"]["schemas"]
    assert schemas["TaskBody"]["additionalProperties"] is False
    references = set(re.findall(r"#/components/schemas/(\w+)", str(document)))
    assert references - schemas.keys() == set()


async def test_the_document_is_served_and_names_no_foreign_host(door: Door) -> None:
    answer = await door.ask("GET", "/openapi.json")
    assert answer.status == 200
    assert b"http" not in answer.body.replace(b'"http"', b"").replace(b"https or data", b"")
