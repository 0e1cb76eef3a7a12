"""The capability matrix of every provider, from its declaration, the lab's dialects and the tests."""

from __future__ import annotations

import re
from pathlib import Path

from safelight.domain.provider import AfterUncertain
from safelight.lab.dialects import dialect_names
from safelight.providers import (
    Declaration,
    capabilities_of,
    packaged_declaration,
    packaged_names,
    packaged_text,
)

ROOT = Path(__file__).resolve().parents[2]
WITNESSES = {
    "openai": "openai",
    "google.genai": "google-genai",
    "replicate": "replicate",
    "fal_client": "fal-client",
    "runwayml": "runwayml",
    "lumaai": "lumaai",
    "dashscope": "dashscope",
    "tencentcloud": "tencentcloud-sdk-python-hunyuan",
}
"""Modules of the upstreams' own clients, and the packages they come in."""
_AFTER = {
    AfterUncertain.SAME_KEY: "same key again",
    AfterUncertain.LOOK_UP: "looked up",
    AfterUncertain.LIST: "found in its list, else a person",
    AfterUncertain.NONE: "callback, else a person",
}
_HEAD = """# Providers

<!-- Written by `make docs` from the declarations, the lab and the tests; do not edit it here. -->

What each provider can do, how it is written, and what it was tested against. How to enable one, and what is
special about it, is on its own page; how to add one is in [adding a provider](../adding-a-provider.md); every key
of a declaration is in [declarations](../declarations.md).

"""
_NOTES = """
- **answers**: at once with the pictures, or by id and poll. **callback**: what proves it, and whether it is applied
  (*body*) or only brings the next poll forward (*hint*). A star: without its secret it is a hint.
- **after a lost answer**: how an uncertain submit is cleared up.
- **results live**: how long the upstream keeps the pictures; where it does not say, 30 minutes are assumed.

## How each was tested

Every provider goes through one conformance suite before the lab's dialect of its upstream
(`tests/conformance`). The lab's dialects are written from the upstreams' documentation, not from the declarations;
where the upstream's own client takes another address, it is pointed at the lab too, as a witness.

"""


def page() -> str:
    """The whole page."""
    declarations = [packaged_declaration(name) for name in packaged_names() if not name.startswith("lab-")]
    able = _table(
        ("provider", "answers", "edits", "callback", "after a lost answer", "cancel", "list", "results live"),
        [_abilities(declaration) for declaration in declarations],
    )
    made = _table(
        ("provider", "written as", "lines", "models", "dialect of the lab", "its own client as witness"),
        [_making(declaration) for declaration in declarations],
    )
    return _HEAD + able + _NOTES + made


def _abilities(declaration: Declaration) -> tuple[str, ...]:
    able = capabilities_of(declaration)
    edits = any("edit" in model.operations for model in declaration.models)
    masks = any(model.takes_mask for model in declaration.models)
    return (
        f"[{declaration.name}]({declaration.name}.md)",
        "at once" if able.is_synchronous else "by poll",
        "with mask" if masks else "yes" if edits else "no",
        _callback(declaration),
        _AFTER[able.after_uncertain],
        "yes" if able.can_cancel else "no",
        "yes" if able.can_list else "no",
        _life(able.result_lifetime_s, is_inline=able.is_synchronous),
    )


def _callback(declaration: Declaration) -> str:
    if declaration.callback is None:
        return "none"
    signature = declaration.callback.signature
    kind = {"none": "unsigned"}.get(signature.kind, signature.kind.replace("_", " "))
    star = "*" if getattr(signature, "is_optional", False) else ""
    return f"{kind}{star}, {declaration.callback.trust}"


def _life(seconds: float | None, *, is_inline: bool) -> str:
    if seconds is None:
        return "in the answer" if is_inline else "not said"
    if seconds < 3_600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.0f} h" if seconds < 172_800 else f"{seconds / 86_400:.0f} days"


def _making(declaration: Declaration) -> tuple[str, ...]:
    name = declaration.name
    code = ROOT / "src/safelight/providers" / f"{declaration.code}.py"
    lines = _spoken_lines(packaged_text(name))
    return (
        name,
        f"declaration and `{declaration.code}.py`" if declaration.code else "declaration",
        f"{lines} + {_spoken_lines(code.read_text(encoding='utf-8'))}" if declaration.code else str(lines),
        str(len(declaration.models)),
        "yes" if name in dialect_names() else "no",
        _witness(name),
    )


def _spoken_lines(text: str) -> int:
    """Lines that are neither blank nor a comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))


def _witness(name: str) -> str:
    path = ROOT / "tests/lab/dialects" / f"test_{name.replace('-', '_')}.py"
    source = path.read_text(encoding="utf-8") if path.exists() else ""
    found = [
        package
        for module, package in WITNESSES.items()
        if re.search(rf"^\s*(?:from|import) {re.escape(module)}\b", source, re.MULTILINE)
        or (module == "google.genai" and re.search(r"^\s*from google import genai", source, re.MULTILINE))
    ]
    return ", ".join(f"`{package}`" for package in found) or "no"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
