"""The figures as tables, each beside its aim."""

from __future__ import annotations

from collections.abc import Iterable

from safelight.cli.measure.figures import (
    AIM_DELAY_P99_MS,
    AIM_POLLS,
    AIM_RATIO,
    Crowd,
    Figures,
    Quantiles,
    Submits,
)
from safelight.cli.output import print_line, print_table


def print_figures(figures: Figures) -> None:
    """Print every part that was measured."""
    machine = figures.machine
    print_line(
        f"safelight {machine.version} on {machine.cores} cores, Python {machine.python}, {machine.system}; "
        f"load average before: {machine.load_1m}"
    )
    if figures.submits:
        _print_submits(figures.submits)
    if figures.whole_tasks:
        _print_whole_tasks(figures.whole_tasks)
    if figures.delays:
        _print_delays(figures)


def _print_submits(found: Iterable[Submits]) -> None:
    print_line(
        "\n(a) Durable submits, beside the no-op GET /healthz on the same server in alternating rounds"
    )
    print_table(
        ("server", "at once", "submits/s", "p50 ms", "p99 ms", "no-op/s", "p50 ms", "p99 ms", "ratio", "aim"),
        [
            (
                one.server,
                one.connections,
                f"{one.submits_per_s:,.0f}",
                *_middle_and_tail(one.submit_ms),
                f"{one.noop_per_s:,.0f}",
                *_middle_and_tail(one.noop_ms),
                f"{one.ratio:.2f}",
                _aim(f"≥ {AIM_RATIO}", one.ratio >= AIM_RATIO),
            )
            for one in found
        ],
    )
    shares = ", ".join(f"{one.generator_share:.0%}" for one in found)
    print_line(f"The load generator itself used {shares} of a core during the no-op.")


def _print_whole_tasks(found: Iterable[Crowd]) -> None:
    print_line("\n(b) Whole tasks to ready, with callbacks, all sent at once to a lab without latency")
    print_table(
        ("pictures", "tasks", "ready", "seconds", "tasks/s", "done to ready p50 ms", "p99 ms", "polls/task"),
        [
            (
                crowd.size,
                crowd.tasks,
                crowd.ready,
                f"{crowd.elapsed_s:.1f}",
                f"{crowd.tasks_per_s:.1f}",
                *_middle_and_tail(crowd.delay_ms),
                f"{crowd.polls_per_task:.2f}",
            )
            for crowd in found
        ],
    )


def _print_delays(figures: Figures) -> None:
    print_line(
        f"\n(c) From upstream-done to ready, and (d) upstream polls per task; about {figures.finishes_per_s:.0f} end "
        "a second"
    )
    print_table(
        ("open", "callbacks", "latency s", "ready", "p50 ms", "p95 ms", "p99 ms", "aim", "polls/task", "aim"),
        [_delay_row(crowd) for crowd in figures.delays],
    )
    print_line("Where callbacks are lost the poll's plan (the measured P95 and its jitter) makes the delay.")
    slowest = min((crowd.tasks_per_s for crowd in figures.whole_tasks[:1]), default=None)
    if slowest is not None and slowest < 1.5 * figures.finishes_per_s:
        print_line(f"(b) is near that rate ({slowest:.0f} tasks/s): these delays include a backlog.")
    if figures.is_quick:
        print_line("Quick: few samples, and the polls still go by the default instead of the measured P95.")


def _delay_row(crowd: Crowd) -> tuple[object, ...]:
    delay, is_on = crowd.delay_ms, crowd.loss == 0.0
    return (
        f"{crowd.open_tasks:,}",
        "on" if is_on else "all lost" if crowd.loss == 1.0 else f"{crowd.loss:.0%} lost",
        "{:g}–{:g}".format(*crowd.latency_s),
        f"{crowd.ready}/{crowd.tasks}",
        *((_ms(delay.p50), _ms(delay.p95), _ms(delay.p99)) if delay else ("", "", "")),
        _aim(f"p99 ≤ {AIM_DELAY_P99_MS:.0f}", delay is not None and delay.p99 <= AIM_DELAY_P99_MS)
        if is_on
        else "",
        f"{crowd.polls_per_task:.2f}",
        _aim(f"≤ {AIM_POLLS}", crowd.polls_per_task <= AIM_POLLS) if is_on else "",
    )


def _middle_and_tail(found: Quantiles | None) -> tuple[str, str]:
    return (_ms(found.p50), _ms(found.p99)) if found else ("", "")


def _ms(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _aim(words: str, is_met: bool) -> str:
    return f"{words} {'✓' if is_met else '✗'}"
