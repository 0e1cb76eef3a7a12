"""Reading a stranger's URL: one strict form in, one origin and one byte-exact target out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import AddressValueError, IPv4Address, IPv6Address
from typing import NamedTuple
from urllib.parse import urljoin

from yarl import URL

from safelight.errors import AssetError, ConfigurationError

_SHAPE = re.compile(r"(?P<scheme>https?)://(?P<authority>[^/?#]*)(?P<rest>[^#]*)", re.IGNORECASE)
_AUTHORITY = re.compile(r"(?P<host>\[[0-9A-Fa-f:.]+\]|[^\[\]:@%\\\s]+)(?::(?P<port>[0-9]{1,5}))?")
_NAME = re.compile(
    r"(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?)*"
)
_NUMBER = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")
_ABSOLUTE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_DEFAULT_PORT = {"https": 443, "http": 80}


class Origin(NamedTuple):
    """Scheme, host and port; `host` is lower-case ASCII, an IPv6 literal stands without brackets."""

    scheme: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == _DEFAULT_PORT[self.scheme] else f":{self.port}"
        return f"{self.scheme}://{host}{port}"


@dataclass(frozen=True, slots=True)
class Target:
    """One URL that may be asked for: `is_literal` means the host is an address and no name."""

    origin: Origin
    rest: str
    is_literal: bool

    @property
    def url(self) -> URL:
        """The URL with its path and query byte for byte: a re-quoted signature is a broken signature."""
        return URL(f"{self.origin}{self.rest}", encoded=True)


def parse_target(text: str, *, max_characters: int = 2_048) -> Target:
    """Read `text` or raise AssetError `bad_url`, or `address_refused` for a disguised address."""
    text = text.strip(" \t\r\n")
    if len(text) > max_characters:
        raise _bad_url("the URL is too long")
    if _FORBIDDEN.search(text):
        raise _bad_url("the URL holds a control character or a backslash")
    shape = _SHAPE.match(text)
    if shape is None:
        raise _bad_url("only http and https URLs are allowed")
    authority = _AUTHORITY.fullmatch(shape["authority"])
    if authority is None:
        raise _bad_url("the host part of the URL is malformed")
    scheme = shape["scheme"].lower()
    host, is_literal = _read_host(authority["host"])
    port = int(authority["port"] or _DEFAULT_PORT[scheme])
    if not 1 <= port <= 65_535:
        raise _bad_url("the port is out of range")
    return Target(Origin(scheme, host, port), _quote_rest(shape["rest"]), is_literal)


def parse_origins(origins: Iterable[str]) -> frozenset[Origin]:
    """Read the operator's list of allowed origins; anything but scheme, host and port is a mistake."""
    return frozenset(_parse_origin(text) for text in origins)


def follow(target: Target, location: str, *, max_characters: int = 2_048) -> Target:
    """The target of a redirect; an absolute `location` is taken byte for byte."""
    location = location.strip(" \t\r\n")
    if location.startswith("//"):
        location = f"{target.origin.scheme}:{location}"
    elif location.startswith("/"):
        location = f"{target.origin}{location}"
    elif not _ABSOLUTE.match(location):
        location = urljoin(f"{target.origin}{target.rest}", location)
    return parse_target(location, max_characters=max_characters)


def _parse_origin(text: str) -> Origin:
    try:
        target = parse_target(text)
    except AssetError as error:
        raise ConfigurationError(f"allowed origin {text!r}: {error}") from error
    if target.rest != "/":
        raise ConfigurationError(f"allowed origin {text!r}: give scheme, host and port only")
    return target.origin


def _read_host(host: str) -> tuple[str, bool]:
    """The canonical host, and whether it is an address literal."""
    if host.startswith("["):
        try:
            return str(IPv6Address(host[1:-1])), True
        except AddressValueError:
            raise _bad_url("the host part of the URL is malformed") from None
    name = _to_ascii(host).removesuffix(".")
    try:
        return str(IPv4Address(name)), True
    except AddressValueError:
        pass
    if not _NAME.fullmatch(name):
        raise _bad_url("the host name is malformed")
    if _NUMBER.fullmatch(name.rpartition(".")[2]):
        # getaddrinfo reads 2130706433, 0177.0.0.1, 0x7f.1 and 127.1 as addresses.
        raise AssetError("address_refused", "the host is an address in disguise", is_retryable=False)
    return name, False


def _to_ascii(host: str) -> str:
    if host.isascii():
        return host.lower()
    try:
        ascii_host = URL.build(scheme="https", host=host).raw_host
    except ValueError:
        raise _bad_url("the host name is malformed") from None
    return (ascii_host or "").lower()


def _quote_rest(rest: str) -> str:
    """Escape only what cannot travel in a request line: spaces and bytes outside ASCII."""
    if not rest.startswith("/"):
        rest = f"/{rest}"
    try:
        # Headers arrive with odd bytes as surrogates; they leave as the bytes they were.
        raw = rest.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise _bad_url("the URL is not valid text") from None
    return "".join(chr(byte) if 0x20 < byte < 0x7F else f"%{byte:02X}" for byte in raw)


def _bad_url(detail: str) -> AssetError:
    return AssetError("bad_url", detail, is_retryable=False)
