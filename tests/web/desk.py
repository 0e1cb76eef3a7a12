"""Tasks that only a person can settle, and what the operator's door says of them, past the page."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

import aiohttp

from safelight.upstreams import LAB_CREDENTIALS
from tests.acceptance.installed import Installed
from tests.web.studio import READY_MS, Customer

HANGING_S = 5_000
"""Longer than any task may run: the lab accepts, and nothing comes of it."""
PAST_DEADLINE_S = 310
"""No task of the lab may take longer."""
LOOK_S = 0.1
SILENT = {"callback_loss": 1}
"""A callback that comes late is news, and would move a task away from the desk."""
UNFINISHED = {
    **SILENT,
    "latency_s": [HANGING_S, HANGING_S],
    "gateway": {"where": "cancel", "how": "empty_500"},
}
UNHEARD = {**SILENT, "gateway": {"where": "poll", "how": "empty_500"}}
UNANSWERED = {"gateway": {"where": "submit", "how": "reset_before"}}


@dataclass
class Desk:
    """One running service, from the operator's side and from the lab's."""

    service: Installed
    door: aiohttp.ClientSession
    lab: aiohttp.ClientSession

    async def unfinished(self, customer: Customer, prompt: str) -> str:
        """A task whose provider never comes to an end, and cannot be made to."""
        await self.turn(UNFINISHED)
        task_id = await submit(self.service, customer, prompt)
        await self.until(task_id, "running")
        return await self._to_review(task_id)

    async def unheard(self, customer: Customer, prompt: str) -> str:
        """A task that its provider has finished, although no callback came and no look was answered."""
        await self.turn(UNHEARD)
        task_id = await submit(self.service, customer, prompt)
        await self.until(task_id, "running")
        async with asyncio.timeout(READY_MS / 1_000):
            while await self.made_for(task_id) != ["done"]:  # noqa: ASYNC110 - seen from outside only
                await asyncio.sleep(LOOK_S)
        return await self._to_review(task_id)

    async def unanswered(self, customer: Customer, prompt: str) -> str:
        """A task whose submit broke off before it arrived, which nobody here can know."""
        await self.turn(UNANSWERED)
        task_id = await submit(self.service, customer, prompt)
        await self.until(task_id, "uncertain")
        return await self._to_review(task_id)

    async def resubmit_unfinished(self, task_id: str) -> None:
        """Give up the attempt of a task in review for one that never ends, so that it comes back."""
        await self.turn(UNFINISHED)
        await self.decide(task_id, "resubmit", "risk_accepted", "nobody wants to wait for it")
        await self.until(task_id, "running")
        await self._to_review(task_id)

    async def decide(self, task_id: str, decision: str, reason_code: str, note: str) -> None:
        """Decide about a task as it stands."""
        version = (await self.task(task_id))["version"]
        body = {"decision": decision, "version": version, "reason_code": reason_code, "note": note}
        headers = {"Idempotency-Key": f"{task_id}-{version}"}
        path = f"/admin/tasks/{task_id}/decisions"
        async with self.door.post(path, json=body, headers=headers) as answer:
            assert answer.status == 200, await answer.text()

    async def turn(self, knobs: dict[str, Any]) -> None:
        """Let the lab misbehave in this way and in no other."""
        async with self.lab.post("/lab/knobs", json={"reset": True, **knobs}) as answer:
            assert answer.status == 200, await answer.text()

    async def made_for(self, task_id: str) -> list[str]:
        """What became of everything that the lab accepted for a task."""
        references = {attempt["reference"] for attempt in (await self.task(task_id))["attempts"]}
        items = (await self.service.lab_ledger())["items"]
        arrived = [item for item in items if item["reference"] in references]
        return [item["outcome"] for item in arrived for _ in range(item["times_accepted"])]

    async def result_url(self, task_id: str) -> str:
        """Where the provider keeps the picture of a task's attempt, as its own dashboard shows it."""
        ref = (await self.task(task_id))["attempts"][-1]["provider_ref"]
        key = LAB_CREDENTIALS["api_key"].get_secret_value()
        async with self.lab.get(f"/callback/v1/jobs/{ref}", headers=bearer(key)) as answer:
            assert answer.status == 200, await answer.text()
            return str((await answer.json())["images"][0]["url"])

    async def task(self, task_id: str) -> dict[str, Any]:
        """Everything that is known of a task."""
        async with self.door.get(f"/admin/tasks/{task_id}") as answer:
            assert answer.status == 200, await answer.text()
            found: dict[str, Any] = await answer.json()
            return found

    async def until(self, task_id: str, state: str) -> dict[str, Any]:
        """The task as soon as it stands so."""
        async with asyncio.timeout(READY_MS / 1_000):
            while (found := await self.task(task_id))["state"] != state:  # noqa: ASYNC110 - seen from outside only
                await asyncio.sleep(LOOK_S)
        return found

    async def audit(self, about: str) -> list[tuple[str, str]]:
        """(action, who) of what was done to something, oldest first."""
        async with self.door.get("/admin/audit", params={"object": about}) as answer:
            rows = (await answer.json())["data"]
        return [(row["action"], row["actor"]) for row in reversed(rows)]

    async def _to_review(self, task_id: str) -> str:
        """Past its deadline no look helps: it waits for a person, and the provider is well again."""
        await self.service.pass_time(PAST_DEADLINE_S)
        async with asyncio.timeout(READY_MS / 1_000):
            await self.service.wait_for_ends([task_id])
        assert (await self.task(task_id))["state"] == "review"
        await self.turn({})
        return task_id


async def submit(service: Installed, customer: Customer, prompt: str) -> str:
    """Submit a task as a customer's program does."""
    headers = {**bearer(customer.key), "Idempotency-Key": prompt.replace(" ", "-")}
    body = {"prompt": prompt, "model": "lab-callback"}
    async with (
        aiohttp.ClientSession(service.url) as session,
        session.post("/v1/tasks", json=body, headers=headers) as answer,
    ):
        assert answer.status == 202, await answer.text()
        return str((await answer.json())["id"])


def bearer(key: str) -> dict[str, str]:
    """The header that carries a key."""
    return {"Authorization": f"Bearer {key}"}
