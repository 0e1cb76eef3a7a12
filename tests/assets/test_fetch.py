"""What a download may do to us, and what it may not."""

from __future__ import annotations

import asyncio
import gzip
import logging
import shutil
import ssl
import subprocess
import tracemalloc
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path

import pytest

from safelight.assets.fetch import Fetcher
from safelight.assets.reading import FetchLimits
from safelight.errors import AssetError, ConfigurationError
from tests.assets.conftest import Stranger

Reply = Callable[..., bytes]

LIMITS = FetchLimits(max_bytes=100_000)
IMPATIENT = FetchLimits(first_byte_s=0.4, total_s=5.0, resolve_s=0.3, min_rate=1_000.0, rate_window_s=0.3)


@pytest.fixture
async def fetcher(stranger: Stranger) -> AsyncIterator[Fetcher]:
    async with Fetcher([stranger.origin], limits=LIMITS) as one:
        yield one


@pytest.fixture
async def impatient(stranger: Stranger) -> AsyncIterator[Fetcher]:
    async with Fetcher([stranger.origin], limits=IMPATIENT) as one:
        yield one


async def failure(fetcher: Fetcher, url: str) -> tuple[str, bool]:
    with pytest.raises(AssetError) as caught:
        await fetcher.fetch(url)
    return caught.value.reason, caught.value.is_retryable


async def test_a_whole_body_arrives_byte_for_byte(fetcher: Fetcher, stranger: Stranger, reply: Reply) -> None:
    body = bytes(range(256)) * 300
    stranger.answers["/x"] = reply(body, Content_Type="text/html")
    assert await fetcher.fetch(f"{stranger.origin}/x") == body


@pytest.mark.parametrize(
    "target",
    [
        "/a%2Fb/%3a%3A?X-Sig=a%2Fb/c%3Ad:e&x=1+2&y=a%20b&z=|~!$'()*,;=@%7E",
        "/%41%zz%e4?%",
        "/a/../b/./c//d",
        "/?X-Amz-Signature=0a&X-Amz-Date=20260101T000000Z",
        "/%E5%9B%BE.png?q=%e5%9b%be",
    ],
)
async def test_a_signed_url_is_sent_as_it_was_signed(
    fetcher: Fetcher, stranger: Stranger, reply: Reply, target: str
) -> None:
    stranger.answers[target] = reply(b"bytes")
    stranger.answers["/go"] = reply(status="302 Found", Location=f"{stranger.origin}{target}")
    stranger.answers["/here"] = reply(status="307 x", Location=target)
    for url in (target, "/go", "/here"):
        assert await fetcher.fetch(f"{stranger.origin}{url}") == b"bytes"
        assert stranger.targets[-1] == target


async def test_what_cannot_travel_is_escaped_and_a_fragment_stays_here(
    fetcher: Fetcher, stranger: Stranger, reply: Reply
) -> None:
    stranger.answers["/%E5%9B%BE%20x?a=%20"] = reply(b"bytes")
    assert await fetcher.fetch(f" {stranger.origin}/图 x?a= #secret\n") == b"bytes"


async def test_three_redirects_are_followed_and_a_fourth_is_not(
    fetcher: Fetcher, stranger: Stranger, reply: Reply
) -> None:
    for hop in range(5):
        stranger.answers[f"/d/{hop}"] = reply(status="302 Found", Location=f"{hop + 1}")
    stranger.answers["/d/5"] = reply(b"bytes")
    assert await fetcher.fetch(f"{stranger.origin}/d/2") == b"bytes"
    assert await failure(fetcher, f"{stranger.origin}/d/1") == ("upstream", False)
    assert await failure(fetcher, f"{stranger.origin}/d/0") == ("upstream", False)
    stranger.answers["/nowhere"] = reply(status="302 Found")
    assert await failure(fetcher, f"{stranger.origin}/nowhere") == ("upstream", False)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("204 No Content", ("empty", True)),
        ("205 Reset", ("empty", True)),
        ("400 Bad", ("upstream", False)),
        ("401 No", ("upstream", False)),
        ("403 No", ("expired", False)),
        ("404 No", ("expired", False)),
        ("408 Late", ("upstream", True)),
        ("410 Gone", ("expired", False)),
        ("429 Slow", ("upstream", True)),
        ("500 Oops", ("upstream", True)),
        ("503 SlowDown", ("upstream", True)),
        ("206 Partial", ("upstream", False)),
        ("304 Not Modified", ("upstream", False)),
    ],
)
async def test_a_status_says_whether_the_same_copy_may_be_tried_again(
    fetcher: Fetcher, stranger: Stranger, reply: Reply, status: str, expected: tuple[str, bool]
) -> None:
    stranger.answers["/x"] = reply(b"" if status[:1] in "23" else b"<Error>AccessDenied</Error>", status)
    assert await failure(fetcher, f"{stranger.origin}/x") == expected


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n" + b"x" * 60_000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\nhello",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello" * 999, mtime=0)[:-9],
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\nthis was never packed",
    ],
)
async def test_a_body_that_breaks_off_is_never_taken_as_whole(
    fetcher: Fetcher, stranger: Stranger, answer: bytes
) -> None:
    stranger.answers["/x"] = answer
    assert await failure(fetcher, f"{stranger.origin}/x") == ("truncated", True)


async def test_a_body_longer_than_promised_is_refused(fetcher: Fetcher, stranger: Stranger) -> None:
    stranger.answers["/x"] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello, and more"
    assert await failure(fetcher, f"{stranger.origin}/x") == ("upstream", True)


@pytest.mark.parametrize("length", ["-1", "5, 6", "five", "5\r\nContent-Length: 6"])
async def test_a_senseless_length_is_refused(fetcher: Fetcher, stranger: Stranger, length: str) -> None:
    stranger.answers["/x"] = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\nhello".encode()
    reason, is_retryable = await failure(fetcher, f"{stranger.origin}/x")
    assert (reason in {"upstream", "unreachable"}, is_retryable) == (True, True)


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n            ",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"", mtime=0),
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 0\r\n\r\n",
    ],
)
async def test_nothing_and_spaces_are_no_content(fetcher: Fetcher, stranger: Stranger, answer: bytes) -> None:
    stranger.answers["/x"] = answer
    assert await failure(fetcher, f"{stranger.origin}/x") == ("empty", True)


@pytest.mark.parametrize("coding", ["gzip", "x-gzip", "deflate", "GZIP"])
async def test_a_packed_body_is_unpacked_although_its_length_is_the_packed_one(
    fetcher: Fetcher, stranger: Stranger, reply: Reply, coding: str
) -> None:
    body = bytes(range(256)) * 200
    packed = zlib.compress(body) if coding == "deflate" else gzip.compress(body)
    stranger.answers["/x"] = reply(packed, Content_Encoding=coding)
    assert await fetcher.fetch(f"{stranger.origin}/x") == body


async def test_a_coding_that_we_did_not_ask_for_is_refused(
    fetcher: Fetcher, stranger: Stranger, reply: Reply
) -> None:
    stranger.answers["/x"] = reply(b"x", Content_Encoding="br")
    assert await failure(fetcher, f"{stranger.origin}/x") == ("upstream", False)


async def test_a_gzip_bomb_is_stopped_at_the_cap(fetcher: Fetcher, stranger: Stranger, reply: Reply) -> None:
    pack = zlib.compressobj()
    bomb = b"".join(pack.compress(bytes(1_000_000)) for _ in range(80)) + pack.flush()
    stranger.answers["/x"] = reply(bomb, Content_Encoding="deflate")
    tracemalloc.start()
    try:
        assert await failure(fetcher, f"{stranger.origin}/x") == ("too_large", False)
        assert tracemalloc.get_traced_memory()[1] < 3_000_000
    finally:
        tracemalloc.stop()


async def test_a_body_over_the_cap_is_refused_before_it_is_read(fetcher: Fetcher, stranger: Stranger) -> None:
    stranger.answers["/x"] = b"HTTP/1.1 200 OK\r\nContent-Length: 100001\r\n\r\n"
    assert await failure(fetcher, f"{stranger.origin}/x") == ("too_large", False)


async def test_an_endless_body_is_cut_at_the_cap(fetcher: Fetcher, stranger: Stranger) -> None:
    sent = 0

    async def endless(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            writer.write(b"x" * 10_000)
            await writer.drain()
            sent += 10_000

    stranger.answers["/x"] = endless
    assert await failure(fetcher, f"{stranger.origin}/x") == ("too_large", False)
    assert sent < 20_000_000, "what fits into the buffers of the two sockets"


async def test_a_body_that_drips_is_given_up_and_others_go_on(
    impatient: Fetcher, fetcher: Fetcher, stranger: Stranger, reply: Reply
) -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")
        while True:
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.02)

    stranger.answers |= {"/drip": drip, "/x": reply(b"bytes")}
    drips = [asyncio.create_task(failure(impatient, f"{stranger.origin}/drip")) for _ in range(5)]
    assert await fetcher.fetch(f"{stranger.origin}/x") == b"bytes"
    assert await asyncio.gather(*drips) == [("too_slow", True)] * 5


async def test_a_body_that_stalls_is_given_up(impatient: Fetcher, stranger: Stranger) -> None:
    async def stall(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\nx")
        await asyncio.sleep(8)

    stranger.answers["/x"] = stall
    assert await failure(impatient, f"{stranger.origin}/x") in {("too_slow", True), ("timeout", True)}


async def test_a_body_just_fast_enough_ends_at_the_total_time(stranger: Stranger) -> None:
    async def steady(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n")
        while True:
            writer.write(b"x" * 100)
            await writer.drain()
            await asyncio.sleep(0.02)

    stranger.answers["/x"] = steady
    limits = FetchLimits(total_s=0.9, min_rate=1_000, rate_window_s=0.2)
    async with Fetcher([stranger.origin], limits=limits) as fetcher:
        assert await failure(fetcher, f"{stranger.origin}/x") == ("timeout", True)


async def test_headers_that_drip_are_a_timeout(stranger: Stranger) -> None:
    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n")
        for number in range(100):
            writer.write(f"X-{number}: y\r\n".encode())
            await writer.drain()
            await asyncio.sleep(0.05)
        writer.write(b"Content-Length: 0\r\n\r\n")  # whoever waits so long gets an answer
        await writer.drain()

    stranger.answers["/x"] = drip
    limits = FetchLimits(resolve_s=0.1, connect_s=0.1, first_byte_s=0.2)
    async with Fetcher([stranger.origin], limits=limits) as fetcher:
        assert await failure(fetcher, f"{stranger.origin}/x") == ("timeout", True)


async def test_silence_is_a_timeout(impatient: Fetcher, stranger: Stranger) -> None:
    async def silence(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1)

    stranger.answers["/x"] = silence
    assert await failure(impatient, f"{stranger.origin}/x") == ("timeout", True)


async def test_a_name_that_hangs_is_a_timeout_and_a_name_that_fails_is_unreachable() -> None:
    async def hang(host: str, port: int) -> Sequence[str]:
        await asyncio.sleep(5)
        return []

    async def fail(host: str, port: int) -> Sequence[str]:
        raise OSError("no such name")

    async def nothing(host: str, port: int) -> Sequence[str]:
        return []

    for lookup, reason in ((hang, "timeout"), (fail, "unreachable"), (nothing, "unreachable")):
        async with Fetcher(limits=IMPATIENT, lookup=lookup) as fetcher:
            assert await failure(fetcher, "https://pictures.example/x") == (reason, True)


async def test_nobody_at_home_and_a_broken_answer_are_told_apart_from_a_body_cut_short(
    fetcher: Fetcher, stranger: Stranger
) -> None:
    stranger.answers["/closed"] = b""
    stranger.answers["/noise"] = b"SSH-2.0-OpenSSH_9\r\n\r\n"
    for target in ("/closed", "/noise"):
        reason, is_retryable = await failure(fetcher, f"{stranger.origin}{target}")
        assert (reason in {"unreachable", "upstream"}, is_retryable) == (True, True)


async def test_no_error_and_no_log_line_holds_what_the_url_carries(
    stranger: Stranger, reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    stranger.answers["/canary-path?sig=canary-secret"] = reply(
        status="302 x", Location="https://10.0.0.1/?canary-secret"
    )
    async with Fetcher([stranger.origin], limits=LIMITS) as fetcher:
        for url in (
            f"{stranger.origin}/canary-path?sig=canary-secret",
            f"{stranger.origin}/gone?sig=canary-secret",
            "https://canary-secret@example.com/?canary-secret",
            "https://127.0.0.1/?canary-secret",
            "http://example.com/?canary-secret",
            "https://exa mple.com/?canary-secret",
            f"{stranger.origin}/?{'canary-secret' * 200}",
        ):
            with pytest.raises(AssetError) as caught:
                await fetcher.fetch(url)
            told = f"{caught.value!r} {caught.value.__cause__!r} {caught.value.__suppress_context__}"
            assert "canary" not in told
    assert "canary" not in caplog.text


async def test_a_url_over_the_limit_is_refused(fetcher: Fetcher, stranger: Stranger, reply: Reply) -> None:
    rest = 2_048 - len(stranger.origin) - 1
    stranger.answers[f"/{'x' * rest}"] = reply(b"bytes")
    assert await fetcher.fetch(f"{stranger.origin}/{'x' * rest}") == b"bytes"
    assert await failure(fetcher, f"{stranger.origin}/{'x' * (rest + 1)}") == ("bad_url", False)


async def test_a_cancelled_fetch_gives_its_place_back(stranger: Stranger, reply: Reply) -> None:
    async def silence(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.5)

    stranger.answers |= {"/silence": silence, "/x": reply(b"bytes")}
    async with Fetcher([stranger.origin], limits=FetchLimits(connections=1)) as fetcher:
        waiting = asyncio.create_task(fetcher.fetch(f"{stranger.origin}/silence"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert await fetcher.fetch(f"{stranger.origin}/x") == b"bytes"


@pytest.mark.parametrize("origin", ["http://127.0.0.1:1/path", "127.0.0.1:8001", "http://u@h", "", "ftp://h"])
def test_an_allowed_origin_must_be_scheme_host_and_port(origin: str) -> None:
    with pytest.raises(ConfigurationError):
        Fetcher([origin])


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate with its key for `pictures.example`, signed by nobody."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    command = [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
        "-subj",
        "/CN=x",
    ]
    name = ["-addext", "subjectAltName=DNS:pictures.example"]
    subprocess.run(
        [openssl, *command, *name, "-keyout", path, "-out", f"{path}.crt"], check=True, capture_output=True
    )
    path.write_bytes(path.read_bytes() + Path(f"{path}.crt").read_bytes())
    return path


async def test_a_certificate_must_be_trusted_and_name_the_host(certificate: Path, reply: Reply) -> None:
    stranger = Stranger(answers={"/x": reply(b"bytes")})
    server_side = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_side.load_cert_chain(certificate)
    server = await asyncio.start_server(stranger.serve, "127.0.0.1", 0, ssl=server_side)
    port = server.sockets[0].getsockname()[1]
    origins = [f"https://pictures.example:{port}", f"https://other.example:{port}"]

    async def lookup(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    trusting = ssl.create_default_context(cafile=certificate)
    async with Fetcher(origins, lookup=lookup, ssl_context=trusting) as fetcher:
        assert await fetcher.fetch(f"{origins[0]}/x") == b"bytes"
        assert await failure(fetcher, f"{origins[1]}/x") == ("tls", True)
    async with Fetcher(origins, lookup=lookup) as fetcher:
        assert await failure(fetcher, f"{origins[0]}/x") == ("tls", True)
    assert len(stranger.heard) == 1
    server.close()
    await server.wait_closed()
