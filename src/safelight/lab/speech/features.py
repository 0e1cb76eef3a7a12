"""Features: what an upstream offers, for those who test against it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Features:
    """What an upstream offers, for those who test against it."""

    is_open: bool = False
    """Whether a caller without any key is let in."""
    generate: bool = True
    edit: bool = False
    mask: bool = False
    mask_style: str | None = None
    """What stands in a mask where the picture may change: `white`, `black` or `clear`."""
    keeps_size: bool = False
    """Whether edits come out in the size of their picture, whatever is asked for."""
    list: bool = False
    list_shows: tuple[str, ...] = ()
    """What was sent that stands in its records: `prompt`, `callback_url`."""
    look_up: bool = False
    """By the caller's own reference."""
    cancel: bool = False
    confirms_cancel: bool = False
    """Whether the answer to a cancel says that it is done."""
    progress: bool = False
    position: bool = False
    waiting: bool = False
    """A word of its own for a job that has not begun."""
    reasons: bool = False
    """Words for the reason of every refusal and every bad end."""
    silent_ends: tuple[str, ...] = ()
    """The bad ends that have no words all the same."""
    call_id: bool = False
    """An id in the answer with the pictures, for which its support will ask."""
    cost: bool = False
    gives_back: bool = False
    """Whether it gives back what a bad end has cost."""
    run_time: bool = False
    partial_items: bool = False
    stream: bool = False
    callback: str = "none"
    """`none`, `task` (its address comes with the submit) or `account`."""
    notices: str = "none"
    """`none`, `success` (only of attempts with pictures), `end` or `changes`."""
    notice_filter: bool = False
    """Whether a submit says which changes it wants to be told of."""
    is_signing_optional: bool = False
    """Whether callbacks are good without a secret: unsigned until one is made, or signed with one not set here."""
    key: str | None = None
    """The header of its idempotency keys."""
    reference: str | None = None
    """The field of the caller's reference."""
    result_life_s: float | None = None
    is_refreshable: bool = True
    """Whether a later poll has fresh addresses."""
