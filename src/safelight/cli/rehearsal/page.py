"""A rehearsal on one page, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from safelight.cli.measure.figures import Quantiles
from safelight.cli.output import clean, print_line, print_table
from safelight.cli.rehearsal.run import Report
from safelight.cli.rehearsal.watch import Look

ROWS = 6


def print_page(report: Report) -> None:
    """Everything that a person wants to know before believing it."""
    found, receipts = report.found, report.receipts
    print_line(
        f"{'PASS' if report.is_passed else 'FAIL'}  a rehearsal of {report.seconds:.0f} s"
        f" ({report.load_s:.0f} s of load, seed {report.plan.seed})"
    )
    for reason in report.reasons:
        print_line(clean(f"  - {reason}"))
    print_line(
        f"\nCustomers  {len(receipts.ids)} tasks accepted in {receipts.tries} tries, {receipts.repeated} sent twice,"
        f" {receipts.canceled} canceled"
    )
    print_line(f"           202 after {_ms(report.accept_ms)}")
    print_line(f"           ready {_ms(report.delay_ms)} after the upstream was done")
    print_line(f"Wrong      {_counts(report.faults)}")
    print_line(f"           starts of processes: {_counts(report.starts)}")
    print_line(f"Ends       {_counts(found.states)}")
    print_line(
        f"Upstream   {found.accepted_upstream} accepted of {found.attempts} attempts,"
        f" {found.billed_upstream} pictures billed, {found.captured} captured, {found.polls} polls"
    )
    print_line(f"Callbacks  {_counts(found.callbacks)}")
    bad = [outcome.check.name for outcome in found.outcomes if not outcome.is_ok]
    print_line(f"Doctor     {len(found.outcomes)} checks, {', '.join(bad) if bad else 'no findings'}\n")
    _print_looks(report.looks)


def page_json(report: Report) -> dict[str, Any]:
    """The same for programs, with every look."""
    found = report.found
    return {
        "verdict": "PASS" if report.is_passed else "FAIL",
        "reasons": report.reasons,
        "plan": asdict(report.plan) | {"database_url": report.plan.database_url is not None},
        "seconds": report.seconds,
        "load_s": report.load_s,
        "accepted": len(report.receipts.ids),
        "tries": report.receipts.tries,
        "repeated": report.receipts.repeated,
        "canceled": report.receipts.canceled,
        "accept_ms": asdict(report.accept_ms) if report.accept_ms else None,
        "delay_ms": asdict(report.delay_ms) if report.delay_ms else None,
        "faults": report.faults,
        "starts": report.starts,
        "states": dict(found.states),
        "attempts": found.attempts,
        "accepted_upstream": found.accepted_upstream,
        "billed_upstream": found.billed_upstream,
        "captured": found.captured,
        "polls": found.polls,
        "callbacks": found.callbacks,
        "checks": {outcome.check.name: outcome.is_ok for outcome in found.outcomes},
        "looks": [asdict(look) for look in report.looks],
    }


def _print_looks(looks: Sequence[Look]) -> None:
    """Memory and files of the largest process, spread evenly over the time."""
    if not looks:
        return
    step = max(len(looks) // ROWS, 1)
    shown = [*looks[::step][:ROWS], looks[-1]]
    print_table(
        ("at s", "memory MB", "files", "connections", "tasks", "tables MB", "dead rows", "queue kB"),
        [
            (
                f"{look.at_s:.0f}", f"{look.rss_mb:.0f}", look.files, look.connections, look.tasks,
                f"{look.tables_mb:.1f}", f"{look.dead:.0%}", f"{look.queue_kb:.0f}",
            )
            for look in shown
        ],
    )  # fmt: skip


def _ms(found: Quantiles | None) -> str:
    return (
        f"p50 {found.p50:,.0f} ms, p95 {found.p95:,.0f} ms, p99 {found.p99:,.0f} ms"
        if found
        else "(no figures)"
    )


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "nothing"
