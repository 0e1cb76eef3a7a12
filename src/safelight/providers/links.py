"""Addresses that an upstream gives for later calls: used only where they lead to the upstream itself."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

import structlog

from safelight.domain.provider import ProviderUpdate
from safelight.providers.declaration import Declaration

log = structlog.get_logger()


class LinkFilter:
    """Keeps addresses on the provider's own hosts, since our credentials travel to whatever is called."""

    def __init__(self, base_url: str, declaration: Declaration) -> None:
        self._name = declaration.name
        self._origins = {_origin(address) for address in (base_url, *declaration.hosts.values())}
        self._hosts = declaration.link_hosts

    def kept(self, update: ProviderUpdate) -> ProviderUpdate:
        """The update without addresses that lead elsewhere."""
        if not update.links:
            return update
        return replace(update, links={name: url for name, url in update.links.items() if self.allowed(url)})

    def allowed(self, url: str | None) -> str | None:
        """The address if it may be called, else None: then the declared path is taken."""
        if url is None:
            return None
        try:
            parts = urlsplit(url)
            origin, host = _origin(url), parts.hostname or ""
        except ValueError:
            return None
        is_clean = url.isascii() and url.isprintable() and " " not in url and not parts.fragment
        is_named = parts.scheme == "https" and any(_matches(host, pattern) for pattern in self._hosts)
        if is_clean and "@" not in parts.netloc and (origin in self._origins or is_named):
            return url
        log.warning("link_refused", provider=self._name, host=host[:100])
        return None


def _origin(url: str) -> tuple[str, str, int | None] | None:
    parts = urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    return (parts.scheme, parts.hostname, port) if parts.hostname else None


def _matches(host: str, pattern: str) -> bool:
    if pattern.startswith("*."):
        return host.endswith(pattern[1:]) and host != pattern[1:]
    return host == pattern
