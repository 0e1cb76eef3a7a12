"""At every named fault point one fault of each kind; then the others go on, and everything must come home."""

from __future__ import annotations

import ast
import asyncio
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from itertools import product

from safelight.domain.catalog import Catalog
from safelight.lifecycle.doctor import examine
from safelight.lifecycle.reroute import Reroute
from safelight.settings import Settings
from safelight.upstreams import Upstreams, read_upstreams
from tests.architecture.source import PACKAGE, python_files, tree_of
from tests.lifecycle.crossroads import ALPHA, POSTER
from tests.lifecycle.invariants import assert_books
from tests.proof import faults_scenes as scenes
from tests.proof.faults_victim import Fault, Kind, Scene, Victim
from tests.proof.report import LayerReport, Size, told
from tests.receiver import running_receiver
from tests.world import Server, World, running_server, running_world

CREDITS = 100
NOBODY_LISTENS = "http://127.0.0.1:9"
KEEP_ASSETS_DAYS = 10
SCENES_A_POINT = {Size.CI: 1, Size.PROVE: 2, Size.RELEASE: len(scenes.SCENES)}
KINDS_A_POINT = {Size.CI: 1, Size.PROVE: len(Kind), Size.RELEASE: len(Kind)}
"""With every run of the tests one kind at each point, in turn by the seed; else all."""
HOMEWARDS_S = (1.0, 30.0, 120.0, 700.0, 4_000.0, 90_000.0, 700.0, 90_000.0, 90_000.0)
"""Steps of the clock within which everything comes home."""

_LEFT = """
SELECT (SELECT count(*) FROM tasks WHERE finished_at IS NULL)
     + (SELECT count(*) FROM deliveries WHERE status <> 'delivered')
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A scene, what befalls it where, and what befalls the one who comes after it (in pairs)."""

    scene: Scene
    fault: Fault
    second: Fault | None = None

    def __str__(self) -> str:
        after = f", then {self.second}" if self.second else ""
        return f"{self.fault} in {self.scene.__name__}{after}"


ATTACKED_ELSEWHERE = frozenset({"after_batch_chunk"})
"""Batches are cut off there, and sent again, in tests/api/test_batches.py: no scene submits one."""


def points() -> set[str]:
    """Every fault point that the code names, but for those with a test of their own."""
    named = {
        node.args[0].value
        for path in python_files(PACKAGE)
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "point"
        and isinstance(node.args[0], ast.Constant)
        and isinstance(node.args[0].value, str)
    }
    return named - ATTACKED_ELSEWHERE


async def run(size: Size, seed: int) -> LayerReport:
    """Every point at this size; at a release also all ordered pairs of them."""
    report = LayerReport("faults", seed)
    async with (
        running_server() as server,
        running_receiver() as receiver,
        running_faults_world(server, receiver.origin) as world,
    ):
        await server.hurry()
        reached = await rehearse(world, report)
        missing = sorted(points() - {name for names in reached.values() for name in names})
        report.failures += [f"{name}: no scene comes to this fault point" for name in missing]
        report.figures = {"points": len(points()), "reached": len(points()) - len(missing)}
        for case in cases(reached, size, random.Random(seed)):
            await try_case(world, case, report)
    return report


def running_faults_world(server: Server, receiver: str) -> AbstractAsyncContextManager[World]:
    """A world with the lab's models and the one with two routes; customers are told at this origin."""

    def extended(made: Settings) -> Upstreams:
        usual = read_upstreams(made)
        names = {**usual.names, "alpha": ALPHA, "beta": ("beta",)}
        return replace(usual, names=names, catalog=Catalog([*usual.catalog.models.values(), POSTER]))

    knobs = {"callback_loss": 1, "small_pictures": True}
    return running_world(
        server,
        knobs=knobs,
        upstreams=extended,
        public_url=NOBODY_LISTENS,
        allowed_origins=(receiver,),
        keep_assets_days=KEEP_ASSETS_DAYS,
    )


async def rehearse(world: World, report: LayerReport) -> dict[Scene, list[str]]:
    """Each scene once without a fault: the points it comes to, in order; and it comes home by itself."""
    reached: dict[Scene, list[str]] = {}
    for scene in scenes.SCENES:
        await world.wipe(CREDITS)
        victim = Victim(world)
        await victim.play(scene)
        await victim.thaw()
        reached[scene] = list(victim.reached)
        report.tried += 1
        if victim.error is not None:
            report.failures.append(f"{scene.__name__} without a fault: {told(victim.error)}")
        await _come_home(world, scene, report, f"{scene.__name__} without a fault")
    return reached


def cases(reached: Mapping[Scene, Sequence[str]], size: Size, chance: random.Random) -> Iterator[Case]:
    """The faults of this size, point by point."""
    found: dict[str, list[Scene]] = {}
    for scene, names in reached.items():
        for name in names:
            found.setdefault(name, []).append(scene)
    first_kind = chance.randrange(len(Kind))
    for place, (name, playing) in enumerate(found.items()):
        kinds = [list(Kind)[(first_kind + place + turn) % len(Kind)] for turn in range(KINDS_A_POINT[size])]
        for scene, kind in product(playing[: SCENES_A_POINT[size]], kinds):
            yield Case(scene, Fault(name, kind))
    if size is Size.RELEASE:
        for first, second in product(found, found):
            kinds = chance.choices(list(Kind), k=2)
            yield Case(found[first][0], Fault(first, kinds[0]), Fault(second, kinds[1]))


async def try_case(world: World, case: Case, report: LayerReport) -> None:
    """Let it happen on a wiped world, let the others go on, and look at the books."""
    report.tried += 1
    await world.wipe(CREDITS)
    victim = Victim(world, case.fault)
    try:
        await victim.play(case.scene)
        if victim.is_frozen:
            await victim.end_sessions(idle_only=case.fault.kind is Kind.STALL)
            await _go_on(world, case.scene)
    except Exception as error:  # noqa: BLE001 - whatever the others end with is what was found
        report.failures.append(f"{case}: the others: {told(error)}")
    finally:
        await victim.thaw()
    if not victim.has_met:
        report.failures.append(f"{case}: the point was not reached")
    if case.second is not None:
        await _befall_the_next(world, case.scene, case.second)
    await _come_home(world, case.scene, report, str(case))


async def _befall_the_next(world: World, scene: Scene, fault: Fault) -> None:
    """Whoever takes over meets a fault as well, if it comes to that point."""

    async def take_over(beside: World) -> None:
        await _go_on(beside, scene)

    victim = Victim(world, fault)
    await victim.play(take_over)
    if victim.is_frozen:
        await victim.end_sessions(idle_only=fault.kind is Kind.STALL)
        await _go_on(world, scene)
    await victim.thaw()


async def _come_home(world: World, scene: Scene, report: LayerReport, what: str) -> None:
    try:
        await _go_on(world, scene)
        await _assert_home(world, scene)
    except Exception as error:  # noqa: BLE001 - whatever is wrong with the books is what was found
        report.failures.append(f"{what}: {told(error)}")


async def _go_on(world: World, scene: Scene) -> None:
    """The customer asks again, the operator too, and the workers do all that is due until nothing is left."""
    await world.knobs(reset=True)
    scenes.crossroads(world)
    model = scenes.SCENES[scene]
    if model is None:
        await scene(world)
    else:
        await scenes.submit(world, model)
    for seconds in HOMEWARDS_S:
        await world.pass_time(seconds=seconds)
        await _do_everything(world)
        if not await world.value(_LEFT):
            break
    await world.graph.reconcile.step()


async def _do_everything(world: World) -> None:
    graph = world.graph
    await graph.sweep.tidy()
    for name in await world.busy_providers():
        await world.dispatch(name)
        await _until_drawn(world)
        await world.look(name)
    await Reroute(graph.context).evacuate()
    await scenes.copy(world)
    await graph.sweep.wake()
    await graph.retention.step()
    await graph.uploads.expire()
    await scenes.deliver(world)
    await graph.notify.tidy()


async def _until_drawn(world: World) -> None:
    """Give the lab the moment that an end takes; what is never drawn is not waited for."""
    for _ in range(20):
        items = (await world.lab_ledger())["items"][-3:]
        if all(item["outcome"] != "open" for item in items):
            return
        await asyncio.sleep(0.002)


async def _assert_home(world: World, scene: Scene) -> None:
    assert await world.rows("SELECT id, state FROM tasks WHERE finished_at IS NULL") == [], "never came home"
    assert await world.value(_LEFT) == 0, "a webhook was never delivered"
    wanted = 0 if scenes.SCENES[scene] is None else 1
    found = await world.rows("SELECT id FROM tasks")
    assert len(found) == wanted, f"{len(found)} tasks came of one wish"
    await assert_books(world)
    references = {row["id"].hex for row in found}
    items = [item for item in (await world.lab_ledger())["items"] if item["reference"][:32] in references]
    made = [item["reference"] for item in items if item["outcome"] == "done"]
    assert len(made) <= 1, f"was generated as {made}"
    if scene is scenes.granted:
        assert await world.balance() == (CREDITS + scenes.GRANTED, 0), (
            "credits were given twice, or not at all"
        )
    await world.pass_time(days=3)
    await world.graph.retention.prune()  # bytes whose row was never written are nobody's, for two days
    findings = examine(world.database, world.graph.context.store)
    faults = [f"{one.check} {one.subject} {one.detail}" async for one in findings if not one.is_information]
    assert faults == [], f"doctor: {faults}"
