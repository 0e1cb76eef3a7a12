"""What every verb works with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from safelight.assets.fetch import Fetcher
from safelight.assets.pictures import PicturePool
from safelight.assets.store import AssetStore
from safelight.db.database import Database
from safelight.domain.catalog import Catalog
from safelight.domain.provider import Provider
from safelight.domain.tokens import CallbackTokens
from safelight.errors import ConfigurationError
from safelight.lifecycle.changes import UNKNOWN_LIFETIME_S
from safelight.lifecycle.pace import Paces
from safelight.settings import Settings


@dataclass(frozen=True, slots=True)
class Context:
    """The parts that the composition root put together."""

    settings: Settings
    database: Database
    providers: Mapping[str, Provider]
    catalog: Catalog
    store: AssetStore
    fetcher: Fetcher
    pictures: PicturePool
    tokens: CallbackTokens
    paces: Paces

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
