"""One task through safelight with every provider that comes with it, before the lab's dialect of its upstream."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest
from PIL import Image

from safelight.cli.conformance.run import read_dialect
from safelight.cli.conformance.workbench import lab_address
from safelight.domain.catalog import Model
from safelight.domain.task import State, is_terminal
from safelight.lab.dialects import dialect_names, load_dialect
from safelight.providers import packaged_declaration
from safelight.providers.checks import credential_names
from safelight.settings import ProviderSettings, Settings
from safelight.upstreams import Upstreams, read_upstreams
from tests.lifecycle.invariants import assert_books
from tests.world import Server, World, running_world

STEPS = 12
"""More looks than any attempt of a lab that draws at once can need."""


def before_the_lab(name: str) -> Callable[[Settings], Upstreams]:
    """The installation with this provider too, pointed at the lab."""

    def read(settings: Settings) -> Upstreams:
        declaration = packaged_declaration(name)
        table = ProviderSettings.model_validate(
            {
                **load_dialect(name).credentials,
                "base_url": lab_address(declaration, str(settings.lab_url), name),
            }
        )
        known = {word: value for word, value in table.credentials.items() if word in _credentials(name)}
        table = table.model_copy(update={"credentials": known})
        return read_upstreams(settings.model_copy(update={"providers": {name: table}}))

    return read


def _credentials(name: str) -> tuple[str, ...]:
    return credential_names(packaged_declaration(name))


def a_picture() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (512, 512), "navy").save(file, "PNG")
    return file.getvalue()


def model_of(world: World, name: str) -> Model:
    """The first model of the provider."""
    return next(one for one in world.graph.context.catalog.models.values() if one.provider == name)


async def submitted(world: World, model: Model) -> UUID:
    size = next((size for size in model.sizes if size), None)
    ratio = next((ratio for ratio in model.aspect_ratios if ratio), None)
    wish: dict[str, Any] = {"size": size, "aspect_ratio": None if size else ratio}
    if "generate" not in model.operations:
        upload = await world.graph.uploads.keep(world.account_id, a_picture())
        wish |= {"operation": "edit", "images": [upload.id]}
    return await world.submit(model.name, **wish)


async def followed(world: World, task_id: UUID, provider: str) -> State:
    """Do every step that is due until the task has ended."""
    for _ in range(STEPS):
        await world.dispatch(provider)
        await world.pass_time(seconds=40)
        await world.look(provider)
        await world.archive_all()
        if is_terminal(await world.state(task_id)):
            break
    return await world.state(task_id)


@pytest.mark.parametrize("name", dialect_names())
async def test_a_task_becomes_ready_and_is_paid_once(server: Server, name: str) -> None:
    async with running_world(server, upstreams=before_the_lab(name), knobs={"small_pictures": True}) as world:
        model = model_of(world, name)
        task_id = await submitted(world, model)
        assert await followed(world, task_id, name) is State.SUCCEEDED
        assert await world.balance() == (1_000 - model.price, 0)
        assert await world.value("SELECT count(*) FROM assets WHERE task_id = $1", task_id) == 1
        assert (await world.lab_ledger())["accepted"] == 1
        await assert_books(world)


@pytest.mark.parametrize("name", dialect_names())
async def test_a_blocked_task_costs_nothing_and_is_not_tried_again(server: Server, name: str) -> None:
    async with running_world(server, upstreams=before_the_lab(name)) as world:
        dialect = await read_dialect(world.session, world.lab_url, name)
        ways = dialect["refusals"]["content_blocked"]
        if not ways and not dialect["endings"]["blocked"]:
            # A server of one's own moderates nothing.
            assert name in ("automatic1111", "comfyui", "recraft")
            return
        knobs = {"refuse": "content_blocked"} if ways else {"ending": "blocked"}
        await world.knobs(**knobs)
        task_id = await submitted(world, model_of(world, name))
        assert await followed(world, task_id, name) is State.BLOCKED
        assert await world.balance() == (1_000, 0)
        assert (await world.lab_ledger())["accepted"] == (0 if ways else 1)
        await assert_books(world)
