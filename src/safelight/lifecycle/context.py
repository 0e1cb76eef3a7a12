"""What every verb works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from safelight.assets.fetch import Fetcher
from safelight.assets.inputlinks import InputLinks
from safelight.assets.pictures import PicturePool
from safelight.assets.store import AssetStore
from safelight.db.database import Database
from safelight.domain.catalog import Catalog
from safelight.domain.provider import Provider
from safelight.domain.tokens import CallbackTokens
from safelight.errors import ConfigurationError
from safelight.lifecycle.changes import UNKNOWN_LIFETIME_S
from safelight.lifecycle.pace import Paces
from safelight.lifecycle.routing import Routing
from safelight.settings import ProviderSettings, Settings


@dataclass(frozen=True, slots=True)
class Context:
    """The parts that the composition root put together; `fetcher` is for results alone."""

    settings: Settings
    database: Database
    providers: Mapping[str, Provider]
    catalog: Catalog
    store: AssetStore
    fetcher: Fetcher
    pictures: PicturePool
    tokens: CallbackTokens
    links: InputLinks
    paces: Paces
    routing: Routing

    def table(self, provider_name: str) -> ProviderSettings:
        """What the settings say about a provider, by the name of any of its keys."""
        return self.settings.providers.get(self.routing.provider_of(provider_name)) or _NOTHING_SAID

    def is_observed(self, provider_name: str) -> bool:
        """Whether its callbacks are judged and kept, but change nothing."""
        return self.table(provider_name).mode == "observe"

    def is_called_back(self, provider_name: str) -> bool:
        """Whether a callback of this provider could reach us and change something."""
        return self.settings.public_url is not None and not self.is_observed(provider_name)

    def lifetime_s(self, provider_name: str) -> float:
        """How long a provider's result URLs live, seconds."""
        found = self.providers.get(provider_name)
        declared_s = found.capabilities.result_lifetime_s if found else None
        return UNKNOWN_LIFETIME_S if declared_s is None else declared_s

    def provider(self, name: str) -> Provider:
        """The provider of this name.

        Raises:
            ConfigurationError: it is not configured (any more).
        """
        found = self.providers.get(name)
        if found is None:
            raise ConfigurationError(f"provider {name!r} is not configured")
        return found


_NOTHING_SAID = ProviderSettings()
