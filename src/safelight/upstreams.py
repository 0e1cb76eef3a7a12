"""Which upstreams an installation uses: settings and declarations in, provider keys and the catalog out."""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path

from pydantic import SecretStr
from yarl import URL

from safelight.assets.addresses import classify
from safelight.domain.catalog import Catalog, Model
from safelight.errors import ConfigurationError
from safelight.providers.checks import credential_names, missing_credentials
from safelight.providers.declaration import Declaration
from safelight.providers.loading import load_declaration, models_of, packaged_declaration, packaged_names
from safelight.settings import PROVIDER_PREFIX, ModelSettings, ProviderSettings, Settings

LAB_SHAPES = ("lab-callback", "lab-poll", "lab-sync")
LAB_CREDENTIALS = {"api_key": SecretStr("lab-key"), "callback_secret": SecretStr("lab-secret")}
_PLACES = frozenset({"base_url", "region", "jwks_url"})
_NUMBERED = re.compile(r"(.+)_([1-9][0-9]?)")
_INSIDE = re.compile(r"[^.]+|.+\.(?:local|lan|internal|home\.arpa|localhost)")
"""Names of hosts that only exist in one's own network."""


@dataclass(frozen=True, slots=True)
class ProviderKey:
    """One set of credentials at one provider, under the name by which rows know it: `fal`, `fal-2`, …"""

    name: str
    declaration: Declaration
    credentials: Mapping[str, SecretStr]
    base_url: str | None = None
    region: str | None = None
    jwks_url: str | None = None


@dataclass(frozen=True, slots=True)
class Upstreams:
    """What an installation uses. `names` are the keys of each provider, `origins` where its results may lie
    although nobody else may look there.
    """

    keys: tuple[ProviderKey, ...]
    names: Mapping[str, Sequence[str]]
    catalog: Catalog
    origins: tuple[str, ...] = ()


def read_upstreams(settings: Settings) -> Upstreams:
    """Everything that is enabled, checked against the declarations.

    Raises:
        ConfigurationError: nothing is enabled, or something that is cannot work; the text says the mend.
    """
    keys = (*read_keys(settings), *_lab_keys(settings))
    if not keys:
        raise ConfigurationError(
            "no provider is configured: start `safelight serve`, or set a provider's key or SAFELIGHT_LAB_URL"
        )
    names: dict[str, list[str]] = {}
    for key in keys:
        names.setdefault(key.declaration.name, []).append(key.name)
    declarations = {key.declaration.name: key.declaration for key in keys}
    return Upstreams(
        keys=keys,
        names=names,
        catalog=_catalog(declarations.values(), settings.models),
        origins=tuple(dict.fromkeys(inner_origins(keys))),
    )


def read_keys(settings: Settings) -> tuple[ProviderKey, ...]:
    """The keys of every provider but the lab, in the order of the file, then by name."""
    tables = {name: table for name, table in settings.providers.items() if not _is_about_lab(name, table)}
    known = _known_names(tables)
    if strange := next((name for name in tables if name not in known), None):
        raise ConfigurationError(f"unknown provider in [providers.{strange}]{_nearest(strange, known)}")
    given: dict[str, _Given] = {name: _Given() for name in tables}
    for variable in sorted(settings.provider_variables):
        name = _provider_of(variable, known)
        given.setdefault(name, _Given()).variables[variable] = settings.provider_variables[variable]
    disabled = {name for name, table in tables.items() if not table.enabled}
    return tuple(
        key
        for name, one in given.items()
        if name not in disabled
        for key in _keys_of(name, tables.get(name, ProviderSettings()), one)
    )


@dataclass(slots=True)
class _Given:
    """What the environment says about one provider."""

    variables: dict[str, SecretStr] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    shared: dict[str, SecretStr] = field(default_factory=dict)
    numbered: dict[int, dict[str, SecretStr]] = field(default_factory=dict)

    def sort_out(self, provider: str, credentials: Sequence[str]) -> None:
        """Tell places from credentials, and those of the first key from those of the others."""
        for variable, value in self.variables.items():
            what = variable.removeprefix(f"{PROVIDER_PREFIX}{_word(provider)}_").lower()
            numbered = _NUMBERED.fullmatch(what)
            if what in _PLACES:
                self.places[what] = value.get_secret_value()
            elif what in credentials:
                self.shared[what] = value
            elif numbered and numbered[1] in credentials:
                self.numbered.setdefault(int(numbered[2]), {})[numbered[1]] = value
            else:
                raise ConfigurationError(
                    f"unknown credential in {variable}{_nearest(what, (*credentials, *sorted(_PLACES)))}"
                )


def _is_about_lab(name: str, table: ProviderSettings) -> bool:
    """Whether a table only says how the lab is treated: its address and keys are its own."""
    says_more = table.file or table.base_url or table.keys or table.credentials or table.credential_files
    return name in LAB_SHAPES and not says_more


def _known_names(tables: Mapping[str, ProviderSettings]) -> list[str]:
    own = [name for name, table in tables.items() if table.file is not None]
    return [*(name for name in packaged_names() if name not in LAB_SHAPES), *own]


def _provider_of(variable: str, known: Collection[str]) -> str:
    rest = variable.removeprefix(PROVIDER_PREFIX)
    fitting = [name for name in known if rest.startswith(f"{_word(name)}_")]
    if fitting:
        return max(fitting, key=len)
    parts = rest.lower().split("_")
    heads = ["-".join(parts[:count]) for count in range(1, len(parts) + 1)]
    near = [name for head in heads for name in difflib.get_close_matches(head, known, n=1)]
    raise ConfigurationError(f"unknown provider in {variable}{_nearest(near[0] if near else rest, known)}")


def _word(name: str) -> str:
    return name.upper().replace("-", "_")


def _nearest(word: str, known: Iterable[str]) -> str:
    """The end of a sentence about an unknown word: which one is near, else which ones there are."""
    words = sorted(set(known))
    near = difflib.get_close_matches(word, words, n=1)
    if near:
        return f"; is {near[0]!r} meant?"
    return f"; there are {', '.join(words)}" if words else ""


def _keys_of(name: str, table: ProviderSettings, given: _Given) -> Iterable[ProviderKey]:
    declaration = _declaration(name, table)
    credentials = credential_names(declaration)
    given.sort_out(name, credentials)
    in_file = {**table.credentials, **_read_files(name, table.credential_files)}
    for word in (*in_file, *(word for key in table.keys for word in key)):
        if word not in credentials:
            raise ConfigurationError(
                f"unknown word {word!r} in [providers.{name}]{_nearest(word, (*credentials, *_WORDS))}"
            )
    for number in sorted({1, *range(1, len(table.keys) + 1), *given.numbered}):
        in_list = table.keys[number - 1] if number <= len(table.keys) else {}
        # The environment wins over the file; what it says without a number belongs to the first key above all.
        known = {
            **in_file,
            **given.shared,
            **in_list,
            **(given.shared if number == 1 else {}),
            **given.numbered.get(number, {}),
        }
        key = ProviderKey(
            name=name if number == 1 else f"{name}-{number}",
            declaration=declaration,
            credentials=known,
            base_url=given.places.get("base_url", table.base_url),
            region=given.places.get("region", table.region),
            jwks_url=given.places.get("jwks_url", table.jwks_url),
        )
        _check(key, number)
        yield key


_WORDS = tuple(name for name in ProviderSettings.model_fields if not name.startswith("credential"))


def _check(key: ProviderKey, number: int) -> None:
    """The one question to a declaration about what it cannot do without."""
    present = {name: secret.get_secret_value() for name, secret in key.credentials.items()}
    for credential in missing_credentials(key.declaration, present):
        name = key.declaration.name
        end = "" if number == 1 else f"_{number}"
        variable = f"{PROVIDER_PREFIX}{_word(name)}_{credential.upper()}{end}"
        raise ConfigurationError(
            f"provider {key.name}: set its credential {credential!r}, as {variable} or in [providers.{name}]"
        )


def _declaration(name: str, table: ProviderSettings) -> Declaration:
    if table.file is None:
        return packaged_declaration(name)
    declaration = load_declaration(table.file)
    if declaration.name != name:
        raise ConfigurationError(
            f"{table.file} declares {declaration.name!r}; write [providers.{declaration.name}], or name = {name!r}"
        )
    return declaration


def _read_files(name: str, files: Mapping[str, Path]) -> dict[str, SecretStr]:
    try:
        return {word: SecretStr(path.read_text(encoding="utf-8").strip()) for word, path in files.items()}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"[providers.{name}]: a credential's file cannot be read: {error}") from None


def _lab_keys(settings: Settings) -> tuple[ProviderKey, ...]:
    if settings.lab_url is None:
        return ()
    values = {"lab_url": settings.lab_url}
    return tuple(
        ProviderKey(
            name, packaged_declaration(name, values=values), LAB_CREDENTIALS, base_url=settings.lab_url
        )
        for name in LAB_SHAPES
    )


def inner_origins(keys: Iterable[ProviderKey]) -> Iterator[str]:
    """Upstreams that answer without TLS, or from an address in our own network: their results lie there too."""
    for key in keys:
        url = URL(key.base_url or "")
        host = url.host or ""
        if url.scheme == "http" or (host and _is_inside(host)):
            yield str(url.origin())


def _is_inside(host: str) -> bool:
    try:
        return classify(str(ip_address(host))) is not None
    except ValueError:
        return _INSIDE.fullmatch(host) is not None


Offers = Mapping[str, Mapping[str, Model]]
"""Declared models by name, then by provider."""


def _catalog(declarations: Iterable[Declaration], changes: Mapping[str, ModelSettings]) -> Catalog:
    offers: dict[str, dict[str, Model]] = {}
    for declaration in declarations:
        for model in models_of(declaration):
            offers.setdefault(model.name, {})[declaration.name] = model
    if strange := next((name for name in changes if name not in offers and not changes[name].routes), None):
        raise ConfigurationError(f"unknown model in [models.{strange}]{_nearest(strange, offers)}")
    models = [
        _model_of(name, offers, changes.get(name, ModelSettings()))
        for name in (*offers, *(name for name in changes if name not in offers))
        if changes.get(name, ModelSettings()).enabled
    ]
    return Catalog(_with_one_default(models, changes))


def _model_of(name: str, offers: Offers, change: ModelSettings) -> Model:
    """One model of all that declare it, in the order that the settings ask for."""
    words = change.routes or tuple(offers[name])
    first, *others = (_changed(_route(name, word, offers), change) for word in dict.fromkeys(words))
    if change.max_n is not None and change.max_n > _route(name, words[0], offers).max_n:
        raise ConfigurationError(
            f"[models.{name}]: max_n is above the {first.max_n} that {first.provider} takes"
        )
    price = first.price if change.price is None else change.price
    is_default = first.is_default and name in offers
    return replace(first, name=name, price=price, is_default=is_default, others=tuple(others))


def _route(name: str, word: str, offers: Offers) -> Model:
    """`provider`, or `provider/model` where that provider calls the model otherwise."""
    provider, _, other_name = word.partition("/")
    found = offers.get(other_name or name, {}).get(provider)
    if found is None:
        known = [f"{one}/{model}" for model, by_provider in offers.items() for one in by_provider]
        raise ConfigurationError(
            f"[models.{name}] has the route {word!r}, which is not enabled or has no such model"
            + _nearest(word if other_name else f"{provider}/{name}", known)
        )
    return found


def _changed(model: Model, change: ModelSettings) -> Model:
    return replace(
        model,
        max_n=model.max_n if change.max_n is None else min(model.max_n, change.max_n),
        default_p95_s=model.default_p95_s if change.default_p95_s is None else change.default_p95_s,
    )


def _with_one_default(models: Sequence[Model], changes: Mapping[str, ModelSettings]) -> list[Model]:
    """At most one model is the default: the one that the settings name, else the first that is declared so."""
    wished = [name for name, change in changes.items() if change.is_default]
    if len(wished) > 1:
        raise ConfigurationError(f"two models are the default: {wished[0]!r} and {wished[1]!r}")
    refused = {name for name, change in changes.items() if change.is_default is False}
    declared = [model.name for model in models if model.is_default and model.name not in refused]
    default = next(iter((*wished, *declared)), None)
    return [replace(model, is_default=model.name == default) for model in models]
