"""Which addresses a stranger's URL may never reach: our own table, not the standard library's opinion."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

_V4: tuple[tuple[IPv4Network, str], ...] = tuple(
    (IPv4Network(network), reason)
    for network, reason in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "carrier-grade NAT"),
        ("127.0.0.0/8", "loopback"),
        # Azure's platform address is routed as if it were public, but answers only inside a tenant.
        ("168.63.129.16/32", "cloud platform"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relay"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarking"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)

_V6: tuple[tuple[IPv6Network, str], ...] = tuple(
    (IPv6Network(network), reason)
    for network, reason in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "local NAT64"),
        ("100::/64", "discard"),
        ("2001::/32", "Teredo"),
        ("2001::/23", "protocol assignments"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("5f00::/16", "segment routing"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)

_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


def classify(ip: str) -> str | None:
    """Say why this address is denied, or None if it may be reached.

    Accepts only the canonical text of an address; anything else, and any scope id, is denied.
    """
    try:
        address = ip_address(ip)
    except ValueError:
        return "not an address"
    if isinstance(address, IPv4Address):
        return _classify_v4(address)
    if address.scope_id is not None:
        return "scoped"
    if address.ipv4_mapped is not None:
        return _classify_v4(address.ipv4_mapped)
    return _classify_v6(address)


def _classify_v4(address: IPv4Address) -> str | None:
    return next((reason for network, reason in _V4 if address in network), None)


def _classify_v6(address: IPv6Address) -> str | None:
    outer = next((reason for network, reason in _V6 if address in network), None)
    if outer is None:
        # Only 2000::/3 has been given out; this also covers ::a.b.c.d, which some stacks still unwrap.
        return None if address in _GLOBAL_UNICAST else "not global unicast"
    inner = next((reason for v4 in _embedded(address) if (reason := _classify_v4(v4))), None)
    return f"{outer} of {inner}" if inner else outer


def _embedded(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses wrapped in a NAT64, 6to4 or Teredo address (Teredo: server and client)."""
    if address in _NAT64:
        return (IPv4Address(int(address) & 0xFFFFFFFF),)
    if address.sixtofour is not None:
        return (address.sixtofour,)
    return address.teredo or ()
