"""Makes the provider that a declaration describes: the interpreter, or the module that its `code` names."""

from __future__ import annotations

from collections.abc import Mapping

import aiohttp

from safelight.providers.comfyui import ComfyUi
from safelight.providers.declaration import Declaration
from safelight.providers.declared import DeclaredProvider, Secret

_BY_CODE = {None: DeclaredProvider, "comfyui": ComfyUi}


def build_provider(
    declaration: Declaration,
    *,
    credentials: Mapping[str, Secret],
    session: aiohttp.ClientSession,
    base_url: str | None = None,
    region: str | None = None,
    jwks_url: str | None = None,
    name: str | None = None,
) -> DeclaredProvider:
    """A provider; see `DeclaredProvider` for what each part means.

    Raises:
        ConfigurationError: no address, or a credential that the declaration uses is absent or unfit.
    """
    return _BY_CODE[declaration.code](
        declaration,
        credentials=credentials,
        session=session,
        base_url=base_url,
        region=region,
        jwks_url=jwks_url,
        name=name,
    )
