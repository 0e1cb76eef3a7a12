"""What processes do when a fault befalls them: together the scenes come to every fault point there is."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any
from uuid import UUID

from pydantic import SecretStr

from safelight.db import gates
from safelight.domain.audit import Actor
from safelight.domain.review import Choice
from safelight.domain.task import ReviewReason
from safelight.errors import AssetError, ConfigurationError, ProviderUnavailable
from safelight.jobs.permits import Copies
from safelight.lifecycle.alert import Alerts
from safelight.lifecycle.looks import Looks
from safelight.lifecycle.once import Once
from safelight.lifecycle.reroute import Reroute
from safelight.lifecycle.retention import Erase
from safelight.lifecycle.review import Ruling
from tests.lifecycle.crossroads import ALPHA, CALLS_BACK
from tests.lifecycle.upstreams import (
    GENUINE,
    Scripted,
    always,
    call_back,
    done,
    install,
    picture,
    ref_of,
    signed,
    token_of,
)
from tests.proof.faults_victim import Scene
from tests.world import World

KEY = "the key"
OPERATOR = Actor("admin:proof", "192.0.2.1", "request-1")
ONCE = Once("grants", "the grant", b"1" * 32)
GRANTED = 5
"""Credits that an operator gives, once."""
PAGER_SECRET = "whsec_" + base64.b64encode(b"a secret that only the proof knows").decode()
FAR_S = 86_400.0


async def submit(world: World, model: str, **wish: Any) -> UUID:
    """The one task of a scene, always under the same key: a customer who heard nothing asks again."""
    return await world.submit(model, key=KEY, fingerprint=b"2" * 32, **wish)


async def until_due(world: World, at_most_s: float = 900.0) -> None:
    """Move the clock to the next step of any open task."""
    left_s = await world.value("SELECT extract(epoch FROM min(wake_at) - clock_now())::float8 FROM tasks")
    await world.pass_time(seconds=min(max(left_s or 0.0, 0.0), at_most_s) + 0.01)


async def copy(world: World) -> None:
    """What a copy permit does."""
    await Copies(world.graph.archive, budget=4).run()


async def sent(world: World, model: str, **knobs: Any) -> UUID:
    """A task that was handed over, to a lab with these knobs."""
    await world.knobs(reset=True, **knobs)
    task_id = await submit(world, model)
    await world.dispatch(model)
    await world.knobs(reset=True)
    if "latency_s" not in knobs:
        await world.until_drawn()
    return task_id


async def called_back(world: World) -> None:
    task_id = await sent(world, "lab-callback")
    ref = (await world.attempt(task_id)).provider_ref
    async with world.session.get(
        f"{world.lab_url}/callback/v1/jobs/{ref}", headers={"Authorization": "Bearer lab-key"}
    ) as answer:
        record = await answer.json()
    await call_back(world, token_of(world, task_id), signed(record))
    await copy(world)


async def polled(world: World) -> None:
    await sent(world, "lab-poll")
    await until_due(world)
    await world.look("lab-poll")
    await copy(world)


async def answered_at_once(world: World) -> None:
    task_id = await sent(world, "lab-sync")
    await copy(world)
    await world.graph.archive.unstage(task_id)


async def asked_again(world: World) -> None:
    await sent(world, "lab-sync", lose_answer=1)
    await until_due(world)
    await world.look("lab-sync")
    await copy(world)


async def looked_up(world: World) -> None:
    await sent(world, "lab-poll", lose_answer=1)
    await until_due(world)
    await world.look("lab-poll")


async def shown_to_a_person(world: World) -> None:
    """Nobody can be asked about it: it waits, and past its deadline a person decides."""
    task_id = await sent(world, "lab-callback", lose_answer=1)
    await until_due(world)
    await world.look("lab-callback")
    await world.pass_time(seconds=400)
    await world.look("lab-callback")
    task = await world.task(task_id)
    ruling = Ruling(task_id, task.version, Choice.ATTACH_RESULT, files=[picture()])
    await world.graph.review.decide(ruling, OPERATOR)
    await copy(world)


async def canceled_while_waiting(world: World) -> None:
    await world.cancel.cancel(world.account_id, await submit(world, "lab-poll"))


async def canceled_while_running(world: World) -> None:
    task_id = await sent(world, "lab-poll", latency_s=[FAR_S, FAR_S])
    await world.cancel.cancel(world.account_id, task_id)
    await world.look("lab-poll")


async def reconciled(world: World) -> None:
    await sent(world, "lab-poll")
    await world.pass_time(seconds=120)
    today = await world.value("SELECT (min(sent_at) AT TIME ZONE 'UTC')::date FROM attempts")
    with contextlib.suppress(ConfigurationError):  # the day has only just begun
        begun = await world.graph.reconcile.begin("lab-poll", today)
        assert begun is not None
        await world.graph.reconcile.carry_out(begun)


async def turned_away(world: World) -> None:
    await sent(world, "lab-poll", rate_limit=1, latency_s=[FAR_S, FAR_S])
    await world.pass_time(seconds=60)
    await world.dispatch("lab-poll")


async def failed_once(world: World) -> None:
    """A fault of the upstream's own is counted, and forgotten with the next success."""
    await sent(world, "lab-sync", fail=1)
    await world.pass_time(seconds=60)
    await world.dispatch("lab-sync")


def fill_store(world: World) -> None:
    """No space is left for this process."""

    async def full(key: str, data: bytes) -> None:
        raise AssetError("storage", "no space is left", is_retryable=True)

    world.graph.context.store.put = full  # type: ignore[method-assign]  # the disk fails, not our code


async def not_staged(world: World) -> None:
    fill_store(world)
    await sent(world, "lab-sync")


async def not_stored(world: World) -> None:
    """The copy waits for our own storage, too long, until a person is shown; then there is space again."""
    task_id = await sent(world, "lab-poll")
    await until_due(world)
    await world.look("lab-poll")
    usual = world.graph.context.store.put
    fill_store(world)
    await world.graph.archive.archive(task_id)
    await world.pass_time(seconds=3_700)
    await world.graph.archive.archive(task_id)
    world.graph.context.store.put = usual  # type: ignore[method-assign]  # the disk has space again
    await world.pass_time(seconds=1_000)
    await world.graph.sweep.tidy()
    await world.look("lab-poll")


async def expired(world: World) -> None:
    """The results' addresses have expired when they are fetched."""
    await sent(world, "lab-poll", expire_result_s=0)
    await until_due(world)
    await world.look("lab-poll")
    await copy(world)


async def cut_short(world: World) -> None:
    """The results come incomplete, and are fetched again later."""
    await sent(world, "lab-poll", truncate_result=1)
    await until_due(world)
    await world.look("lab-poll")
    await copy(world)


def crossroads(world: World) -> tuple[Scripted, Scripted, Scripted]:
    """Upstreams that do what they are told, at the three places of the model `poster`."""
    alpha, second, beta = (install(world, Scripted(name, CALLS_BACK)) for name in (*ALPHA, "beta"))
    for provider in (alpha, second, beta):
        provider.submit_does = _draw
    return alpha, second, beta


async def _draw(submission: Any) -> Any:
    return done(provider_ref=ref_of(submission.reference))


async def heard_before_known(world: World) -> None:
    """A callback names an id that only the answer to the submit makes known."""
    alpha, _, _ = crossroads(world)
    alpha.submit_does = None
    task_id = await submit(world, "poster")
    body = {"status": "failed", "id": ref_of(f"{task_id.hex}-1"), "pictures": 0}
    await call_back(world, None, (GENUINE, json.dumps(body).encode()), "alpha")
    await world.dispatch("alpha")


async def sent_elsewhere(world: World) -> None:
    alpha, second, _ = crossroads(world)
    refused = always(ProviderUnavailable("the key is refused", reason="credentials"))
    alpha.submit_does = second.submit_does = refused
    await submit(world, "poster")
    for name in ALPHA:
        await world.dispatch(name)
        await Reroute(world.graph.context).evacuate()
    await world.dispatch("beta")
    await copy(world)


async def taken_over(world: World) -> None:
    """A key that is idle takes what another one cannot send now."""
    crossroads(world)
    await submit(world, "poster")
    async with world.database.transaction() as connection:
        await gates.close_gate(connection, "alpha", for_s=900.0, reason="rate_limited", is_failure=False)
    await world.pass_time(seconds=5)
    await Reroute(world.graph.context).even_out()
    await world.dispatch("alpha-2")
    await copy(world)


async def swept(world: World) -> None:
    await submit(world, "lab-poll")
    await world.graph.sweep.wake()
    await world.pass_time(seconds=3_700)
    await world.graph.sweep.tidy()


async def granted(world: World) -> None:
    await world.graph.administration.grant(world.account_id, GRANTED, "proof", OPERATOR, once=ONCE)


async def told(world: World) -> None:
    """The operator is told of a review, at an address that takes everything."""
    task_id = await sent(world, "lab-callback", latency_s=[FAR_S, FAR_S])
    graph = world.graph
    looks = Looks(graph.context, graph.advance, graph.dispatch)
    await looks.to_review(await world.task(task_id), ReviewReason.DEADLINE)
    pager = {"alert_url": f"{world.lab_url}/lab/elsewhere", "alert_secret": SecretStr(PAGER_SECRET)}
    alerts = Alerts(world.database, graph.settings.model_copy(update=pager))
    try:
        await world.pass_time(seconds=120)
        await alerts.tell()
    finally:
        await alerts.aclose()


async def deliver(world: World) -> None:
    """What a permit to deliver does."""
    for is_failing in (False, True):
        letters, _ = await world.graph.notify.claim(10, is_failing=is_failing)
        for letter in letters:
            await world.graph.notify.deliver(letter, is_failing=is_failing)


async def told_by_webhook(world: World) -> None:
    """The customer hears of an end, at the one address that the operator allows."""
    (origin,) = world.graph.settings.allowed_origins
    await world.graph.endpoints.register(world.account_id, url=f"{origin}/hooks")
    await world.cancel.cancel(world.account_id, await submit(world, "lab-poll"))
    await deliver(world)


async def handed_in(world: World) -> None:
    await world.graph.uploads.keep(world.account_id, picture())
    await world.pass_time(days=40)
    await world.graph.uploads.expire()
    await world.pass_time(days=1)
    await world.graph.uploads.expire()


async def erased(world: World) -> None:
    task_id = await sent(world, "lab-sync")
    await copy(world)
    await Erase(world.database, world.graph.context.store).erase(world.account_id, task_id)


async def kept_long_enough(world: World) -> None:
    await sent(world, "lab-sync")
    await copy(world)
    await world.pass_time(days=20)
    await world.graph.retention.step()


SCENES: dict[Scene, str | None] = {
    called_back: "lab-callback",
    polled: "lab-poll",
    answered_at_once: "lab-sync",
    asked_again: "lab-sync",
    looked_up: "lab-poll",
    shown_to_a_person: "lab-callback",
    canceled_while_waiting: "lab-poll",
    canceled_while_running: "lab-poll",
    reconciled: "lab-poll",
    turned_away: "lab-poll",
    failed_once: "lab-sync",
    not_staged: "lab-sync",
    not_stored: "lab-poll",
    expired: "lab-poll",
    cut_short: "lab-poll",
    heard_before_known: "poster",
    sent_elsewhere: "poster",
    taken_over: "poster",
    swept: "lab-poll",
    granted: None,
    told: "lab-callback",
    told_by_webhook: "lab-poll",
    handed_in: None,
    erased: "lab-sync",
    kept_long_enough: "lab-sync",
}
"""Each scene, and the model that its customer asked for and asks for again."""
