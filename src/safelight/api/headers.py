"""What a request says about itself: headers that may be there once, and the caller's address."""

from __future__ import annotations

from collections.abc import Mapping
from ipaddress import IPv6Address

from starlette.types import Scope

Headers = Mapping[bytes, bytes]


def headers_of(scope: Scope) -> Headers:
    """Headers by name; one that is there more than once reads as empty, so that no choice is made for anybody."""
    given: list[tuple[bytes, bytes]] = scope["headers"]
    found = dict(given)
    if len(found) != len(given):
        names = [name for name, _ in given]
        found.update((name, b"") for name in found if names.count(name) > 1)
    return found


def address_of(scope: Scope) -> str:
    """The caller's address as limits count it: of IPv6 the /64, which is what one customer has."""
    client = scope.get("client")
    address: str = client[0] if client else ""
    if ":" not in address:
        return address
    try:
        return str(IPv6Address(int(IPv6Address(address)) >> 64 << 64))
    except ValueError:
        return address
