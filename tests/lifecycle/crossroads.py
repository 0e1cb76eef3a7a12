"""A model with two routes: `alpha` with two keys, then `beta`; both do what a test tells them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from safelight.db import gates
from safelight.domain.catalog import Catalog, Model, Route
from safelight.domain.provider import Capabilities, Trust
from safelight.lifecycle.reroute import Reroute
from safelight.settings import Settings
from safelight.upstreams import Upstreams, read_upstreams
from tests.lifecycle.upstreams import Scripted, Submit, install
from tests.world import Server, World, running_world

SECOND = Route(
    provider="beta",
    upstream_model="poster-b",
    operations=("generate",),
    sizes=("64x64",),
    max_n=2,
    deadline_s=77.0,
)
POSTER = Model(
    name="poster",
    price=5,
    provider="alpha",
    upstream_model="poster-a",
    operations=("generate",),
    sizes=("64x64", "512x512"),
    deadline_s=300.0,
    others=(SECOND,),
)
ALPHA = ("alpha", "alpha-2")
CALLS_BACK = Capabilities(calls_back=True, trust=Trust.BODY)


@dataclass
class Crossroads:
    """The world, and the providers at its three places."""

    world: World
    alpha: Scripted
    alpha_2: Scripted
    beta: Scripted
    reroute: Reroute

    async def submit(self, **wish: Any) -> UUID:
        """Accept one task, judged by how the keys stand now."""
        self.world.graph.context.routing.forget()
        return await self.world.submit("poster", **wish)

    async def run(self, passes: int = 1) -> None:
        """Do everything that is due at every place, again and again, 80 seconds apart."""
        for _ in range(passes):
            for name in (*ALPHA, "beta"):
                await self.world.dispatch(name)
                await self.reroute.evacuate()
            await self.world.pass_time(seconds=80)

    async def provider(self, task_id: UUID) -> str:
        return (await self.world.task(task_id)).provider

    async def shut(self, name: str, reason: str, for_s: float = 900.0) -> None:
        """Close a key's gate: a breaker, unless it is a limit."""
        is_failure = reason != "rate_limited"
        async with self.world.database.transaction() as connection:
            await gates.close_gate(connection, name, for_s=for_s, reason=reason, is_failure=is_failure)

    async def reroutes(self, task_id: UUID) -> list[str]:
        """What the history says of the task's ways."""
        rows = await self.world.rows(
            "SELECT detail FROM task_events WHERE task_id = $1 AND cause = 'rerouted' ORDER BY version",
            task_id,
        )
        return [row["detail"] for row in rows]

    async def attempts(self, task_id: UUID) -> list[tuple[str, str, str | None]]:
        """(provider, upstream model, outcome) of each attempt."""
        rows = await self.world.rows(
            "SELECT provider, upstream_model, outcome FROM attempts WHERE task_id = $1 ORDER BY number",
            task_id,
        )
        return [tuple(row) for row in rows]

    def answer(self, alpha: Submit | None, beta: Submit | None = None) -> None:
        """How submits end: at both keys of `alpha`, and at `beta`."""
        self.alpha.submit_does = self.alpha_2.submit_does = alpha
        self.beta.submit_does = beta


@asynccontextmanager
async def running_crossroads(
    server: Server, model: Model = POSTER, **settings: Any
) -> AsyncIterator[Crossroads]:
    """A world with the lab's models and this one beside them."""

    def extended(made: Settings) -> Upstreams:
        usual = read_upstreams(made)
        return replace(
            usual,
            names={**usual.names, "alpha": ALPHA, "beta": ("beta",)},
            catalog=Catalog([*usual.catalog.models.values(), model]),
        )

    async with running_world(server, upstreams=extended, **settings) as world:
        alpha, alpha_2, beta = (install(world, Scripted(name, CALLS_BACK)) for name in (*ALPHA, "beta"))
        yield Crossroads(world, alpha, alpha_2, beta, Reroute(world.graph.context))
