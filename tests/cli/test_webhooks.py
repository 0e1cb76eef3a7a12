"""`safelight webhooks`: from the first endpoint to what is sent again, against a service that runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from safelight.db import accounts
from tests.api.door import PEPPER, running_door
from tests.cli.command import Command, Said
from tests.receiver import Mailroom, Reply, running_mailroom
from tests.world import Server


class Shell:
    """The command as an account's owner has it; the service's worker is played by the test."""

    def __init__(self, command: Command, mail: Mailroom) -> None:
        self.command = command
        self.mail = mail

    async def __call__(self, *words: str) -> Said:
        return await asyncio.to_thread(self.command, "webhooks", *words)

    async def meanwhile(self, *words: str) -> Said:
        """The same, while a worker delivers what is due."""
        running = asyncio.create_task(self(*words))
        while not running.done():
            await self.mail.deliver()
            await asyncio.sleep(0.05)
        return await running


@pytest.fixture
async def shell(server: Server) -> AsyncIterator[Shell]:
    """A service, its address and its key."""
    async with (
        running_mailroom(server) as mail,
        running_door(replace(mail.world.graph.api_parts(""), pepper=PEPPER)) as door,
    ):
        async with mail.world.database.transaction() as connection:
            key = await accounts.create_key(connection, mail.world.account_id, "", PEPPER)
        data_dir = mail.world.graph.settings.data_dir
        (data_dir / "key").write_text(key)
        (data_dir / "url").write_text(door.url)
        yield Shell(Command(data_dir), mail)


async def test_an_endpoint_is_added_tested_listed_and_removed(shell: Shell) -> None:
    made = (await shell("add", shell.mail.receiver.url(), "--event", "task.ready", "--json")).json
    assert made["secret"].startswith("whsec_")
    said = await shell.meanwhile("test", made["id"])
    assert (said.code, said.out.split()[1:]) == (0, ["delivered", "200"])
    assert shell.mail.receiver.told[0].verified(made["secret"])["type"] == "endpoint.test"
    listed = await shell("list")
    assert [line.split()[:3] for line in listed.out.splitlines()[2:]] == [[made["id"], "enabled", "0"]]
    assert made["secret"] not in listed.out
    assert (await shell("remove", made["id"])).code == 0
    assert (await shell("list", "--json")).json == []


async def test_a_test_that_fails_says_why_and_exits_with_1(shell: Shell) -> None:
    made = (await shell("add", shell.mail.receiver.url(), "--json")).json
    shell.mail.receiver.usual = Reply(308, headers={"Location": "https://shop.example/hooks/"})
    said = await shell.meanwhile("test", made["id"])
    assert said.code == 1
    assert "308 redirect redirects are not followed; it leads to https://shop.example" in said.out


async def test_a_secret_is_rotated_and_revoked(shell: Shell) -> None:
    said = await shell("add", shell.mail.receiver.url())
    endpoint_id = said.out.split()[1]
    assert "it is not shown again" in said.out
    first = (await shell("rotate", endpoint_id, "--json")).json
    assert len(first["secrets"]) == 2
    second = (await shell("rotate", endpoint_id, "--revoke-now", "--json")).json
    assert len(second["secrets"]) == 1
    assert second["secret"] != first["secret"]


async def test_deliveries_are_listed_and_sent_again(shell: Shell) -> None:
    made = (await shell("add", shell.mail.receiver.url(), "--json")).json
    shell.mail.receiver.replies["/hooks"] = [Reply(410)]
    await shell.mail.cancel_task()
    await shell.mail.deliver()
    listed = await shell("deliveries", made["id"], "--status", "failed")
    (line,) = listed.out.splitlines()[2:]
    delivery = line.split()[0]
    assert line.split()[1:3] == ["failed", "1"]
    assert line.rstrip().endswith("410")
    refused = await shell("redeliver", made["id"], delivery)
    assert (refused.code, "endpoint-disabled" in refused.err) == (1, True)
    assert (await shell("enable", made["id"])).code == 0
    assert (await shell("redeliver", made["id"], delivery)).code == 0
    await shell.mail.deliver()
    assert len(shell.mail.receiver.told) == 2
    recovered = await shell("recover", made["id"], "--since", "2026-01-01T00:00:00Z")
    assert recovered.out == "0 deliveries to be sent again\n"
    assert (await shell("recover", made["id"], "--since", "yesterday")).code == 2


async def test_an_address_that_may_not_be_called_is_one_line(shell: Shell) -> None:
    said = await shell("add", "https://169.254.169.254/")
    assert (said.code, said.out) == (1, "")
    assert said.err.startswith("safelight: webhook-url-refused: The url cannot be used: ")
