"""The lifecycle's verbs in any order, against a small model; the lab's own books are the witness."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule, run_state_machine_as_test

from safelight.domain.review import Choice
from tests.proof import model_steps
from tests.proof.model_play import GRANTED, SHAPES, Play
from tests.proof.model_steps import Step
from tests.proof.model_truth import CALM, Fate
from tests.proof.report import LayerReport, Size, told
from tests.world import Server, World, running_server, running_world

PLAYS = {Size.CI: 100, Size.PROVE: 300, Size.RELEASE: 10_000}
STEPS = {Size.CI: 15, Size.PROVE: 30, Size.RELEASE: 50}
PORTION = 250
"""Plays on one world: the lab's books grow with each of them."""
NOBODY_LISTENS = "http://127.0.0.1:9"
TIMES_S = (1, 5, 60, 400, 3_700, 90_000, -3_600, -86_400)

shapes = st.sampled_from(SHAPES)
fates = st.sampled_from([fate.value for fate in Fate])
numbers = st.integers(0, 5)
flags = st.integers(0, 1)


class Stage:
    """One world and the loop it lives in, for plays that a synchronous machine drives."""

    def __init__(self, runner: asyncio.Runner, world: World) -> None:
        self.runner = runner
        self.world = world
        self.plays = 0
        self.steps = 0
        self.failed: list[Step] = []

    def play(self, steps: list[Step]) -> None:
        """Play given steps from the beginning to the end."""
        play = self.begin()
        for step in steps:
            self.runner.run(play.do(step))
        self.runner.run(play.close())

    def begin(self) -> Play:
        self.plays += 1
        play = Play(self.world)
        self.runner.run(play.open())
        return play


@contextmanager
def staged(server: Server) -> Iterator[Stage]:
    """A stage in the thread that calls."""
    with asyncio.Runner() as runner:
        made = running_world(server, knobs=CALM, granted=GRANTED, public_url=NOBODY_LISTENS)
        world = runner.run(made.__aenter__())
        try:
            yield Stage(runner, world)
        finally:
            runner.run(made.__aexit__(None, None, None))


class Machine(RuleBasedStateMachine):
    """Chooses the steps; `stage` is where they are played."""

    stage: ClassVar[Stage]

    def __init__(self) -> None:
        super().__init__()
        self.play = self.stage.begin()
        self.has_failed = False

    def step(self, verb: str, **told_: int | str) -> None:
        self.stage.steps += 1
        self._guard(self.play.do(Step(verb, told_)))

    def _guard(self, work: Any) -> None:
        try:
            self.stage.runner.run(work)
        except BaseException:
            self.has_failed = True
            self.stage.failed = list(self.play.steps)
            raise

    def has_tasks(self) -> bool:
        return bool(self.play.tasks)

    @rule(shape=shapes, n=st.integers(1, 3), key=numbers)
    def accept(self, shape: str, n: int, key: int) -> None:
        self.step("accept", shape=shape, n=n, key=key)

    @precondition(has_tasks)
    @rule(shape=shapes, fate=fates)
    def dispatch(self, shape: str, fate: str) -> None:
        self.step("dispatch", shape=shape, fate=fate)

    @precondition(has_tasks)
    @rule(shape=shapes)
    def claim(self, shape: str) -> None:
        self.step("claim", shape=shape)

    @precondition(lambda self: bool(self.play.claims))
    @rule(fate=fates)
    def resume(self, fate: str) -> None:
        self.step("resume", fate=fate)

    @precondition(has_tasks)
    @rule(shape=shapes, is_down=flags)
    def look(self, shape: str, is_down: int) -> None:
        self.step("look", shape=shape, is_down=is_down)

    @precondition(has_tasks)
    @rule(
        task=numbers,
        kind=st.sampled_from(["truth", "running", "stranger", "forged"]),
        copies=st.integers(1, 2),
    )
    def callback(self, task: int, kind: str, copies: int) -> None:
        self.step("callback", task=task, kind=kind, copies=copies)

    @precondition(has_tasks)
    @rule(is_full=flags)
    def archive(self, is_full: int) -> None:
        self.step("archive", is_full=is_full)

    @precondition(has_tasks)
    @rule(task=numbers)
    def cancel(self, task: int) -> None:
        self.step("cancel", task=task)

    @precondition(has_tasks)
    @rule(task=numbers, choice=st.sampled_from([choice.value for choice in Choice]))
    def decide(self, task: int, choice: str) -> None:
        self.step("decide", task=task, choice=choice)

    @precondition(has_tasks)
    @rule(shape=shapes)
    def reconcile(self, shape: str) -> None:
        self.step("reconcile", shape=shape)

    @precondition(has_tasks)
    @rule()
    def sweep(self) -> None:
        self.step("sweep")

    @precondition(has_tasks)
    @rule(seconds=st.sampled_from(TIMES_S))
    def wait(self, seconds: int) -> None:
        self.step("wait", seconds=seconds)

    def teardown(self) -> None:
        if not self.has_failed:
            self._guard(self.play.close())


async def run(size: Size, seed: int) -> LayerReport:
    """As many plays as the size asks for, each portion with the next seed, and those that failed once."""
    report = LayerReport("model", seed)
    async with running_server() as server:
        await server.hurry()
        await asyncio.to_thread(_play_all, server, size, report)
    return report


def _play_all(server: Server, size: Size, report: LayerReport) -> None:
    steps, left, seed = 0, PLAYS[size], report.seed
    while left > 0 and not report.failures:
        with staged(server) as stage:
            if left == PLAYS[size]:
                replay_kept(stage, report)
            _play_portion(stage, size, report, plays=min(left, PORTION), seed=seed)
            steps += stage.steps
        left -= PORTION
        seed += 1
    report.figures["steps"] = steps


def replay_kept(stage: Stage, report: LayerReport) -> None:
    """The plays that failed once."""
    for path in model_steps.kept():
        report.tried += 1
        try:
            stage.play(model_steps.read(path))
        except AssertionError as error:
            report.failures.append(f"{path.name}: {told(error)}")
    report.figures["kept"] = len(model_steps.kept())


def _play_portion(stage: Stage, size: Size, report: LayerReport, *, plays: int, seed: int) -> None:
    Machine.stage = stage
    settings = hypothesis.settings(
        max_examples=plays,
        stateful_step_count=STEPS[size],
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        print_blob=False,
    )
    before = stage.plays
    try:
        run_state_machine_as_test(hypothesis.seed(seed)(Machine), settings=settings)
    except Exception as error:  # noqa: BLE001 - whatever a play ends with is what it found
        path = model_steps.keep(f"seed-{seed}", stage.failed, told(error))
        report.failures.append(f"seed {seed}: {told(error)}; the steps are in {path.name}")
    report.tried += stage.plays - before
