"""Which addresses are denied, in every disguise that IPv6 offers."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address

import pytest

from safelight.assets.addresses import classify
from tests.assets.conftest import words

DENIED_V4 = words(
    "0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.100.100.200 100.127.255.255 127.0.0.1 "
    "127.255.255.254 168.63.129.16 169.254.0.1 169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 "
    "192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 192.168.255.255 198.18.0.1 198.19.255.255 "
    "198.51.100.7 203.0.113.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255"
)
DENIED_V6 = words(
    ":: ::1 ::2 ::7f00:1 ::127.0.0.1 64:ff9b::8.8.8.8 64:ff9b:1::1 64:ff9b:1:ffff::a00:1 100::1 "
    "2001::1 2001:2::1 2001:10::1 2001:db8::1 2002:808:808::1 3fff::1 3fff:fff::1 5f00::1 fc00::1 "
    "fd00:ec2::254 fe80::1 febf::1 fec0::1 feff::1 ff02::1 ff0e::1 4000::1 e000::1 fe80::1%eth0 "
    "2606:4700::1%1"
)
ALLOWED = words(
    "8.8.8.8 1.1.1.1 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1 "
    "172.15.0.1 172.32.0.1 192.0.1.1 192.167.1.1 198.17.0.1 198.20.0.1 223.255.255.255 2606:4700::1111 "
    "2a00:1450:4001::200e 2001:200::1 2400:cb00::1 ::ffff:8.8.8.8"
)


@pytest.mark.parametrize("address", [*DENIED_V4, *DENIED_V6])
def test_an_address_that_is_not_public_is_denied(address: str) -> None:
    assert classify(address)


@pytest.mark.parametrize("address", ALLOWED)
def test_a_public_address_is_allowed_up_to_the_edge_of_the_denied_ones(address: str) -> None:
    assert classify(address) is None


@pytest.mark.parametrize("address", DENIED_V4)
def test_wrapping_a_denied_address_does_not_make_it_public(address: str) -> None:
    number = int(IPv4Address(address))
    reason = classify(address)
    wrapped = {
        "mapped": IPv6Address((0xFFFF << 32) | number),
        "NAT64": IPv6Address((0x64FF9B << 96) | number),
        "6to4": IPv6Address((0x2002 << 112) | (number << 80) | 1),
        "Teredo server": IPv6Address((0x20010000 << 96) | (number << 64) | 0xFFFFFFFF ^ 0x08080808),
        "Teredo client": IPv6Address((0x20010000 << 96) | (0x08080808 << 64) | (number ^ 0xFFFFFFFF)),
    }
    found = {name: classify(str(address)) for name, address in wrapped.items()}
    assert all(said and said.endswith(str(reason)) for said in found.values()), found


@pytest.mark.parametrize(
    "text",
    [
        "",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "127.0.0.01",
        "１２７.0.0.1",
        "8.8.8.8 ",
    ],
)
def test_text_that_is_no_canonical_address_is_denied(text: str) -> None:
    assert classify(text) == "not an address"
