"""What a person may decide about a task in review, and what has to be said with it."""

from __future__ import annotations

from enum import StrEnum


class Choice(StrEnum):
    """The five decisions."""

    CHECK_AGAIN = "check_again"
    RESUBMIT = "resubmit"
    ATTACH_RESULT = "attach_result"
    FAIL_AND_RELEASE = "fail_and_release"
    ACCEPT_AS_DONE = "accept_as_done"


class ResubmitReason(StrEnum):
    """Why another attempt may be made: it proves that the one before came to nothing, or takes the risk."""

    PROVED_ABSENT = "proved_absent"
    """The provider does not know it, although it would by now."""
    PROVIDER_CONFIRMED = "provider_confirmed"
    """The provider says that it was not accepted, or is dead."""
    RISK_ACCEPTED = "risk_accepted"
    """It may be made, and paid for, twice."""


class FailReason(StrEnum):
    """The code that the customer sees."""

    NO_RESULT = "no_result"
    OPERATOR_DECISION = "operator_decision"


MIN_NOTE = 10
MAX_NOTE = 2_000
_REASONS: dict[Choice, tuple[str, ...]] = {
    Choice.RESUBMIT: tuple(ResubmitReason),
    Choice.FAIL_AND_RELEASE: tuple(FailReason),
}


def faults_of(choice: Choice, reason_code: str, note: str, *, pictures: int) -> list[tuple[str, str]]:
    """What is wrong with a decision as it was put: pairs of a field and the end of a sentence."""
    faults: list[tuple[str, str]] = []
    reasons = _REASONS.get(choice, ())
    if reasons and reason_code not in reasons:
        faults.append(("reason_code", f"must be one of: {', '.join(reasons)}"))
    if not reasons and reason_code:
        faults.append(("reason_code", f"{choice} takes none"))
    if choice is Choice.RESUBMIT and len(note.strip()) < MIN_NOTE:
        faults.append(("note", f"must say in at least {MIN_NOTE} characters what makes you sure"))
    if len(note) > MAX_NOTE or "\0" in note:
        faults.append(("note", f"may have {MAX_NOTE} characters, none of them NUL"))
    if choice is Choice.ATTACH_RESULT and not pictures:
        faults.append(("urls", "must name at least one picture"))
    if choice is not Choice.ATTACH_RESULT and pictures:
        faults.append(("urls", f"{choice} takes none"))
    return faults
