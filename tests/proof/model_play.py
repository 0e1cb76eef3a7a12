"""A play: steps carried out on a real safelight, and after each of them the rows compared with the small model."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from safelight.domain.audit import Actor
from safelight.domain.review import Choice
from safelight.domain.task import State
from safelight.errors import (
    AssetError,
    CallbackRejected,
    ConfigurationError,
    ProviderError,
    RequestError,
    StaleAttempt,
)
from safelight.lifecycle.accept import Accepted, Wish
from safelight.lifecycle.dispatch import Claim
from safelight.lifecycle.doctor import examine
from safelight.lifecycle.review import Ruling
from safelight.telemetry import set_fault_hook
from tests.lifecycle.invariants import assert_books
from tests.lifecycle.upstreams import call_back, picture, signed, token_of
from tests.proof import model_truth as truth
from tests.proof.model_steps import Step
from tests.proof.model_truth import Fate, Known, Moves, Witness
from tests.world import World

SHAPES = ("lab-callback", "lab-poll", "lab-sync")
GRANTED = 12
OPERATOR = Actor("admin:proof", "192.0.2.1", "request-1")
HOMEWARDS_S = (
    2.0,
    10.0,
    30.0,
    120.0,
    600.0,
    4_000.0,
    90_000.0,
    90_000.0,
    700.0,
    90_000.0,
    90_000.0,
    200_000.0,
)
"""Steps of the clock within which every task has to come home once nothing goes wrong any more."""
WORDS: dict[Choice, dict[str, Any]] = {
    Choice.CHECK_AGAIN: {},
    Choice.RESUBMIT: {"reason_code": "risk_accepted", "note": "the shop waits for it"},
    Choice.ATTACH_RESULT: {"files": [picture()]},
    Choice.FAIL_AND_RELEASE: {"reason_code": "operator_decision"},
    Choice.ACCEPT_AS_DONE: {},
}
_TASKS = """
SELECT tasks.id, state, version, attempt, coalesce(settlements.captured, 0) AS captured
FROM tasks LEFT JOIN settlements ON settlements.task_id = tasks.id
"""


@contextlib.contextmanager
def raising(place: str, error: Exception | None) -> Iterator[None]:
    """Every call that comes to this fault point ends with the error."""

    def hook(name: str) -> None:
        if name == place and error is not None:
            raise error

    set_fault_hook(hook)
    try:
        yield
    finally:
        set_fault_hook(None)


T = TypeVar("T")


async def _answer(call: Awaitable[T]) -> T | RequestError:
    """What a verb says, be it yes or no."""
    try:
        return await call
    except RequestError as error:
        return error


@dataclass
class Play:
    """One play on a wiped world."""

    world: World
    steps: list[Step] = field(default_factory=list)
    tasks: list[Known] = field(default_factory=list)
    receipts: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    """What was said under each key: the body, and the receipt for it."""
    claims: list[tuple[Claim, float]] = field(default_factory=list)
    """Claimed and not sent, each with the clock's shift at that moment."""
    shift_s: float = 0.0
    slow: set[str] = field(default_factory=set)
    """References of jobs that are never drawn."""
    began_at: float = field(default_factory=time.time)

    async def open(self) -> None:
        """Begin on a wiped world with few credits."""
        await self.world.wipe(GRANTED)
        await self.world.knobs(reset=True)

    async def do(self, step: Step) -> None:
        """Carry out one step and hold the rows against the model."""
        self.steps.append(step)
        moves, is_declined = await getattr(self, f"_{step.verb}")(**step.told)
        await self._compare(step, moves, is_declined=is_declined)

    async def close(self) -> None:
        """Nothing goes wrong any more: everything comes home, and all books agree."""
        await self.world.knobs(reset=True)
        for seconds in HOMEWARDS_S:
            await self._pass(seconds)
            for shape in await self.world.busy_providers():
                await self.world.dispatch(shape)
                await self._until_drawn()
                await self.world.look(shape)
            await self.world.archive_all()
            await self.world.graph.sweep.wake()
            await self.world.graph.sweep.tidy()
            if not await self.world.value("SELECT count(*) FROM tasks WHERE finished_at IS NULL"):
                break
        left = await self.world.rows("SELECT id, state FROM tasks WHERE finished_at IS NULL")
        assert left == [], "never came home"
        await assert_books(self.world)
        await self._assert_witness()
        await self.world.pass_time(days=3)
        await (
            self.world.graph.retention.prune()
        )  # bytes whose row was never written are nobody's, for two days
        findings = examine(self.world.database, self.world.graph.context.store, with_bytes=True)
        faults = [
            f"{one.check} {one.subject} {one.detail}" async for one in findings if not one.is_information
        ]
        assert faults == [], f"doctor: {faults}"

    # ------------------------------------------------------------------------------------ steps

    async def _accept(self, shape: str, n: int, key: int) -> tuple[Moves, bool]:
        body = f"{shape} {n}"
        said = self.receipts.get(f"key-{key}")
        is_affordable = self._available() >= n
        answer = await self._try_accept(shape, n, key, body)
        if said is not None and said[0] == body:
            assert isinstance(answer, Accepted), f"a replay was refused: {answer!r}"
            assert (answer.is_replayed, answer.body) == (True, said[1])
        elif said is not None or not is_affordable:
            assert isinstance(answer, RequestError), "it should have been refused"
            assert answer.status == (402 if said is None else 422)
        else:
            assert isinstance(answer, Accepted), f"it was refused: {answer!r}"
            assert not answer.is_replayed
            self.receipts[f"key-{key}"] = (body, answer.body)
            self.tasks.append(Known(answer.task_id, shape, n))
        return truth.NOTHING, False

    async def _try_accept(self, shape: str, n: int, key: int, body: str) -> Accepted | RequestError:
        model = self.world.graph.context.catalog.find(shape)
        assert model is not None
        fingerprint = hashlib.sha256(body.encode()).digest()
        wish = Wish(
            self.world.account_id, f"key-{key}", fingerprint, model, "generate", body, n=n, size="64x64"
        )
        return await _answer(self.world.accept.accept(wish))

    async def _dispatch(self, shape: str, fate: str) -> tuple[Moves, bool]:
        meant = truth.fate_at([shape], fate)
        async with self._fated(meant):
            await self.world.dispatch(shape)
        after = truth.after_answer(shape, meant)
        return dict.fromkeys(truth.WAITING, after), meant is Fate.DECLINED

    async def _claim(self, shape: str) -> tuple[Moves, bool]:
        """A worker claims, and dies or sleeps before it sends."""
        claims = await self.world.graph.dispatch.claim(shape, 8)
        self.claims += [(claim, self.shift_s) for claim in claims.items]
        return truth.CLAIMED, False

    async def _resume(self, fate: str) -> tuple[Moves, bool]:
        """The worker wakes up and sends what it had claimed; its own clock has gone on as well."""
        meant = truth.fate_at([claim.task.provider for claim, _ in self.claims], fate)
        moves: dict[State, frozenset[State]] = {}
        async with self._fated(meant):
            for claim, shift_s in self.claims:
                asleep_s = max(self.shift_s - shift_s, 0.0)
                with contextlib.suppress(StaleAttempt):
                    await self.world.graph.dispatch.send(
                        replace(claim, claimed_at=claim.claimed_at - asleep_s)
                    )
                for state, targets in truth.resumed(claim.task.provider, meant).items():
                    moves[state] = moves.get(state, frozenset()) | targets
        self.claims.clear()
        return moves, meant is Fate.DECLINED

    async def _look(self, shape: str, is_down: int) -> tuple[Moves, bool]:
        """The next looks at one provider, once they are due; or nobody can be asked."""
        due_s = await self.world.value(
            "SELECT extract(epoch FROM min(wake_at) - clock_now())::float8 FROM tasks"
            " WHERE provider = $1 AND state IN ('submitting', 'uncertain', 'running', 'review')",
            shape,
        )
        await self._pass(min(max(due_s or 0.0, 0.0), 700.0) + 0.01)
        down = ProviderError("503") if is_down else None
        with raising("before_poll", down):
            await self.world.look(shape)
        return truth.LOOKED, False

    async def _archive(self, is_full: int) -> tuple[Moves, bool]:
        full = AssetError("storage", "no space is left", is_retryable=True) if is_full else None
        with raising("before_put", full):
            await self.world.archive_all()
        return truth.COPIED, False

    async def _sweep(self) -> tuple[Moves, bool]:
        await self.world.graph.sweep.wake()
        await self.world.graph.sweep.tidy()
        return truth.TIDIED, False

    async def _reconcile(self, shape: str) -> tuple[Moves, bool]:
        today = await self.world.value("SELECT (clock_now() AT TIME ZONE 'UTC')::date")
        with contextlib.suppress(ConfigurationError, StaleAttempt):  # the day has only just begun
            begun = await self.world.graph.reconcile.begin(shape, today)
            if begun is not None:
                await self.world.graph.reconcile.carry_out(begun)
        return truth.RECONCILED, False

    async def _wait(self, seconds: int) -> tuple[Moves, bool]:
        await self._pass(seconds)
        return truth.NOTHING, False

    async def _cancel(self, task: int) -> tuple[Moves, bool]:
        known = self.tasks[task % len(self.tasks)]
        answer = await _answer(self.world.cancel.cancel(self.world.account_id, known.task_id))
        if isinstance(answer, RequestError):
            assert answer.status == 409
            assert known.state in (State.ARCHIVING, State.REVIEW) or not known.is_open
            return truth.NOTHING, False
        known.is_canceled = True
        if known.state in truth.WAITING:
            assert answer == "canceled"
            return {known.state: frozenset({State.CANCELED})}, False
        assert answer == "requested"
        assert known.state in (State.SUBMITTING, State.UNCERTAIN, State.RUNNING)
        return truth.NOTHING, False

    async def _callback(self, task: int, kind: str, copies: int) -> tuple[Moves, bool]:
        """A callback about the current attempt: the truth, an old notice, another attempt's, or a forgery."""
        known = self.tasks[task % len(self.tasks)]
        record = await self._record(known) if known.shape == "lab-callback" else None
        if record is None:
            return truth.NOTHING, False
        if kind == "running":
            record = {
                **record,
                "status": "running",
                "images": [],
                "error": None,
                "cost": 0,
                "finished_at": None,
            }
        number = known.number + 1 if kind == "stranger" else known.number
        parcel = signed(record, b"a stranger's secret" if kind == "forged" else b"lab-secret")
        for _ in range(copies):
            try:
                await call_back(self.world, token_of(self.world, known.task_id, number), parcel)
                assert kind != "forged", "a forged callback was taken"
            except CallbackRejected:
                assert kind == "forged", "a genuine callback was refused"
        if kind in ("forged", "stranger"):
            return truth.NOTHING, False
        return {known.state: truth.NEWS} if known.state in truth.AFLOAT else truth.NOTHING, False

    async def _decide(self, task: int, choice: str) -> tuple[Moves, bool]:
        known = self.tasks[task % len(self.tasks)]
        meant = Choice(choice)
        ruling = Ruling(known.task_id, known.version, meant, **WORDS[meant])
        answer = await _answer(self.world.graph.review.decide(ruling, OPERATOR))
        if isinstance(answer, RequestError):
            may_refuse = known.state is not State.REVIEW or meant in (Choice.RESUBMIT, Choice.ACCEPT_AS_DONE)
            assert may_refuse, f"a decision was refused: {answer!r}"
            assert answer.status == 409
            return truth.NOTHING, False
        assert known.state is State.REVIEW, "a decision about what was not in review"
        known.is_risked = known.is_risked or meant is Choice.RESUBMIT
        known.is_decided = known.is_decided or meant in (Choice.ATTACH_RESULT, Choice.ACCEPT_AS_DONE)
        after = {
            Choice.CHECK_AGAIN: State.REVIEW,
            Choice.RESUBMIT: State.RETRYING,
            Choice.FAIL_AND_RELEASE: State.FAILED,
        }.get(meant, State.ARCHIVING)
        return {State.REVIEW: frozenset({after})}, False

    # -------------------------------------------------------------------------------- comparing

    async def _compare(self, step: Step, moves: Moves, *, is_declined: bool) -> None:
        witness = await self._witness()
        rows = {row["id"]: row for row in await self.world.rows(_TASKS)}
        assert rows.keys() == {known.task_id for known in self.tasks}, "tasks were lost, or made twice"
        for known in self.tasks:
            row = rows[known.task_id]
            state = State(row["state"])
            allowed = moves.get(known.state, frozenset()) | {known.state}
            assert state in allowed, f"{step}: {known.state} to {state}"
            fault = truth.judge(known, state, row["attempt"], witness, is_declined=is_declined)
            assert fault is None, f"{step}: the task {fault}"
            known.state, known.number, known.version = state, row["attempt"], row["version"]
            known.captured = row["captured"]
            self._assert_captured(known, witness)
        assert await self.world.balance() == (self._available(), self._held()), f"{step}: the balance"

    def _assert_captured(self, known: Known, witness: Witness) -> None:
        if known.state is not State.SUCCEEDED:
            assert known.captured == 0, f"{known.state}, and {known.captured} were captured"
        elif not known.is_decided:
            assert known.captured == witness[known.reference]["billed"], "not what the lab has delivered"

    def _held(self) -> int:
        return sum(known.n for known in self.tasks if known.is_open)

    def _available(self) -> int:
        return GRANTED - self._held() - sum(known.captured for known in self.tasks)

    async def _witness(self) -> Witness:
        async with self.world.session.get(f"{self.world.lab_url}/lab/ledger?last=100") as answer:
            items = json.loads(await answer.text())["items"]
        ours = {known.task_id.hex for known in self.tasks}
        return {item["reference"]: item for item in items if item["reference"][:32] in ours}

    async def _assert_witness(self) -> None:
        """At most one generation an attempt, which cost what it cost; none of one that we say was never accepted."""
        witness = await self._witness()
        for row in await self.world.rows("SELECT task_id, reference, outcome, cost FROM attempts"):
            item = witness.get(row["reference"])
            if item is None:
                continue
            assert item["times_accepted"] == 1
            is_risked = any(known.is_risked for known in self.tasks if known.task_id == row["task_id"])
            if row["outcome"] == "refused" and not is_risked:
                assert item["outcome"] in truth.ENDED_BADLY, "refused, and upstream it was made"
            is_decided = any(known.is_decided for known in self.tasks if known.task_id == row["task_id"])
            if row["outcome"] == "succeeded" and row["cost"] is not None and not is_decided:
                assert row["cost"] == item["billed"], "our books say another cost"

    # ---------------------------------------------------------------------------------- the lab

    @contextlib.asynccontextmanager
    async def _fated(self, fate: Fate) -> AsyncIterator[None]:
        knobs = truth.KNOBS.get(fate)
        if knobs:
            await self.world.knobs(reset=True, **knobs)
        try:
            with raising("before_submit", truth.turned_away(fate)):
                yield
        finally:
            if knobs:
                await self.world.knobs(reset=True)
        if fate in (Fate.SLOW, Fate.LOST_SLOW):
            self.slow |= await self._undrawn()
        await self._until_drawn()

    async def _undrawn(self) -> set[str]:
        witness = await self._witness()
        return {reference for reference, item in witness.items() if item["outcome"] == "open"}

    async def _until_drawn(self) -> None:
        """Wait for the jobs that are not to take for ever: the lab writes each end down first."""
        async with asyncio.timeout(60):
            while await self._undrawn() - self.slow:  # noqa: ASYNC110 - the lab tells only when asked
                await asyncio.sleep(0.002)

    async def _record(self, known: Known) -> dict[str, Any] | None:
        """The lab's record of the current attempt's job."""
        url = f"{self.world.lab_url}/callback/v1/jobs?since={self.began_at - 5}&limit=1000"
        async with self.world.session.get(url, headers={"Authorization": "Bearer lab-key"}) as answer:
            jobs = (await answer.json())["jobs"]
        return next((job for job in jobs if job["reference"] == known.reference), None)

    async def _pass(self, seconds: float) -> None:
        self.shift_s += seconds
        await self.world.pass_time(seconds=seconds)
