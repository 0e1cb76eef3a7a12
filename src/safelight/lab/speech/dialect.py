"""The base of every dialect: what an upstream is, as data, and the few functions that word it.

How to write one, in this order (`dialects/kling.py` and the folder `dialects/fal` are the ones to imitate):

1. A file `dialects/<name>.py` (or a folder) with one subclass of `Dialect`, and `DIALECT = <the class>` at its
   end. It is found by its name, and served under `/<name>`; nothing else has to be edited.
2. Say who it is: `name`, `shape` (`sync`, `poll` or `callback`), `features`, `credentials` (from `keys.py`).
   Tables stand at the top of the module, or in a second one if the dialect is a folder like `fal/`.
3. `routes`: a tuple of `Route(method, path, role, do)`. The role is what the knobs know it by; `do` names the
   method. Where paths say nothing (RPC), `when` tells calls apart.
4. `authenticate(call)`: raise `self.refused("credentials", <way>)` unless the key, token or signature is right.
5. One reader per submit route: `async def read_…(call) -> Submit`. Take every field out of `call.fields()` (or
   `call.form()`) with its type and bounds, then `close()` it, so that what the upstream does not know is
   refused. Read pictures with `await self.picture(…)`: their hashes go to `inputs` and `mask`. What has to
   be echoed later goes to `details`.
6. `fault(fault)`: the upstream's error body for any mistake in what was sent.
7. `accepted(call, view)`: the answer to a submit, where that has an id; `drawn(call, view)`: where it has
   the pictures. `record(view)`: the job as polls and callbacks show it. Map `view.phase` by `view.word(…)`.
8. The methods of the other routes. `self.look(job)` is a poll's view (it counts, and shows unknown words);
   `self.view(job)` is any other's. `self.find(id)` finds a job or refuses.
9. Callbacks: `notice(job, moment)` says which moments are told and how; `signing` signs them.
10. `options`: those of customers' options that the upstream knows, by our names, each with a value to try.
    `variants`, if there are oddities that are neither a refusal nor a bad ending: a name and a sentence for
    each; `view.job.fate.variant` says which one is asked for.
11. `refusals` and `endings`: every documented way of saying no, named, by situation. Real refusals use the
    same ways (`self.refused(situation, way)`), so that they are worded once.
12. `tests/lab/dialects/speakers/<name>.py`: how a right client submits and polls. The general tests then
    go through every way, every gateway and a restart; what is particular gets its own `test_<name>.py`.

Idempotency keys and unique references: give the Submit a `key` (and a `fingerprint`), and say in `repeated`
what a second one gets. Knobs need nothing: the desk and the studio do them for every dialect.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar
from uuid import uuid4

from safelight.lab.books import Books
from safelight.lab.job import Job
from safelight.lab.painter import Painter
from safelight.lab.records import DREAMING_LOOKS
from safelight.lab.results import Results
from safelight.lab.signatures import Scheme, Unsigned
from safelight.lab.situations import ENDINGS, REFUSALS, UnknownWay
from safelight.lab.speech.call import Call
from safelight.lab.speech.features import Features
from safelight.lab.speech.fields import Fault, Path
from safelight.lab.speech.inputs import Inputs, Picture
from safelight.lab.speech.options import Option
from safelight.lab.speech.reply import Ending, Refused, Reply, Stream, Way
from safelight.lab.speech.routes import Route
from safelight.lab.speech.times import http_date, iso_time
from safelight.lab.speech.view import View
from safelight.lab.studio import Studio
from safelight.lab.submits import Submit
from safelight.lab.voice import RETRY_GAPS_S, Notice

__all__ = ["Dialect", "Features", "Workshop", "http_date", "iso_time"]


@dataclass(frozen=True, slots=True)
class Workshop:
    """The parts of the lab that dialects work with."""

    studio: Studio
    books: Books
    results: Results
    painter: Painter
    inputs: Inputs


class Dialect:
    """One upstream; see the top of this file."""

    name: ClassVar[str]
    shape: ClassVar[str]
    routes: ClassVar[tuple[Route, ...]]
    features: ClassVar[Features] = Features()
    credentials: ClassVar[Mapping[str, str]] = {}
    refusals: ClassVar[Mapping[str, tuple[Way, ...]]] = {}
    endings: ClassVar[Mapping[str, tuple[Ending, ...]]] = {}
    options: ClassVar[Mapping[str, Option]] = {}
    signing: ClassVar[Scheme] = Unsigned()
    variants: ClassVar[Mapping[str, str]] = {}
    """Oddities that are no refusal and no bad ending, with what they are; the knob `variant` asks for one."""
    retry_gaps_s: ClassVar[Sequence[float]] = RETRY_GAPS_S
    notice_shares: ClassVar[Sequence[float]] = (0.0,)

    def __init__(self, workshop: Workshop) -> None:
        self.workshop = workshop

    # ---- what a dialect says ----

    async def authenticate(self, call: Call) -> None:
        """Raise `self.refused("credentials", …)` unless the caller proves itself."""

    def fault(self, fault: Fault) -> Reply:
        """The upstream's words for a mistake in what was sent."""
        raise NotImplementedError

    def nowhere(self, call: Call) -> Reply:
        """The upstream's words for a path or method that it does not have."""
        return Reply(404, "Not Found", content_type="text/plain")

    def accepted(self, call: Call, view: View) -> Reply:
        """The answer to an accepted submit that is answered with an id."""
        return Reply(200, self.record(view))

    async def drawn(self, call: Call, view: View) -> Reply:
        """The answer to a submit that is answered with its pictures; `self.pictures(job)` has their bytes."""
        raise NotImplementedError

    def record(self, view: View) -> Any:
        """The job as polls show it."""
        raise NotImplementedError

    def notice(self, job: Job, moment: str) -> Notice | None:
        """The callback at a moment: `running`, `end`, or `forged`; None where the upstream sends none."""
        return self.told(job, self.record(self.view(job, moment)), moment)

    def scheme(self, job: Job) -> Scheme:
        """How callbacks about a job are signed; a dialect whose secrets come with the submit says its own."""
        return self.signing

    async def repeated(self, call: Call, submit: Submit, job: Job) -> Reply | Stream:
        """The answer to a submit whose key is known: the first one's again, if it is the same submit."""
        if submit.fingerprint != job.fingerprint:
            raise self.refused("invalid_request", "key_reused")
        return await self.answer(call, job)

    def new_id(self) -> str:
        """A fresh id in the upstream's form."""
        return str(uuid4())

    def is_taken(self, status: int) -> bool:
        """Whether a receiver's answer means that it took the callback."""
        return 200 <= status < 300

    # ---- what a dialect may use ----

    async def answer(self, call: Call, job: Job) -> Reply | Stream:
        """The answer to an accepted submit; a dialect that streams while it draws says its own."""
        if job.shape != "sync":
            return self.accepted(call, self.view(job))
        await job.ended.wait()
        view = self.view(job)
        if view.ending is not None and view.ending.reply is not None:
            return view.ending.reply
        return await self.drawn(call, view)

    def view(self, job: Job, moment: str = "") -> View:
        """The job now, or as a callback tells it at a moment."""
        if moment == "running":
            phase = "unknown" if job.fate.is_dreaming else "running"
        else:
            phase = "failed" if moment == "forged" else job.status
        ending = self.ending(phase, job.fate.ending_way if job.finished_at is not None else "")
        return self._seen(job, phase, ending)

    def look(self, job: Job) -> View:
        """The job as a poll sees it: counted, and with an unknown word in the first looks if so fated."""
        self.workshop.books.polls += 1
        job.looks += 1
        if job.fate.is_dreaming and job.looks <= DREAMING_LOOKS:
            return self._seen(job, "unknown", None)
        return self.view(job)

    def find(self, job_id: str, way: str | None = None) -> Job:
        """The job of this id, or a refusal."""
        job = self.workshop.books.jobs.get(job_id)
        if job is None or job.dialect != self.name:
            raise self.refused("not_found", way)
        return job

    def find_by_reference(self, reference: str) -> Job | None:
        """The latest job with the caller's reference."""
        found = self.workshop.books.find(self.name, reference)
        return found[-1] if found else None

    def jobs(self) -> Sequence[Job]:
        """All jobs of this upstream, oldest first."""
        return self.workshop.books.line_up(self.name)

    async def cancel(self, job: Job) -> bool:
        """Cancel an open job; False if it has come to another end first."""
        return await self.workshop.studio.cancel(job)

    async def pictures(self, job: Job) -> list[bytes]:
        """The bytes of the pictures that came out."""
        return [await self.workshop.painter.picture(job, index) for index in range(job.delivered)]

    async def picture(self, source: object, path: Path, **limits: Any) -> Picture:
        """A picture that came along as text; see `Inputs.read`."""
        return await self.workshop.inputs.read(source, path, **limits)

    def account_callback_url(self) -> str | None:
        """Where the account's callbacks go: the knob `callback_urls`, by the dialect's name."""
        return self.workshop.studio.moods.of(self.name).callback_urls.get(self.name)

    def told(self, job: Job, body: Any, moment: str) -> Notice:
        """A notice with a message id that stays the same at every try."""
        return Notice(body, id=f"msg_{job.id}_{moment}")

    def refused(self, situation: str, way: str | None = None) -> Refused:
        """One of the published refusals, to be raised; the first of its situation if none is named."""
        return Refused(self.way(situation, way).made())

    def way(self, situation: str, name: str | None = None) -> Way:
        """One of the published ways."""
        for way in self.refusals.get(situation, ()):
            if name in {None, way.name}:
                return way
        raise UnknownWay(f"{self.name} has no way {name or ''} of {situation}")

    def ending(self, situation: str, name: str = "") -> Ending | None:
        """One of the published endings; None for a good end, or where the upstream has none of the kind."""
        found = self.endings.get(situation, ())
        return next((ending for ending in found if ending.name == name), found[0] if found else None)

    # ---- what the lab asks ----

    def ways_of_ending(self) -> Mapping[str, Sequence[str]]:
        """The names of its ways of ending badly, by situation."""
        return {situation: [way.name for way in ways] for situation, ways in self.endings.items()}

    def is_billed(self, situation: str, way: str) -> bool:
        """Whether it takes money for such an ending."""
        ending = self.ending(situation, way)
        return ending is not None and ending.is_billed

    def declined(self, situation: str, way: str | None, pick: int) -> Exception:
        """What to raise for a refusal: the named way, or the one that the dice picked."""
        ways = self.refusals.get(situation, ())
        if not ways:
            return UnknownWay(f"{self.name} has no {situation}")
        return self.refused(situation, way or ways[pick % len(ways)].name)

    def describe(self) -> dict[str, Any]:
        """The dialect as JSON, for those who test against it."""
        return {
            "name": self.name,
            "shape": self.shape,
            "refusals": {word: [way.name for way in self.refusals.get(word, ())] for word in REFUSALS},
            "endings": {word: [way.name for way in self.endings.get(word, ())] for word in ENDINGS},
            "variants": dict(self.variants),
            "options": {name: asdict(option) for name, option in self.options.items()},
            "features": asdict(self.features) | {"signature": self.signing.family},
            "credentials": dict(self.credentials),
        }

    def _seen(self, job: Job, phase: str, ending: Ending | None) -> View:
        is_over = phase == job.status and job.finished_at is not None
        features = self.features
        urls = self.workshop.results.urls(
            job,
            life_s=features.result_life_s,
            since=None if features.is_refreshable else job.finished_at,
        )
        return View(
            job=job,
            phase=phase,
            progress=_progress(job, phase),
            position=self.workshop.studio.position(job),
            urls=urls if is_over else (),
            ending=ending,
        )


def _progress(job: Job, phase: str) -> int:
    at = job.finished_at or time.time()
    if phase == "done":
        return 100
    if at <= job.starts_at:
        return 0
    return min(99, int(100 * (at - job.starts_at) / (job.fate.latency_s or 0.001)))
