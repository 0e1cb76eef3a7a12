"""The table of settings, made from `safelight.settings`."""

from __future__ import annotations

import re
from typing import Any

from pydantic_core import PydanticUndefined

from safelight.settings import Settings

BLOCK = re.compile(r"(<!-- settings -->\n).*?(<!-- /settings -->)", re.DOTALL)
MADE_AT_RUN_TIME = {"data_dir": "see above", "providers": "none", "models": "none"}
FROM_ENVIRONMENT_ALONE = frozenset({"provider_variables"})


def refresh(page: str) -> str:
    """The page with its table of settings made true."""
    named = (
        (name, field) for name, field in Settings.model_fields.items() if name not in FROM_ENVIRONMENT_ALONE
    )
    rows = "".join(f"{_row(name, field)}\n" for name, field in named)
    table = f"| setting | what it is | default |\n|---|---|---|\n{rows}"
    return BLOCK.sub(lambda found: f"{found[1]}{table}{found[2]}", page)


def _row(name: str, field: Any) -> str:
    return f"| `{name}` | {field.description} | {_default(name, field.default)} |"


def _default(name: str, value: Any) -> str:
    if value is PydanticUndefined:
        return MADE_AT_RUN_TIME[name]
    if value is None or value == ():
        return "none"
    is_whole = isinstance(value, float) and value.is_integer()
    return f"`{int(value)}`" if is_whole else f"`{value}`"
