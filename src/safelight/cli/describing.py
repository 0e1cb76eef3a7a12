"""What the commands about providers say of one: a row of the list, and the whole of it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from safelight.domain.provider import Capabilities
    from safelight.providers.declaration import Declaration, DeclaredModel

AFTER = {
    "same_key": "same key",
    "look_up": "look-up",
    "list": "its list",
    "none": "callback or a person",
}
"""How a lost answer is cleared up."""
COLUMNS = ("provider", "written as", "answers", "callbacks", "after a lost answer", "does", "models", "keys")
MODEL_COLUMNS = ("model", "does", "price", "pictures", "sizes", "retires")


def summary(declaration: Declaration) -> dict[str, Any]:
    """One provider in a row."""
    from safelight.providers import capabilities_of

    able = capabilities_of(declaration)
    operations = Counter(operation for model in declaration.models for operation in model.operations)
    return {
        "provider": declaration.name,
        "written as": f"code: {declaration.code}" if declaration.code else "declaration",
        **_ways(able),
        "does": ", ".join(operations),
        "models": len(declaration.models),
    }


def portrait(declaration: Declaration, *, is_packaged: bool) -> dict[str, Any]:
    """Everything about one provider that an operator has to know; its models are rows of a table."""
    from safelight.providers import capabilities_of
    from safelight.providers.checks import credential_names, needed_credentials

    able = capabilities_of(declaration)
    needed = list(needed_credentials(declaration))
    optional = [name for name in credential_names(declaration) if name not in needed]
    if not declaration.base_url and not declaration.hosts:
        needed.append("base_url")
    return {
        "name": declaration.name,
        "title": declaration.title,
        "enabled by": _settings(declaration.name, needed or ["base_url"], is_packaged=is_packaged),
        "may also use": _settings(declaration.name, optional, is_packaged=is_packaged),
        "address": declaration.base_url or "set by you",
        "regions": sorted(declaration.hosts),
        **_ways(able),
        "cancel": able.can_cancel,
        "list": able.can_list,
        "results live": f"{able.result_lifetime_s:.0f} s"
        if able.result_lifetime_s
        else "not known; 1800 s assumed",
        "at most": _limits(declaration),
        "models": [_model_row(model) for model in declaration.models],
    }


def words(value: Any) -> str:
    """A value of the portrait as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _ways(able: Capabilities) -> dict[str, str]:
    return {
        "answers": "at once" if able.is_synchronous else "by poll",
        "callbacks": f"{able.trust}" if able.calls_back else "none",
        "after a lost answer": AFTER[able.after_uncertain],
    }


def _settings(provider: str, names: list[str], *, is_packaged: bool) -> list[str]:
    """In the environment; a provider with a file of its own has a table in any case, so there."""
    if not is_packaged:
        return [f"{name} in [providers.{provider}]" for name in names]
    prefix = f"SAFELIGHT_PROVIDER_{provider.replace('-', '_').upper()}"
    return [f"{prefix}_{name.upper()}" for name in names]


def _limits(declaration: Declaration) -> list[str]:
    limits = declaration.limits
    named = (
        (limits.max_active, "pictures at once"),
        (limits.max_active_tasks, "tasks at once"),
        (limits.calls_per_s, "submits a second"),
        (limits.polls_per_s, "polls a second"),
    )
    return [f"{value:g} {unit}" for value, unit in named if value is not None]


def _model_row(model: DeclaredModel) -> dict[str, Any]:
    return {
        "model": model.name,
        "does": ", ".join(model.operations) + (", mask" if model.takes_mask else ""),
        "price": model.price,
        "pictures": f"up to {model.max_n}" if model.max_n > 1 else "1",
        "sizes": ", ".join(word or "any" for word in (*model.sizes, *model.aspect_ratios)) or "its own",
        "retires": str(model.retires_on) if model.retires_on else "",
    }
