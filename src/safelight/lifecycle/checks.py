"""What the doctor checks: each invariant that can be seen from the outside, and the command that settles a breach."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class AskedOf(StrEnum):
    """What a check looks at: tasks or accounts range by range, or something as a whole."""

    TASKS = "task"
    ACCOUNTS = "account"
    ALL = "all"
    PROVIDERS = "providers"
    AUDIT_LOG = "audit_log"
    PICTURES = "pictures"
    STORE = "store"


LEDGER = (
    "stop, keep a copy of the database, compare with `safelight tasks show ID`; an account is put right by an entry:\
 `safelight credits grant`"
)
ROWS = "stop, keep a copy of the database, look at `safelight tasks show ID`; such rows are never mended silently"
WAKE = "see that `safelight worker` runs; `safelight doctor --repair` wakes what is due"
DECIDE = "safelight review list; safelight review show ID"
BYTES = "put the bytes back from a backup of the store"
RULES = (
    "safelight migrate, or restore the schema from a backup: the database no longer refuses what must not be"
)


@dataclass(frozen=True, slots=True)
class Check:
    """One check: the invariants of docs/operating/doctor.md that it covers, and what settles a finding."""

    name: str
    covers: str
    invariant: str
    asked_of: AskedOf
    remedy: str
    is_about_bytes: bool = False


_TASKS, _ACCOUNTS, _ALL = AskedOf.TASKS, AskedOf.ACCOUNTS, AskedOf.ALL

CHECKS: tuple[Check, ...] = (
    Check(
        "balances",
        "I8 I9",
        "An account has what its entries add up to, and is not overdrawn.",
        _ACCOUNTS,
        LEDGER,
    ),
    Check("overdrafts", "I9", "At no entry was an account overdrawn.", _ACCOUNTS, LEDGER),
    Check(
        "holds",
        "I6",
        "What an account has held is the sum of the holds of its open tasks.",
        _ACCOUNTS,
        LEDGER,
    ),
    Check("open_tasks", "I26", "An account counts its open tasks rightly.", _ACCOUNTS, LEDGER),
    Check(
        "entries",
        "I3 I7",
        "A task has exactly one hold, and at most one entry that settles it.",
        _TASKS,
        LEDGER,
    ),
    Check("orphans", "I3", "Whatever speaks of a task speaks of one that exists.", _TASKS, ROWS),
    Check("owners", "I23", "Whatever belongs to a task belongs to its account.", _TASKS, ROWS),
    Check(
        "settlements",
        "I6 I7",
        "A task that has ended has one settlement: captured + released = held.",
        _TASKS,
        LEDGER,
    ),
    Check(
        "captures",
        "I6 I11 I15",
        "What was captured is the price of the pictures that were delivered.",
        _TASKS,
        LEDGER,
    ),
    Check(
        "history",
        "I4 I14",
        "A history is a path along the arrows, one version a step, to the state of the row.",
        _TASKS,
        ROWS,
    ),
    Check("endings", "I5", "A task ends once, when its row says.", _TASKS, ROWS),
    Check(
        "receipts",
        "I2 I3 I24",
        "A task was accepted under exactly one idempotency key, which names it.",
        _TASKS,
        ROWS,
    ),
    Check(
        "attempts",
        "I12 I13",
        "Every call has its intent, numbered without a hole; none follows one that is open or delivered.",
        _TASKS,
        ROWS,
    ),
    Check("provider_refs", "I12", "No two attempts share an id of their provider.", _ALL, ROWS),
    Check("references", "I12", "No two attempts share a reference.", _ALL, ROWS),
    Check("bounds", "I26", "Sends, attempts and kept callbacks stay within their bounds.", _TASKS, ROWS),
    Check(
        "callbacks",
        "I21 I22",
        "A callback changes an attempt once for each status, and only one that was made.",
        _TASKS,
        ROWS,
    ),
    Check("callers", "I21", "What a callback moved was moved by one that is in the inbox.", _TASKS, ROWS),
    Check(
        "events",
        "I17 I18",
        "Of every task that has ended the endpoints of its account were told, truly.",
        _TASKS,
        "GET /v1/tasks?updated_since= tells the customer; look at `safelight tasks show ID`",
    ),
    Check(
        "deliveries",
        "I18 I19",
        "What is due to customers is tried in time, and nothing to a live endpoint sleeps.",
        _ALL,
        WAKE,
    ),
    Check("inputs", "I15", "The inputs of open tasks are there.", _ALL, "safelight tasks cancel ID"),
    Check(
        "overdue", "I19", "Every open task is woken in time, and none stays past its deadlines.", _ALL, WAKE
    ),
    Check("wakeups", "I19", "What is due has a job that wakes it.", _ALL, WAKE),
    Check("reviews", "I20", "What waits for a person has a reason and a day, and is seen.", _ALL, DECIDE),
    Check(
        "gates",
        "I19",
        "What keeps tasks from a provider is seen, and passes.",
        _ALL,
        "put the provider's key or funds in order; the next task that goes through opens the gate",
    ),
    Check(
        "batches",
        "I19",
        "A batch lets its items go to work, no more at once than it may, and ends with the last one.",
        _ALL,
        WAKE,
    ),
    Check(
        "unattended",
        "I19",
        "Open tasks are at providers that are in use.",
        AskedOf.PROVIDERS,
        "enable the provider again until its tasks have ended",
    ),
    Check("erasures", "I10", "What was erased is gone, with its pictures.", _TASKS, WAKE),
    Check("guards", "I5 I7 I10", "Every rule that makes a violation impossible is in force.", _ALL, RULES),
    Check(
        "audit_log",
        "I10",
        "The chain of the audit log is whole.",
        AskedOf.AUDIT_LOG,
        "somebody changed the database: compare with a backup",
    ),
    Check(
        "assets",
        "I15",
        "The bytes of every picture are there, unchanged, and decode.",
        AskedOf.PICTURES,
        BYTES,
        is_about_bytes=True,
    ),
    Check(
        "strays",
        "I16",
        "Stored bytes belong to a picture or to an open task.",
        AskedOf.STORE,
        "safelight doctor --repair",
    ),
)
