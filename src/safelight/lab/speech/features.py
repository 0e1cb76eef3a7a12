"""Features: what an upstream offers, for those who test against it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Features:
    """What an upstream offers, for those who test against it."""

    generate: bool = True
    edit: bool = False
    mask: bool = False
    list: bool = False
    look_up: bool = False
    """By the caller's own reference."""
    cancel: bool = False
    progress: bool = False
    position: bool = False
    partial_items: bool = False
    stream: bool = False
    callback: str = "none"
    """`none`, `task` (its address comes with the submit) or `account`."""
    notices: str = "none"
    """`none`, `end` or `changes`."""
    key: str | None = None
    """The header of its idempotency keys."""
    reference: str | None = None
    """The field of the caller's reference."""
    result_life_s: float | None = None
    is_refreshable: bool = True
    """Whether a later poll has fresh addresses."""
