"""Runs every case against one provider and says what became of each."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
from structlog.testing import capture_logs

from safelight.cli.conformance.cases import Case, Chapter
from safelight.cli.conformance.lists import list_cases
from safelight.cli.conformance.looks import look_cases
from safelight.cli.conformance.mailbox import open_mailbox
from safelight.cli.conformance.notices import notice_cases
from safelight.cli.conformance.options import option_cases
from safelight.cli.conformance.streams import stream_cases
from safelight.cli.conformance.submits import submit_cases
from safelight.cli.conformance.tellings import telling_cases
from safelight.cli.conformance.workbench import Nonconformity, Workbench
from safelight.errors import ConfigurationError, SafelightError
from safelight.lab.child import start_lab
from safelight.lab.dialects import dialect_names
from safelight.providers.declaration import Declaration

CASE_WITHIN_S = 60.0
CHAPTERS: tuple[Chapter, ...] = (
    submit_cases,
    option_cases,
    stream_cases,
    look_cases,
    list_cases,
    notice_cases,
    telling_cases,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one case; `fault` is empty where the provider conforms."""

    case: str
    fault: str = ""

    @property
    def is_good(self) -> bool:
        return not self.fault


@asynccontextmanager
async def running_lab_child() -> AsyncIterator[str]:
    """A lab of its own for the run; gives its address."""
    with TemporaryDirectory(prefix="safelight-lab-") as folder:
        try:
            child = await start_lab(host="127.0.0.1", port=0, data_dir=Path(folder), knobs="{}")
        except OSError as error:
            raise ConfigurationError(f"the lab does not start: {error}") from None
        try:
            yield child.url
        finally:
            await child.stop()


@asynccontextmanager
async def open_workbench(declaration: Declaration, dialect: str, lab_url: str) -> AsyncIterator[Workbench]:
    """The provider before a running lab.

    Raises:
        ConfigurationError: the lab has no such dialect, or the declaration needs what the dialect has not.
    """
    # A connection that the lab has cut must not be found in the pool by the next case.
    connector = aiohttp.TCPConnector(force_close=True)
    jar = aiohttp.DummyCookieJar()
    async with aiohttp.ClientSession(connector=connector, trust_env=False, cookie_jar=jar) as session:
        described = await read_dialect(session, lab_url, dialect)
        async with open_mailbox() as mailbox:
            yield Workbench(declaration, described, lab_url, session, mailbox)


async def read_dialect(session: aiohttp.ClientSession, lab_url: str, name: str) -> Mapping[str, Any]:
    """How the lab describes one of its dialects."""
    if name not in dialect_names():
        raise ConfigurationError(f"the lab has no dialect {name!r}; there are {', '.join(dialect_names())}")
    async with session.get(f"{lab_url}/lab/dialects/{name}") as answer:
        found: Mapping[str, Any] = await answer.json()
    return found


def cases_of(bench: Workbench, first: Sequence[Chapter] = ()) -> Iterator[Case]:
    """Every case that applies, in the order of an attempt's life but for the chapters that come first."""
    for chapter in (*first, *(one for one in CHAPTERS if one not in first)):
        yield from chapter(bench)


async def run_cases(
    bench: Workbench,
    *,
    until_fault: bool = False,
    first: Sequence[Chapter] = (),
    tell: Callable[[Verdict], None] | None = None,
) -> list[Verdict]:
    """Run every case, and look at the end whether a secret was told anywhere."""
    verdicts: list[Verdict] = []
    with capture_logs() as logs:
        for case in cases_of(bench, first):
            verdict = await run_case(case)
            verdicts.append(verdict)
            if tell is not None:
                tell(verdict)
            if until_fault and not verdict.is_good:
                return verdicts
    verdicts.append(search_for_secrets(bench, [str(line) for line in logs]))
    if tell is not None:
        tell(verdicts[-1])
    return verdicts


async def run_case(case: Case) -> Verdict:
    """One case; one that takes too long, or breaks, has failed."""
    try:
        async with asyncio.timeout(CASE_WITHIN_S):
            await case.run()
    except Nonconformity as fault:
        return Verdict(case.name, str(fault))
    except TimeoutError:
        return Verdict(case.name, f"takes longer than {CASE_WITHIN_S:.0f} s")
    except SafelightError as error:
        return Verdict(case.name, f"breaks: {error}")
    return Verdict(case.name)


def search_for_secrets(bench: Workbench, logs: list[str]) -> Verdict:
    """No credential may be in a log line, in an error, in an excerpt."""
    name = "secrets: in no log line, error or excerpt"
    for credential, value in bench.dialect["credentials"].items():
        for text in (*bench.told, *logs):
            if value and value in text:
                return Verdict(name, f"the credential {credential} is told in: {text[:120]}")
    return Verdict(name)
