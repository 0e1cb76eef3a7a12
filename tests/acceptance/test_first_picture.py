"""What a new user does in the first five minutes, with the installed command."""

from __future__ import annotations

import asyncio
import json
import stat
import subprocess

from PIL import Image

from tests.acceptance.installed import Installed


async def test_the_first_picture_comes_back_and_is_paid_for(service: Installed) -> None:
    target = service.data_dir / "shoe.png"
    done = await _run(service, "submit", "a red shoe on white", "--wait", "-o", str(target))
    assert done.returncode == 0, done.stderr
    with Image.open(target) as picture:
        picture.load()
        assert (picture.format, picture.size) == ("PNG", (1024, 1024))
    balance = await _run(service, "credits", "balance", "--json")
    assert json.loads(balance.stdout) == {"available": 999, "held": 0}
    listed = await _run(service, "tasks", "list", "--json")
    (task,) = json.loads(listed.stdout)["data"]
    assert (task["status"], task["credits"]) == ("ready", {"held": 0, "captured": 1, "released": 0})
    shown = await _run(service, "tasks", "show", task["id"])
    assert shown.returncode == 0
    assert "archiving" in shown.stdout
    doctor = await _run(service, "doctor")
    lines = doctor.stdout.splitlines()
    assert (doctor.returncode, lines[-1]) == (0, f"{len(lines) - 1} checks, no findings")


async def test_the_first_key_is_for_its_owner_alone_and_survives_a_restart(service: Installed) -> None:
    mode = stat.S_IMODE((service.data_dir / "key").stat().st_mode)
    assert mode == 0o600
    first = service.key
    assert await service.stop() == 0
    await service.start()
    assert service.key == first
    balance = await _run(service, "credits", "balance", "--json")
    assert json.loads(balance.stdout) == {"available": 1000, "held": 0}


async def test_what_cannot_be_done_is_refused_with_its_code_and_holds_nothing(service: Installed) -> None:
    refusals = {
        "validation-failed": ["submit", ""],
        "model-not-found": ["submit", "a shoe", "--model", "no-such-model"],
    }
    for code, arguments in refusals.items():
        refused = await _run(service, *arguments)
        assert refused.returncode == 1
        assert code in refused.stderr
        assert "Traceback" not in refused.stderr
    assert (await _run(service, "submit", "a shoe", "-n", "0")).returncode in (1, 2)
    balance = await _run(service, "credits", "balance", "--json")
    assert json.loads(balance.stdout) == {"available": 1000, "held": 0}


async def _run(service: Installed, *arguments: str) -> subprocess.CompletedProcess[str]:
    return await asyncio.to_thread(service.run, *arguments)
