"""Requests made from our own OpenAPI document, good and bad: no error of ours, and every answer as it is described."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import hypothesis
import schemathesis
from hypothesis import HealthCheck, Phase
from schemathesis import GenerationMode
from schemathesis.checks import (
    content_type_conformance,
    not_a_server_error,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.core.result import Err, Ok
from structlog.testing import capture_logs

from safelight.api.app import create_app
from safelight.domain.ids import new_id
from tests.api.door import PEPPER, Door, running_door
from tests.api.operators import Operator
from tests.lifecycle.invariants import assert_books
from tests.lifecycle.upstreams import picture
from tests.proof.addresses import guarded
from tests.proof.report import LayerReport, Size
from tests.world import World, running_server, running_world

REQUESTS = {Size.CI: 300, Size.PROVE: 2_000, Size.RELEASE: 100_000}
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
NOT_READY = "/readyz"
"""Answers 503 here, and rightly: no worker runs."""


@dataclass
class Caller:
    """Who asks: a customer's key and an operator's, and ids of what there is."""

    url: str
    headers: Mapping[str, Mapping[str, str]]
    known: Mapping[str, list[str]]
    random: Random
    tried: int = 0
    refused: int = 0
    failures: dict[str, str] = field(default_factory=dict)

    def ask(self, case: Any) -> None:
        """Send one request, and hold its answer against the document."""
        ids = self.known.get(case.operation.path, [])
        if ids and self.random.random() < 0.5:
            case.path_parameters = {**(case.path_parameters or {}), "id": self.random.choice(ids)}
        key = self.headers["admin" if case.operation.path.startswith("/admin") else "customer"]
        self.tried += 1
        try:
            answer = case.call(base_url=self.url, headers=dict(key))
            self.refused += answer.status_code >= 400
            is_meant = answer.status_code == 503 and case.operation.path == NOT_READY
            case.validate_response(answer, checks=CHECKS[is_meant:])
        except (Failure, FailureGroup) as told:
            for one in told.exceptions if isinstance(told, FailureGroup) else [told]:
                name = f"{case.operation.method.upper()} {case.operation.path}: {type(one).__name__}"
                self.failures.setdefault(name, f"{str(one)[:300]!r} by {case.as_curl_command()[:300]}")


async def run(size: Size, seed: int) -> LayerReport:
    """The same number of requests for every operation, half of them as the document wants them."""
    report = LayerReport("openapi", seed)
    async with (
        running_server() as server,
        running_world(server, granted=1_000_000, hold_s=0.1) as world,
    ):
        parts = dataclasses.replace(world.graph.api_parts(""), pepper=PEPPER)
        async with running_door(parts) as door:
            document = create_app(parts).openapi()
            caller = await _caller(world, door, seed)
            with capture_logs() as logs, guarded(set()) as guard:
                await asyncio.to_thread(_knock, document, caller, REQUESTS[size], seed)
            report.failures += [f"{line['event']} in the log" for line in logs if "exc_info" in line][:5]
            report.failures += [f"connected to {address}" for address in guard.tried[:5]]
        await assert_books(world)
    report.tried = caller.tried
    report.failures += [f"{name}: {told}, seed {seed}" for name, told in caller.failures.items()]
    report.figures |= {"operations": len(_operations(document)), "refused": caller.refused}
    return report


async def _caller(world: World, door: Door, seed: int) -> Caller:
    """With something of every kind to ask for: a ready task, a waiting one, an upload."""
    operator = await Operator.at(door)
    answers = [
        await door.submit({"model": name, "prompt": "a lamp", "size": "64x64"})
        for name in ("lab-sync", "lab-poll")
    ]
    await world.dispatch("lab-sync")
    await world.archive_all()
    tasks = [answer.json["id"] for answer in answers]
    ready = (await door.request("GET", f"/v1/tasks/{tasks[0]}")).json
    assets = [asset["id"] for asset in ready["assets"]]
    uploads = [(await door.upload(picture())).json["id"]]
    nobody = [str(new_id())]
    return Caller(
        url=door.url,
        headers={"customer": door.caller.headers, "admin": {"Authorization": f"Bearer {operator.key}"}},
        known={
            **dict.fromkeys(
                ("/v1/tasks/{id}", "/v1/tasks/{id}/cancel", "/v1/images/tasks/{id}"), tasks + nobody
            ),
            **dict.fromkeys(("/v1/assets/{id}", "/v1/assets/{id}/thumbnail"), assets + nobody),
            "/v1/uploads/{id}": uploads + nobody,
        },
        random=Random(seed),
    )


def _knock(document: dict[str, Any], caller: Caller, requests: int, seed: int) -> None:
    """In a thread: what makes and sends the requests waits for each."""
    operations = _operations(document)
    share = max(1, requests // len(operations) // 2)
    for operation in operations:
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE):
            _ask_often(operation.as_strategy(generation_mode=mode), caller, share, seed)


def _ask_often(strategy: Any, caller: Caller, share: int, seed: int) -> None:
    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=share,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @hypothesis.given(strategy)
    def ask(case: Any) -> None:
        caller.ask(case)

    try:
        ask()
    except (hypothesis.errors.Unsatisfiable, schemathesis.errors.SchemathesisError):
        return  # an operation without any parameter cannot be asked wrongly


def _operations(document: dict[str, Any]) -> list[Any]:
    """Every operation of the document; one that cannot be read is a fault of the document."""
    found = list(schemathesis.openapi.from_dict(document).get_all_operations())
    for one in found:
        if isinstance(one, Err):
            raise one.err()
    return [one.ok() for one in found if isinstance(one, Ok)]
