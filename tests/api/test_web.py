"""The pages are served as they were built, under a policy that lets them reach no other host."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from starlette.requests import Request
from starlette.responses import Response

from safelight.api.web import Web
from safelight.errors import RequestError
from tests.api.door import Door

PAGE = '<meta name="csp-nonce" content="__NONCE__"><script src="/web/page-1a2b.js"></script>'
SCRIPT = "export const lamp = 'red'\n" * 50


@pytest.fixture
def web(tmp_path: Path) -> Web:
    """Pages that were built."""
    (tmp_path / "web").mkdir()
    (tmp_path / "index.html").write_text(PAGE)
    (tmp_path / "web" / "page-1a2b.js").write_text(SCRIPT)
    (tmp_path / ".built-from").write_text("0" * 64)
    return Web(tmp_path)


async def test_a_page_forbids_itself_every_other_host_and_styles_that_are_not_its_own(web: Web) -> None:
    answers = [await web.page(_request("/")) for _ in range(2)]
    nonces = []
    for answer in answers:
        policy = dict(
            part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
        )
        (nonce,) = re.findall(r'content="([\w-]+)"', _text(answer))
        nonces.append(nonce)
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == policy["font-src"] == "'self'"
        assert policy["style-src"] == f"'self' 'nonce-{nonce}'"
    assert nonces[0] != nonces[1]


async def test_a_file_is_kept_for_ever_and_packed_for_whoever_can_unpack_it(web: Web) -> None:
    plain = await web.file(_request("/web/page-1a2b.js"))
    packed = await web.file(_request("/web/page-1a2b.js", (b"accept-encoding", b"br, gzip")))
    assert plain.headers["content-type"].startswith("text/javascript")
    assert "immutable" in plain.headers["cache-control"]
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.body) < len(plain.body)
    assert gzip.decompress(bytes(packed.body)) == bytes(plain.body) == SCRIPT.encode()


@pytest.mark.parametrize(
    "path", ["/web/none.js", "/web/../index.html", "/.built-from", "/web/..%2f.built-from"]
)
async def test_what_is_no_file_of_a_page_is_not_found(web: Web, path: str) -> None:
    with pytest.raises(RequestError) as refused:
        await web.file(_request(path))
    assert refused.value.status == 404


async def test_an_installation_without_pages_says_so(tmp_path: Path) -> None:
    answer = await Web(tmp_path / "none").page(_request("/console"))
    assert (answer.status_code, answer.headers["content-type"]) == (404, "text/plain; charset=utf-8")
    assert "make web" in _text(answer)


async def test_the_pages_need_no_key_and_are_no_part_of_the_api_s_description(door: Door) -> None:
    for path in ("/", "/console", "/icon.svg"):
        assert (await door.ask("GET", path)).status in (200, 404)
        assert (await door.ask("POST", path)).status == 405
    described = (await door.ask("GET", "/openapi.json")).json["paths"]
    assert not {"/", "/console", "/icon.svg", "/web/{name}"} & described.keys()


def _request(path: str, *headers: tuple[bytes, bytes]) -> Request:
    return Request(
        {"type": "http", "method": "GET", "path": path, "headers": list(headers), "query_string": b""}
    )


def _text(answer: Response) -> str:
    return bytes(answer.body).decode()
