"""Routes of a dialect: method, path, and the role that knobs know it by."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from safelight.lab.speech.call import Call

ROLES = ("submit", "poll", "result", "list", "cancel", "other")
_STEP = re.compile(r"\{(\w+)(?::([^{}]+))?\}")


@dataclass(frozen=True, slots=True)
class Route:
    """Where a call goes.

    `path` may have `{name}` for one step and `{name:regex}` for more. `do` is the name of the dialect's
    method: for the role `submit` one that reads a Submit out of the call, else one that gives the Reply.
    `when` tells routes of the same path apart (by a header, a query). With `is_open` no key is asked for.
    """

    method: str
    path: str
    role: str
    do: str
    when: Callable[[Call], bool] | None = None
    is_open: bool = False
    pattern: re.Pattern[str] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        """Compile the path."""
        if self.role not in ROLES:
            raise ValueError(f"{self.role} is no role")
        last, pattern = 0, ""
        for step in _STEP.finditer(self.path):
            pattern += re.escape(self.path[last : step.start()]) + f"(?P<{step[1]}>{step[2] or '[^/]+'})"
            last = step.end()
        object.__setattr__(self, "pattern", re.compile(pattern + re.escape(self.path[last:])))
