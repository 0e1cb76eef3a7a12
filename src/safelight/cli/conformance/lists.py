"""Cases about an upstream's list: what is in it, how an attempt is known in it, answers that are no list."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID

from safelight.cli.conformance.cases import Case
from safelight.cli.conformance.workbench import PROMPT, Nonconformity, Outcome, Workbench, expect
from safelight.domain.provider import AfterUncertain, AttemptRef, Submission, UpdateStatus, UpstreamRecord
from safelight.domain.recognition import Sight, Wanted, recognise
from safelight.errors import ProviderError

PAGES_MOST = 200
SMALL_PAGE = 5


def list_cases(bench: Workbench) -> Iterator[Case]:
    """Every case about a list, where there is one."""
    if not bench.capabilities.can_list:
        return
    yield Case("listed: every attempt of the window once", partial(_listed, bench))
    yield Case("listed: over several pages", partial(_in_pages, bench))
    for how in ("html_502", "garbage_200", "truncated_json", "empty_200"):
        yield Case(f"listed: {how} is no list", partial(_says_nothing, bench, how))
    for way in bench.dialect["refusals"].get("upstream_fault", ()):
        yield Case(f"listed: upstream_fault ({way}) is no list", partial(_refused, bench, way))
    if bench.capabilities.after_uncertain is AfterUncertain.LIST:
        shown = bench.dialect["features"]["list_shows"]
        if "prompt" in shown:
            yield Case("listed: an attempt is known by its prompt", partial(_known, bench, by_prompt=True))
        if "callback_url" in shown:
            yield Case("listed: an attempt is known by its address", partial(_known, bench, by_prompt=False))


async def _listed(bench: Workbench) -> None:
    await bench.turn()
    since, started, records = await _three(bench, [PROMPT] * 3)
    refs = [attempt.provider_ref for _, attempt in started]
    ended = {record.update.status for record in records if record.provider_ref in refs}
    expect(ended <= {UpdateStatus.SUCCEEDED}, f"finished attempts are listed as {ended}")
    listed = [record.provider_ref for record in records]
    expect(all(listed.count(str(ref)) == 1 for ref in refs), "an attempt is not listed exactly once")
    early = await bench.provider.list_records(since - timedelta(days=2), since - timedelta(days=1), None)
    expect(not early.records, "records outside the window are listed")


async def _in_pages(bench: Workbench) -> None:
    """One attempt more than a page holds: each is there, and once."""
    await bench.turn()
    declared = bench.declaration.listing
    listing = declared and declared.model_copy(update={"limit": SMALL_PAGE})
    small = replace(bench, declaration=bench.declaration.model_copy(update={"listing": listing}))
    since = datetime.now(UTC) - timedelta(seconds=2)
    started = [(await bench.started())[1] for _ in range(SMALL_PAGE + 1)]
    records = await _read(small, since, datetime.now(UTC) + timedelta(seconds=2))
    listed = [record.provider_ref for record in records]
    expect(
        all(listed.count(str(attempt.provider_ref)) == 1 for attempt in started),
        f"with pages of {SMALL_PAGE} an attempt is not listed exactly once",
    )


async def _known(bench: Workbench, *, by_prompt: bool) -> None:
    await bench.turn()
    prompts = [f"{PROMPT}, picture {number}" if by_prompt else PROMPT for number in range(3)]
    _, started, records = await _three(bench, prompts, has_address=not by_prompt)
    mine = [record for record in records if record.prompt in prompts]
    for number, (submission, attempt) in enumerate(started):
        path = bench.callback_path(submission.reference).rpartition("/")[2]
        owner = (UUID(int=number), 1)
        wanted = Wanted(owner, submission.reference, submission.prompt, submission.upstream_model)
        seen = recognise(
            mine,
            wanted,
            is_complete=True,
            read_token={path: owner}.get,
        )
        found = seen.record.provider_ref if seen.record else None
        expect((seen.sight, found) == (Sight.FOUND, attempt.provider_ref), f"it is {seen.sight} as {found}")


async def _three(
    bench: Workbench, prompts: list[str], *, has_address: bool = True
) -> tuple[datetime, list[tuple[Submission, AttemptRef]], list[UpstreamRecord]]:
    """The window's begin, three attempts that were finished in it, and what is listed of it."""
    since = datetime.now(UTC) - timedelta(seconds=2)
    changes = {} if has_address else {"callback_url": None}
    started = [(await bench.started(prompt=prompt, **changes))[:2] for prompt in prompts]
    for _, attempt in started:
        await bench.finish(attempt, Outcome("accepted", update=None))
    return since, started, await _read(bench, since, datetime.now(UTC) + timedelta(seconds=2))


async def _read(bench: Workbench, since: datetime, until: datetime) -> list[UpstreamRecord]:
    records: list[UpstreamRecord] = []
    cursor: str | None = None
    for _ in range(PAGES_MOST):
        try:
            page = await bench.provider.list_records(since, until, cursor)
        except ProviderError as error:
            raise Nonconformity(f"a list is an error: {error} {error.excerpt}") from None
        records += page.records
        cursor = page.next_cursor
        if cursor is None:
            return records
    raise Nonconformity(f"a list of {PAGES_MOST} pages has no end")


async def _says_nothing(bench: Workbench, how: str) -> None:
    await bench.turn(gateway={"where": "list", "how": how})
    await _expect_no_list(bench)


async def _refused(bench: Workbench, way: str) -> None:
    await bench.turn(refuse="upstream_fault", refuse_way=way, refuse_where="list")
    await _expect_no_list(bench)


async def _expect_no_list(bench: Workbench) -> None:
    now = datetime.now(UTC)
    try:
        page = await bench.provider.list_records(now - timedelta(hours=1), now, None)
    except ProviderError as error:
        bench.hear(error)
        return
    raise Nonconformity(f"is read as a list of {len(page.records)}")
