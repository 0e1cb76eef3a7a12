"""No spelling of a URL, no answer of a name server and no redirect leads to an address that is denied."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from ipaddress import IPv4Address, ip_address
from itertools import cycle

import pytest

from safelight.assets import fetch as fetch_module
from safelight.assets.fetch import Fetcher
from safelight.errors import AssetError
from tests.assets.conftest import Connects, Stranger, words
from tests.assets.test_addresses import DENIED_V4, DENIED_V6

PUBLIC = "93.184.215.14"
REFUSED = {"address_refused", "bad_url"}


def spellings(address: str) -> list[str]:
    """Ways to write an IPv4 host that some library or other reads as that address."""
    number = int(IPv4Address(address))
    a, b, c, d = IPv4Address(address).packed
    wide = str.maketrans("0123456789.", "０１２３４５６７８９．")
    return [
        address,
        str(number),
        hex(number),
        hex(number).upper(),
        f"0{number:o}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}",
        f"{a}.{b}.{(c << 8) + d}",
        f"{a}.{(b << 16) + (c << 8) + d}",
        f"{a:03}.{b:03}.{c:03}.{d:03}",
        address.translate(wide),
        address.replace(".", "。"),
        f"{address}.",
        "".join(f"%{ord(sign):02x}" for sign in address),
        f"[::ffff:{address}]",
        f"[::ffff:{number >> 16:x}:{number & 0xFFFF:x}]",
        f"[::{address}]",
        f"[64:ff9b::{address}]",
        f"[2002:{number >> 16:x}:{number & 0xFFFF:x}::1]",
        f"[{address}]",
        f"user@{address}",
        f"example.com@{address}",
        f"example.com:x@{address}",
        f"{address}:443",
    ]


HOSTS = [host for address in DENIED_V4 for host in spellings(address)]
HOSTS += [f"[{address}]" for address in DENIED_V6] + [f"[{a.upper()}]:443" for a in DENIED_V6]

TRICKS = words(
    "https:///{to}/ https:/{to}/ https:{to}/ https:\\\\{to}/ https://example.com\\@{to}/ //{to}/ {to} "
    "https://example.com#@{to}/ https://@{to}/ https://:@{to}/ https://{to}:22/ https://{to}:0/ "
    "https://{to}:99999/ https://{to}:/ https://[{to}/ https://{to}]/ https://[{to}]/ HTTPS://{to}/ "
    "http://{to}/ ftp://{to}/ file:///etc/passwd file://{to}/etc/passwd gopher://{to}:6379/_INFO "
    "data:text/plain,{to} blob:https://{to}/ javascript:{to} https://{to}%00.example.com/ "
    "https://{to}%23@example.com\t/ https://{to}%2f@example.com/ https://ex\x00ample.com/ "
    "https://example.com\r\nHost:{to}/ https://[::1%25eth0]/ https://[fe80::1%eth0]/ "
    "https://[v1.{to}]/ https://-x.example/ https://a..b/ https://.{to}/ https://*/ "
    "https://{to},example.com/ https://"
)


@pytest.fixture
async def lookups() -> list[str]:
    return []


@pytest.fixture
async def fetcher(connects: Connects, stranger: Stranger, lookups: list[str]) -> AsyncIterator[Fetcher]:
    """Only `stranger` may be reached; names answer loopback, so that a name that slips through is seen."""
    connects.reachable.add(stranger.port)

    async def lookup(host: str, port: int) -> Sequence[str]:
        lookups.append(host)
        return ["127.0.0.1"]

    async with Fetcher([stranger.origin], lookup=lookup) as one:
        yield one


async def refusal(fetcher: Fetcher, url: str) -> str:
    with pytest.raises(AssetError) as caught:
        await fetcher.fetch(url)
    assert not caught.value.is_retryable, url
    return caught.value.reason


def test_the_corpus_is_as_large_as_promised() -> None:
    assert len(HOSTS) + len(TRICKS) >= 400


async def test_no_spelling_of_a_denied_host_is_connected(
    fetcher: Fetcher, connects: Connects, canary: Stranger, lookups: list[str]
) -> None:
    found = {host: await refusal(fetcher, f"https://{host}/x?secret=1") for host in HOSTS}
    found |= {f"{host}+": await refusal(fetcher, f"http://{host}:{canary.port}/x") for host in HOSTS}
    assert set(found.values()) <= REFUSED
    assert (connects.tried, canary.connections) == ([], 0)
    assert lookups == [], "an address in disguise must not even be looked up"


@pytest.mark.parametrize("trick", TRICKS)
async def test_no_trick_around_a_host_is_connected(
    fetcher: Fetcher, connects: Connects, canary: Stranger, trick: str
) -> None:
    for host in ("127.0.0.1", f"127.0.0.1:{canary.port}", "localhost", "LOCALHOST."):
        assert await refusal(fetcher, trick.format(to=host)) in REFUSED
    assert (connects.tried, canary.connections) == ([], 0)


@pytest.mark.parametrize("address", [*DENIED_V4, *DENIED_V6])
@pytest.mark.parametrize("where", ["alone", "first", "last"])
async def test_a_name_with_one_denied_address_is_refused_whole(
    connects: Connects, address: str, where: str
) -> None:
    answers = {"alone": [address], "first": [address, PUBLIC], "last": [PUBLIC, "2606:4700::1111", address]}

    async def lookup(host: str, port: int) -> Sequence[str]:
        return answers[where]

    async with Fetcher(lookup=lookup) as fetcher:
        assert await refusal(fetcher, "https://pictures.example/x") == "address_refused"
    assert connects.tried == []


async def test_a_name_that_changes_its_mind_between_two_lookups_is_caught(connects: Connects) -> None:
    turns = cycle([[PUBLIC], ["127.0.0.1"]])

    async def lookup(host: str, port: int) -> Sequence[str]:
        return next(turns)

    async with Fetcher(lookup=lookup) as fetcher:
        for _ in range(5):
            with pytest.raises(AssetError, match="cannot be reached"):
                await fetcher.fetch("https://rebind.example/x")
            assert await refusal(fetcher, "https://rebind.example/x") == "address_refused"
    assert connects.tried == [(PUBLIC, 443)] * 5


async def test_the_last_gate_holds_even_if_the_resolver_lets_everything_pass(
    connects: Connects, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch_module._VettingResolver, "resolve", _blind_resolve)
    async with Fetcher() as fetcher:
        assert await refusal(fetcher, "https://pictures.example/x") == "address_refused"
    assert connects.tried == []


async def _blind_resolve(self: object, host: str, port: int = 0, family: int = 0) -> list[object]:
    return [fetch_module._resolved(host, port, "127.0.0.1"), fetch_module._resolved(host, port, "::1")]


@pytest.mark.parametrize("status", ["301 a", "302 a", "303 a", "307 a", "308 a"])
@pytest.mark.parametrize(
    "to",
    [
        "http://169.254.169.254/latest/meta-data/",
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:127.0.0.1]/",
        "//127.0.0.1/",
        "//localhost:{canary}/",
        "http://127.0.0.1:{canary}/",
        "https://127.0.0.1:{stranger}/",
        "http://localhost:{stranger}/",
        "http://127.1:{stranger}/",
        "http://127.0.0.1.:{canary}/",
        "https://names-answer-loopback.example/",
        "http://pictures.example:443/",
        "https://pictures.example:8443/",
        "file:///etc/passwd",
        "\\\\127.0.0.1\\x",
        "https://user:password@example.com/",
    ],
)
async def test_a_redirect_is_vetted_like_the_first_url(
    fetcher: Fetcher, connects: Connects, stranger: Stranger, canary: Stranger, reply: Callable[..., bytes],
    lookups: list[str], status: str, to: str,
) -> None:  # fmt: skip
    location = to.format(canary=canary.port, stranger=stranger.port)
    stranger.answers["/a"] = reply(status=status, Location=location)
    assert await refusal(fetcher, f"{stranger.origin}/a") in REFUSED
    assert lookups == ["names-answer-loopback.example"] * to.count("names")
    assert connects.tried == [("127.0.0.1", stranger.port)]
    assert canary.connections == 0


async def test_an_allowed_origin_allows_nothing_else_on_its_host(
    fetcher: Fetcher, connects: Connects, stranger: Stranger, canary: Stranger
) -> None:
    for url in (
        f"http://127.0.0.1:{canary.port}/",
        f"https://127.0.0.1:{stranger.port}/",
        f"http://localhost:{stranger.port}/",
        f"http://127.0.0.2:{stranger.port}/",
        f"http://[::ffff:127.0.0.1]:{stranger.port}/",
        "http://127.0.0.1/",
        "https://127.0.0.1/",
    ):
        assert await refusal(fetcher, url) in REFUSED
    assert (connects.tried, canary.connections) == ([], 0)


@pytest.mark.parametrize(
    "url", ["http://lab.example:443/x", "https://lab.example:8001/x", "http://lab.example/"]
)
async def test_an_allowed_origin_opens_no_other_door_of_a_public_host(connects: Connects, url: str) -> None:
    async def lookup(host: str, port: int) -> Sequence[str]:
        return [PUBLIC]

    async with Fetcher(["http://lab.example:8001"], lookup=lookup) as fetcher:
        assert await refusal(fetcher, url) == "bad_url"
    assert connects.tried == []


async def test_an_allowed_name_may_be_private_but_keeps_its_port(
    connects: Connects, stranger: Stranger, reply: Callable[..., bytes]
) -> None:
    async def lookup(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    connects.reachable.add(stranger.port)
    stranger.answers["/x"] = reply(b"bytes")
    async with Fetcher([f"http://lab.example:{stranger.port}"], lookup=lookup) as fetcher:
        assert await fetcher.fetch(f"http://LAB.example.:{stranger.port}/x") == b"bytes"
        assert await refusal(fetcher, "https://other.example/x") == "address_refused"
    assert f"Host: lab.example:{stranger.port}" in stranger.heard[0]


async def test_the_environment_cannot_put_a_proxy_or_credentials_between(
    fetcher: Fetcher, stranger: Stranger, canary: Stranger, reply: Callable[..., bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, canary.origin)
    stranger.answers["/x"] = reply(b"bytes", Set_Cookie="a=b")
    await fetcher.fetch(f"{stranger.origin}/x")
    await fetcher.fetch(f"{stranger.origin}/x")
    assert canary.connections == 0
    heard = "".join(stranger.heard).lower()
    assert "cookie" not in heard
    assert "authorization" not in heard


def test_public_and_denied_are_told_apart_by_the_same_parser() -> None:
    assert all(ip_address(address.partition("%")[0]) for address in (*DENIED_V4, *DENIED_V6, PUBLIC))
