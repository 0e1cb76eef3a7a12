"""Bad callbacks by the thousand through the real door: none of them leaves a trace, and genuine ones still count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from random import Random
from typing import Any

from fastapi import FastAPI
from structlog.testing import capture_logs

from safelight.api.app import create_app
from safelight.domain.provider import Trust
from safelight.domain.task import State
from tests.lifecycle.invariants import assert_books, fingerprint
from tests.proof.callbacks_captured import Captured, Scenery, scenery
from tests.proof.callbacks_forged import KINDS, Forged, forgeries
from tests.proof.report import LayerReport, Size
from tests.world import running_server

SIZES = {Size.CI: 2_000, Size.PROVE: 20_000, Size.RELEASE: 100_000}
BATCH = 500
"""Between two looks at the whole database."""
MOST_FAILURES = 20
FINE = frozenset({202, 400, 401, 404, 413})
"""What a bad callback may be answered: 202 only tells nobody that a token is unknown."""
CRASHED = 599


async def run(size: Size, seed: int) -> LayerReport:
    """Half of the bad ones, then genuine ones of one account, the other half, and the rest of the genuine ones."""
    report = LayerReport("callbacks", seed)
    async with running_server() as server, scenery(server) as scene:
        app = create_app(scene.world.graph.api_parts(""))
        source = forgeries(Random(seed), scene.captured, scene.world.graph.context.tokens.issue)
        answers: Counter[str] = Counter()
        mine = [one for one in scene.captured if one.account_id == scene.world.account_id]
        others = [one for one in scene.captured if one.account_id != scene.world.account_id]
        for half, genuine in enumerate((others, mine)):
            await _attack(scene, app, islice(source, SIZES[size] // 2), report, answers)
            await _believe(scene, app, genuine, report, half)
        await _replay(scene, app, report, copies=max(2, SIZES[size] // 1_000))
        await scene.world.archive_all()
        await assert_books(scene.world)
    report.figures |= {
        "kinds": f"{len({name.split()[0] for name in answers})} of {len(KINDS)}",
        "providers": len({one.provider for one in scene.captured}),
        "genuine": len(scene.captured),
        "answers": " ".join(f"{status}:{count}" for status, count in sorted(_by_status(answers).items())),
    }
    return report


async def _attack(
    scene: Scenery,
    app: FastAPI,
    source: Iterator[tuple[str, Forged]],
    report: LayerReport,
    answers: Counter[str],
) -> None:
    """Send them, and compare every row of every table after each batch."""
    before = await fingerprint(scene.world)
    while batch := list(islice(source, BATCH)):
        with capture_logs() as logs:
            for kind, forged in batch:
                status = await knock(app, forged, report.tried)
                report.tried += 1
                answers[f"{kind} {status}"] += 1
                if status not in FINE:
                    report.failures.append(f"{kind} at {forged.provider}: {status}, seed {report.seed}")
        report.failures += [f"{line['event']} in the log" for line in logs if "exc_info" in line]
        after = await fingerprint(scene.world)
        if after != before:
            kinds = " ".join(sorted({kind for kind, _ in batch}))
            report.failures.append(f"rows changed before number {report.tried}, seed {report.seed}: {kinds}")
            before = after
        del report.failures[MOST_FAILURES:]


async def _believe(
    scene: Scenery, app: FastAPI, genuine: list[Captured], report: LayerReport, half: int
) -> None:
    """After all that, a genuine one still does its work: it moves its task, or has it looked at."""
    for one in genuine:
        status = await knock(app, _as_it_came(one), half)
        task = await scene.world.task(one.task_id)
        is_hint = scene.world.graph.context.provider(one.provider).capabilities.trust is Trust.HINT
        is_done = task.state is (State.RUNNING if is_hint else State.ARCHIVING)
        is_looked_at = not is_hint or await scene.world.value(
            "SELECT wake_at <= clock_now() FROM tasks WHERE id = $1", one.task_id
        )
        if status != 202 or not is_done or not is_looked_at:
            report.failures.append(f"a genuine one of {one.provider}: {status}, its task is {task.state}")


async def _replay(scene: Scenery, app: FastAPI, report: LayerReport, *, copies: int) -> None:
    """What had its effect is only noted when it comes again."""
    before = await fingerprint(scene.world, without=["callbacks"])
    for one in scene.captured:
        for number in range(copies):
            status = await knock(app, _as_it_came(one), number)
            report.tried += 1
            if status != 202:
                report.failures.append(f"a replay of {one.provider}: {status}")
    if await fingerprint(scene.world, without=["callbacks"]) != before:
        report.failures.append("a replay changed more than the list of callbacks")


def _as_it_came(one: Captured) -> Forged:
    return Forged(one.provider, one.token, one.headers, one.raw)


def _by_status(answers: Counter[str]) -> Counter[str]:
    found: Counter[str] = Counter()
    for name, count in answers.items():
        found[name.split()[1]] += count
    return found


async def knock(app: FastAPI, forged: Forged, number: int) -> int:
    """Send it to the application as a server would, from another address each time; returns the status."""
    path = f"/callbacks/{forged.provider}" + ("" if forged.token is None else f"/{forged.token}")
    length = b"%d" % len(forged.raw)
    headers = [header for header in forged.headers if header[0] not in (b"content-length", b"host")]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode("utf-8", "replace"),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"proof"), (b"content-length", length), *headers],
        "client": (f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 1),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    messages = iter(({"type": "http.request", "body": forged.raw, "more_body": False},))
    statuses: list[int] = []

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    await app(scope, receive, send)
    return statuses[0] if statuses else CRASHED
