"""Event names, metrics and named fault points."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import structlog
from prometheus_client import Counter, Gauge, Histogram

MOVES = Counter("safelight_moves_total", "State changes of tasks.", ["source", "target"])
NEWS = Counter("safelight_news_total", "News about attempts by origin and verdict.", ["origin", "verdict"])
CALLBACKS = Counter("safelight_callbacks_total", "Callbacks received, by verdict.", ["provider", "verdict"])
POLLS = Counter("safelight_polls_total", "Looks at providers.", ["provider", "result"])
SENDS = Counter("safelight_sends_total", "Submits to providers, by outcome.", ["provider", "outcome"])
SUBMITS = Counter("safelight_submits_total", "Tasks submitted, by answer.", ["answer"])
REVIEWS = Counter("safelight_reviews_total", "Tasks that a person must decide.", ["reason"])
REVIEWS_OPEN = Gauge("safelight_reviews_open", "Tasks in review now, by reason.", ["reason"])
DECISIONS = Counter("safelight_decisions_total", "What people decided about tasks in review.", ["decision"])
ALERTS = Counter("safelight_alerts_total", "Calls to the operator's alert address.", ["result"])
ADMIN_REFUSALS = Counter("safelight_admin_refusals_total", "Knocks at the operator's door without its key.")
DELIVERIES = Counter(
    "safelight_deliveries_total", "Tries at webhooks, by event and outcome.", ["type", "outcome"]
)
DELIVERY_LAG = Histogram("safelight_delivery_lag_seconds", "From an event to its first try.")
ENDPOINTS_DISABLED = Counter(
    "safelight_endpoints_disabled_total", "Webhook endpoints taken out of use.", ["reason"]
)
REROUTES = Counter(
    "safelight_reroutes_total", "Waiting tasks taken to another provider key or route.", ["source", "target"]
)
FINDINGS = Counter("safelight_findings_total", "Differences that were found and kept.", ["kind"])
RECONCILIATIONS = Counter(
    "safelight_reconciliations_total",
    "Runs over a provider's day: complete, incomplete, or postponed.",
    ["provider", "result"],
)
CALLBACK_SHARE = Gauge(
    "safelight_callback_share",
    "Of a provider's last finished attempts, those that a callback told of.",
    ["provider"],
)
CALLBACK_ALARM = Gauge(
    "safelight_callback_alarm", "1 while a provider's callbacks have stopped coming.", ["provider"]
)
COPIES = Counter("safelight_copies_total", "Results copied into our own storage.", ["result"])
LATE_COPIES = Counter(
    "safelight_late_copies_total", "Copies begun after half the life of their source.", ["provider"]
)
OPEN_TASKS = Gauge("safelight_open_tasks", "Tasks by state.", ["state"])
GATES_CLOSED = Gauge(
    "safelight_gates_closed", "1 while a provider key's gate or the storage breaker is closed.", ["gate"]
)
GATE_FAILURES = Gauge(
    "safelight_gate_failures", "Closings of a gate in a row, without a success between them.", ["gate"]
)
GROUP_SIZE = Histogram(
    "safelight_group_size",
    "Calls that shared one transaction.",
    ["verb"],
    buckets=(1, 2, 4, 8, 16, 32, 64, 128, 256),
)
STREAMS = Gauge("safelight_streams_open", "Streams of live events that are open.")
STREAMS_CLOSED = Counter(
    "safelight_streams_closed_total", "Streams of live events that were closed.", ["reason"]
)

FaultHook = Callable[[str], None]
_fault_hook: FaultHook | None = None


def point(name: str) -> None:
    """Mark a place where a test may raise, stall or kill; does nothing unless a hook is set."""
    if _fault_hook is not None:
        _fault_hook(name)


def set_fault_hook(hook: FaultHook | None) -> None:
    """Install (or with None remove) the function that every fault point calls with its name."""
    global _fault_hook  # noqa: PLW0603 - one hook a process, for tests only
    _fault_hook = hook


def configure_logging(level: str, log_format: str) -> None:
    """Structured logs on standard error: JSON, or readable text on a terminal."""
    as_text = log_format == "text" or (log_format == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
        if as_text
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=True,
    )
