"""safelight takes AI image tasks, answers at once, and never loses a picture or a credit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from safelight.client import AsyncClient, Client, verify_webhook

__all__ = ["AsyncClient", "Client", "__version__", "verify_webhook"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # Found when first asked for: the service imports this package too, and has no use for its own client.
    if name in {"AsyncClient", "Client", "verify_webhook"}:
        from safelight import client

        return getattr(client, name)
    raise AttributeError(f"module 'safelight' has no attribute {name!r}")
