"""Upstreams that make images: declarations, and their interpreter."""

from __future__ import annotations

from safelight.providers.building import build_provider
from safelight.providers.declaration import Declaration
from safelight.providers.declared import DeclaredProvider
from safelight.providers.loading import (
    capabilities_of,
    load_declaration,
    models_of,
    packaged_declaration,
    packaged_names,
    packaged_text,
)

__all__ = [
    "Declaration",
    "DeclaredProvider",
    "build_provider",
    "capabilities_of",
    "load_declaration",
    "models_of",
    "packaged_declaration",
    "packaged_names",
    "packaged_text",
]
