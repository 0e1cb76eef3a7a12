"""Reads declarations from files and says, in a sentence, what is wrong with one."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from safelight.domain.catalog import Model
from safelight.domain.provider import Capabilities, Trust
from safelight.errors import ConfigurationError
from safelight.providers.checks import (
    contradictions,
    image_forms,
    option_names,
    record_keys,
    takes_callback_url,
)
from safelight.providers.declaration import Declaration
from safelight.providers.explanations import explain

_VALUE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::([^}]*))?\}")


def load_declaration(source: Path | str, *, values: Mapping[str, str] | None = None) -> Declaration:
    """Read a declaration from a file (a Path) or from TOML text.

    `${name}` in its strings is replaced from `values`, `${name:else}` has something to fall back on.

    Raises:
        ConfigurationError: it cannot be read, or says something impossible; the text names every place.
    """
    label = source.name if isinstance(source, Path) else "declaration"
    try:
        text = source.read_text(encoding="utf-8") if isinstance(source, Path) else source
        document = tomllib.loads(text)
    except OSError as error:
        raise ConfigurationError(f"{label}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{label}: {error}") from None
    try:
        declaration = Declaration.model_validate(_with_values(document, values or {}, ""))
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        raise _faulty(label, [explain(one, Declaration) for one in details]) from None
    except _ValueMissing as error:
        raise _faulty(label, [str(error)]) from None
    if faults := contradictions(declaration):
        raise _faulty(label, faults)
    return declaration


def packaged_names() -> tuple[str, ...]:
    """The declarations that come with safelight."""
    folder = resources.files("safelight.providers") / "declarations"
    return tuple(
        sorted(entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))
    )


def packaged_text(name: str) -> str:
    """The text of one of the declarations that come with safelight; raises ConfigurationError for another name."""
    if name not in packaged_names():
        raise ConfigurationError(
            f"no declaration is called {name!r}; there are {', '.join(packaged_names())}"
        )
    return (resources.files("safelight.providers") / "declarations" / f"{name}.toml").read_text(
        encoding="utf-8"
    )


def packaged_declaration(name: str, *, values: Mapping[str, str] | None = None) -> Declaration:
    """One of the declarations that come with safelight; raises ConfigurationError for another name."""
    return load_declaration(packaged_text(name), values=values)


def models_of(declaration: Declaration) -> tuple[Model, ...]:
    """The models of a declaration for the catalog."""
    options = option_names(declaration)
    return tuple(
        Model(
            provider=declaration.name,
            upstream_model=model.upstream_model or model.name,
            options=options,
            **model.model_dump(exclude={"upstream_model", "values"}),
        )
        for model in declaration.models
    )


def capabilities_of(declaration: Declaration) -> Capabilities:
    """What the provider can do, as far as its declaration says."""
    callback, submit = declaration.callback, declaration.submit
    needs_data, needs_urls = image_forms(declaration)
    return Capabilities(
        is_synchronous=declaration.is_synchronous,
        calls_back=callback is not None,
        takes_callback_url=takes_callback_url(declaration),
        can_poll=declaration.poll is not None,
        can_cancel=declaration.cancel is not None,
        can_list=declaration.listing is not None,
        can_look_up=declaration.look_up is not None,
        trust=callback.trust if callback else Trust.HINT,
        after_uncertain=submit.after_uncertain,
        submit_timeout_s=max(submit.timeout_s, *(one.timeout_s or 0.0 for one in submit.variants), 0.0),
        mask_style=submit.mask_style,
        needs_image_data=needs_data,
        needs_image_urls=needs_urls,
        record_keys=frozenset(record_keys(declaration)),
        **declaration.limits.model_dump(),
    )


class _ValueMissing(Exception):
    """A `${name}` without a value."""


def _faulty(label: str, faults: list[str]) -> ConfigurationError:
    return ConfigurationError("\n".join(f"{label}: {fault}" for fault in faults))


def _with_values(node: Any, values: Mapping[str, str], place: str) -> Any:
    if isinstance(node, dict):
        return {
            key: _with_values(member, values, f"{place}.{key}" if place else key)
            for key, member in node.items()
        }
    if isinstance(node, list):
        return [_with_values(member, values, f"{place}[{index}]") for index, member in enumerate(node)]
    if not isinstance(node, str):
        return node

    def replace(match: re.Match[str]) -> str:
        value = values.get(match.group(1), match.group(2))
        if value is None:
            raise _ValueMissing(
                f"{place} needs a value for ${{{match.group(1)}}}; set it or write ${{name:else}}"
            )
        return value

    return _VALUE.sub(replace, node)
