"""One word per thing in code, SQL, API and documents: GLOSSARY.md defines them, this finds synonyms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch

import pytest

from tests.architecture.source import ROOT, read, shown, text_files


@dataclass(frozen=True, slots=True)
class Rule:
    """A word we say, the pattern of what we do not, where that is looked for, and samples it must catch."""

    say: str
    pattern: str
    catches: tuple[str, ...]
    passes: tuple[str, ...] = ()
    places: tuple[str, ...] = ("*",)

    @property
    def expression(self) -> re.Pattern[str]:
        """The pattern, blind to case; underscores do not shield a word."""
        return re.compile(self.pattern, re.IGNORECASE)


def words(*alternatives: str) -> str:
    """A pattern for whole words, in prose as well as inside snake_case and CamelCase names."""
    return rf"(?<![A-Za-z])(?:{'|'.join(alternatives)})(?![A-Za-z])"


INBOUND = ("src/safelight/providers/*", "src/safelight/lab/*", "src/safelight/lifecycle/receive.py")

RULES = (
    Rule(
        "task", words("order_id", "generation_id", "generation_task", "image_job"), ("order_id", "image_job")
    ),
    Rule("attempt", words("retry_id", "run_id", "try_id"), ("run_id = 1",), ("run_s", "retry_after")),
    Rule("provider", words("vendors?"), ("the vendor", "vendor_name"), ("inventory",)),
    Rule(
        "provider",
        words("channel_id", "channel_name", "platform_id", "platform_name"),
        ("channel_id",),
        ("sys.platform",),
    ),
    Rule(
        "provider_ref",
        words("upstream_task_id", "upstream_id", "external_id", "provider_task_id", "vendor_id"),
        ("external_id",),
    ),
    Rule("callback", words("webhooks?"), ("a webhook came",), places=INBOUND),
    Rule(
        "callback",
        words("inbound webhooks?", "incoming webhooks?", "provider webhooks?"),
        ("an incoming webhook",),
    ),
    Rule(
        "webhook, event or delivery",
        words("notifications?"),
        ("a notification", "notification_id"),
        ("notify",),
    ),
    Rule(
        "update",
        words("status_updates?", "task_results?", "provider_results?"),
        ("task_result",),
        ("result",),
    ),
    Rule("inbox", words("callback_queue", "webhook_queue"), ("callback_queue",)),
    Rule("outbox", words("event_queue", "delivery_queue"), ("event_queue",)),
    Rule(
        "hold",
        words("freez(?:e|es|ing)", "reserve_credits?", "credit_reservations?"),
        ("to freeze",),
        ("frozen",),
    ),
    Rule("capture", words("deduct(?:s|ed|ing|ions?)?"), ("deducted",)),
    Rule("release", words("refund(?:s|ed|ing|able)?"), ("refunded", "refund_task")),
    Rule(
        "entry",
        words("ledger transactions?", "credit transactions?", "transaction_id"),
        ("a ledger transaction",),
    ),
    Rule("asset", words("artifacts?", "artefacts?", "image_id"), ("artifacts", "image_id")),
    Rule("finding", words("discrepanc(?:y|ies)", "reconciliation (?:issue|error)s?"), ("a discrepancy",)),
    Rule("uncertain", r"State\.UNKNOWN|state\s*=\s*'unknown'", ("State.UNKNOWN",), ("verdict = 'unknown'",)),
)

TELLS_THE_SYNONYMS = ("GLOSSARY.md", "tests/architecture/test_glossary.py", "LICENSE", "requirements.lock")

ALLOWED: tuple[tuple[str, str, str], ...] = (
    # (path pattern, the text that stands in the line, why it may)
    ("src/safelight/jobs/*", "notification", "PostgreSQL's own word for what NOTIFY sends"),
    ("src/safelight/lab/dialects/*", '"', "an upstream's own words, fields and headers stand in quotes"),
    ("src/safelight/lab/signatures.py", "ebhook", "Standard Webhooks is a scheme's own name"),
    ("tests/lab/*", '"', "an upstream's own words, fields and headers stand in quotes"),
    ("src/safelight/providers/*", '"', "an upstream's own words, fields and headers stand in quotes"),
    ("src/safelight/providers/*", "dialect.refunded", "the key of a declaration says it as upstreams do"),
    ("src/safelight/providers/declarations/*", "webhooks", "providers' pages go by their own names"),
    ("src/safelight/providers/*", "Standard Webhooks", "a scheme's own name"),
    ("src/safelight/cli/conformance/*", '"', "the lab's dialects are asked in their own words"),
    ("tests/providers/*", '"', "an upstream's own words, fields and headers stand in quotes"),
    ("tests/providers/*", "tandard_webhooks", "a scheme's own name"),
    ("docs/providers/*", "webhook", "providers' own pages and fields are quoted by their own names"),
    ("docs/providers/*", "`", "an upstream's own words, fields and headers stand in quotes"),
    ("pyproject.toml", "artifacts =", "hatch's own word for files that are built and not in git"),
    ("docs/declarations.md", "`", "an upstream's own words, fields and headers stand in quotes"),
)


def synonyms(name: str, text: str) -> Iterator[str]:
    """Every synonym in a text, with the word to say instead."""
    rules = [rule for rule in RULES if any(fnmatch(name, place) for place in rule.places)]
    for number, line in enumerate(text.splitlines(), 1):
        for rule in rules:
            found = rule.expression.search(line)
            if found and not _is_allowed(name, line):
                yield f"{name}:{number}: '{found[0]}', say '{rule.say}'"


def _is_allowed(name: str, line: str) -> bool:
    return any(fnmatch(name, path) and quoted in line for path, quoted, _ in ALLOWED)


def test_everything_is_called_by_its_one_word() -> None:
    found = [
        fault
        for path in text_files()
        if shown(path) not in TELLS_THE_SYNONYMS
        for fault in synonyms(shown(path), read(path))
    ]
    assert found == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.say)
def test_a_rule_catches_its_samples_and_nothing_near_them(rule: Rule) -> None:
    assert [sample for sample in rule.catches if not rule.expression.search(sample)] == []
    assert [sample for sample in rule.passes if rule.expression.search(sample)] == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.say)
def test_the_glossary_defines_the_word(rule: Rule) -> None:
    glossary = read(ROOT / "GLOSSARY.md")
    missing = [
        word for word in re.findall(r"\w+", rule.say.replace(" or ", " ")) if f"**{word}**" not in glossary
    ]
    assert missing == []
