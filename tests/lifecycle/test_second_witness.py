"""A second library, in another language, takes what we sign as a receiver gets it, and refuses the rest."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.architecture.source import ROOT
from tests.receiver import Mailroom, Told

SCRIPT = Path(__file__).with_name("verify_webhooks.mjs")
WEB = ROOT / "web"


def run(*command: str, words: str = "") -> str:
    """What a command says; it must end well."""
    done = subprocess.run(command, input=words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def judged(*calls: tuple[Told, str]) -> list[Any]:
    """What the npm package `standardwebhooks` makes of each call with a secret, in the Node that builds the pages."""
    asked = [
        {"secret": secret, "body": base64.b64encode(told.body).decode(), "headers": told.headers}
        for told, secret in calls
    ]
    node = await asyncio.to_thread(run, sys.executable, str(WEB / "build.py"), "node")
    said = await asyncio.to_thread(run, node, str(SCRIPT), str(WEB), words=json.dumps(asked))
    verdicts: list[Any] = json.loads(said)
    assert len(verdicts) == len(calls)
    return verdicts


async def test_what_we_send_is_verified_from_the_raw_body_and_the_headers(mail: Mailroom) -> None:
    secret = await mail.register()
    task_id = await mail.finish_task()
    await mail.deliver()
    (told,) = mail.receiver.told
    (verdict,) = await judged((told, secret.text))
    assert verdict == {"event": told.event}
    assert verdict["event"]["data"]["task_id"] == str(task_id)


async def test_a_changed_body_a_changed_header_and_a_wrong_secret_are_refused(mail: Mailroom) -> None:
    secret = await mail.register()
    other = await mail.register("/other")
    await mail.cancel_task()
    await mail.deliver()
    (told,) = mail.receiver.on("/hooks")
    again = json.dumps(told.event).encode()
    assert again != told.body
    renamed = replace(told, headers={**told.headers, "webhook-id": "evt_other"})
    unsigned = {name: value for name, value in told.headers.items() if name != "webhook-signature"}
    verdicts = await judged(
        (replace(told, body=told.body.replace(b"failed", b"ready!")), secret.text),
        (replace(told, body=again), secret.text),
        (told, other.text),
        (renamed, secret.text),
        (replace(told, headers=unsigned), secret.text),
    )
    no_match = {"refused": "No matching signature found"}
    assert verdicts == [no_match] * 4 + [{"refused": "Missing required headers"}]


async def test_an_old_time_stamp_is_refused_though_correctly_signed(mail: Mailroom) -> None:
    secret = await mail.register()
    await mail.cancel_task()
    await mail.deliver()
    await mail.world.pass_time(minutes=-6)
    await mail.world.graph.endpoints.test(mail.world.account_id, secret.endpoint_id)
    await mail.deliver()
    now, old = mail.receiver.told
    assert int(now.headers["webhook-timestamp"]) - int(old.headers["webhook-timestamp"]) >= 350
    restamped = {**old.headers, "webhook-timestamp": now.headers["webhook-timestamp"]}
    assert await judged(
        (now, secret.text), (old, secret.text), (replace(old, headers=restamped), secret.text)
    ) == [
        {"event": now.event},
        {"refused": "Message timestamp too old"},
        {"refused": "No matching signature found"},
    ]


async def test_while_a_secret_is_rotated_either_one_verifies(mail: Mailroom) -> None:
    old = await mail.register()
    new = await mail.world.graph.endpoints.rotate(mail.world.account_id, old.endpoint_id, overlap_s=3_600)
    await mail.cancel_task()
    await mail.deliver()
    (told,) = mail.receiver.told
    assert await judged((told, old.text), (told, new.text)) == [{"event": told.event}] * 2
