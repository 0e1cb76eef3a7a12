"""Callbacks from the field, part one: who may speak, in which spelling, and how old."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest

from safelight.domain.task import State
from safelight.errors import CallbackRejected, ConfigurationError
from safelight.providers.verifiers import CALLBACK_SECRETS
from tests.field.scene import CALLS_BACK, NAME, Line, Scene, Sealed, assert_calm, said
from tests.lifecycle.invariants import fingerprint
from tests.lifecycle.upstreams import done, in_turn, install, pass_until_due, run_task, signed, verdicts
from tests.providers.test_signatures import BODY, NOW, SECRET, STANDARD, build, standard_headers


def counted(provider: str, secret: str) -> float:
    """How many callbacks this secret has proved."""
    value: float = CALLBACK_SECRETS.labels(provider, secret)._value.get()
    return value


async def assert_paid_once(scene: Scene, task_id: Any) -> None:
    await scene.world.archive_all()
    assert await scene.ending(task_id) == ("succeeded", 1, 0)
    assert await scene.settled(task_id) == 1


async def test_A02_a_prompt_beyond_ascii_is_verified_over_its_bytes(scene: Scene, logs: list[Line]) -> None:
    for is_escaped in (False, True):
        task_id, record = await scene.drawn()
        raw = json.dumps({**record, "prompt": "a façade 🙂 cut off…"}, ensure_ascii=is_escaped).encode()
        assert await scene.called_back(task_id, signed(raw)) == 202
        await assert_paid_once(scene, task_id)
    assert said(logs, "callback_rejected") == []


async def test_A03_a_backslash_in_a_text_and_an_escape_beside_it_stay_what_they_are(scene: Scene) -> None:
    task_id, record = await scene.drawn()
    raw = json.dumps(record)[:-1].encode() + rb', "text": "C:\\u001bin", "colour": "\u001b[31m"}'
    assert await scene.called_back(task_id, signed(raw)) == 202
    assert await scene.world.value("SELECT body FROM callbacks") == raw, "kept as it came"
    await assert_paid_once(scene, task_id)


async def test_A12_a_callback_without_its_signature_is_logged_with_the_names_of_what_came(
    scene: Scene, logs: list[Line]
) -> None:
    task_id, record = await scene.drawn()
    raw = json.dumps(record).encode()
    for _ in range(20):
        assert await scene.callback_lines(task_id, [b"X-Signatur: sha256=00", b"X-Trace: secret"], raw) == 401
    (line,) = said(logs, "callback_rejected")
    assert line["reason"] == "signature_missing"
    assert {"x-signatur", "x-trace"} <= set(line["headers"])
    assert "secret" not in str(logs)


async def test_A04_a_strange_byte_in_the_signature_is_a_401_and_no_accident(
    scene: Scene, logs: list[Line]
) -> None:
    task_id, record = await scene.drawn()
    raw = json.dumps(record).encode()
    before = await fingerprint(scene.world)
    for value in (b"sha256=\xe9", "４".encode() * 64, b"sha256=", b"", b"   ", b"\xe9" * 64):
        assert await scene.callback_lines(task_id, [b"X-Signature: " + value], raw) == 401, value
    assert await fingerprint(scene.world) == before
    assert next(line["reason"] for line in said(logs, "callback_rejected")) == "signature_malformed"
    assert_calm(logs)


@pytest.mark.parametrize("secret", [f"v1,{SECRET}", "v1,abc", "whsec_ not base64", "whsec_"])
def test_A07_a_secret_in_another_form_is_told_at_the_start(secret: str) -> None:
    with pytest.raises(ConfigurationError, match="whsec_") as told:
        build(STANDARD, {"new": secret})
    assert SECRET.removeprefix("whsec_") not in str(told.value)


async def test_A07_the_declared_form_is_taken_with_its_line_break() -> None:
    await build(STANDARD, {"new": f" {SECRET}\r\n"}).verify(standard_headers(SECRET, BODY), BODY)
    plain = {"kind": "hmac_sha256", "header": "X-Signature", "secrets": ["new"]}
    (_, mac) = signed(BODY, SECRET.encode())[0][1]
    await build(plain, {"new": SECRET}).verify([(b"x-signature", mac)], BODY)
    with pytest.raises(CallbackRejected):
        await build(STANDARD, {"new": SECRET}).verify([(b"x-signature", mac)], BODY)


async def test_A08_any_of_several_signatures_counts_and_the_older_secret_is_noticed() -> None:
    other = "whsec_" + base64.b64encode(b"another secret, 24 bytes").decode()
    (name, at, (header, old)), fresh = standard_headers(SECRET, BODY), standard_headers(other, BODY)[2][1]
    rotating = build(STANDARD, {"new": other, "old": SECRET})
    before = counted("p", "current"), counted("p", "older")
    await rotating.verify([name, at, (header, b"v9,xxx " + old + b" " + fresh)], BODY)
    assert (counted("p", "current"), counted("p", "older")) == (before[0] + 1, before[1])
    await rotating.verify([name, at, (header, old)], BODY)
    assert counted("p", "older") == before[1] + 1, "as long as this grows the old secret is in use"
    eleventh = b" ".join([b"v1,AAAA"] * 10 + [old])
    for lines in ([(header, eleventh)], [(header, b"v1,AAAA"), (header, old)]):
        with pytest.raises(CallbackRejected):
            await rotating.verify([name, at, *lines], BODY)


async def test_A08_signatures_between_commas_are_read_where_it_is_declared_so() -> None:
    values = {
        "kind": "hmac_sha256",
        "header": "X-Sig",
        "prefix": "sha256=",
        "separator": ",",
        "secrets": ["new"],
    }
    mac = signed(BODY, b"k")[0][1][1]
    await build(values, {"new": "k"}).verify([(b"x-sig", b"sha256=00ff,sha256=" + mac)], BODY)


@pytest.mark.parametrize("text", ["nan", "", "-5", "9" * 13, "9" * 400])
async def test_A09_a_time_that_is_none_is_refused(text: str) -> None:
    name, _, signature = standard_headers(SECRET, BODY)
    with pytest.raises(CallbackRejected) as refused:
        await build(STANDARD, {"new": SECRET}).verify(
            [name, (b"webhook-timestamp", text.encode()), signature], BODY
        )
    assert refused.value.status == 401


async def sealed_task(scene: Scene, *, at: int, secrets: dict[str, str] | None = None) -> tuple[Sealed, Any]:
    """A running task at a provider that signs with a time; `at` is what our clock says."""
    verifier = build(STANDARD, secrets or {"new": SECRET}, now=at)
    provider = install(scene.world, Sealed(NAME, CALLS_BACK, poll_does=in_turn(done()), verifier=verifier))
    return provider, await run_task(scene.world)


def notice(task_id: Any, at: int = NOW) -> tuple[list[tuple[bytes, bytes]], bytes]:
    raw = json.dumps({"id": f"up.{task_id.hex}-1", "status": "succeeded", "pictures": 1}).encode()
    return standard_headers(SECRET, raw, at=at), raw


async def test_A10_a_callback_that_comes_again_too_old_is_left_to_the_poll(
    scene: Scene, logs: list[Line]
) -> None:
    _, task_id = await sealed_task(scene, at=NOW + 600)
    assert await scene.called_back(task_id, notice(task_id)) == 401
    assert await scene.world.state(task_id) is State.RUNNING
    assert [line["reason"] for line in said(logs, "callback_rejected")] == ["timestamp_stale"]
    await pass_until_due(scene.world, task_id)
    await scene.world.look()
    await assert_paid_once(scene, task_id)


async def test_A11_the_case_of_a_header_does_not_count_and_two_are_none(scene: Scene) -> None:
    for name in (b"X-Signature", b"x-signature", b"X-SIGNATURE"):
        task_id, record = await scene.drawn()
        headers, raw = signed(record)
        mac = headers[1][1]
        twice = [name + b": " + mac, name + b": " + b"0" * 64]
        assert await scene.callback_lines(task_id, twice, raw) == 401
        assert await scene.callback_lines(task_id, [name + b": " + mac], raw) == 202
        await assert_paid_once(scene, task_id)


async def test_A12_a_header_with_an_underscore_is_read_and_without_it_the_poll_carries(scene: Scene) -> None:
    values = {"kind": "hmac_sha256", "header": "x_signature", "secrets": ["new"]}
    verifier = build(values, {"new": "k"})
    install(scene.world, Sealed(NAME, CALLS_BACK, poll_does=in_turn(done()), verifier=verifier))
    first, second = await run_task(scene.world), await run_task(scene.world)
    for task_id, reaches_us in ((first, True), (second, False)):
        _, raw = notice(task_id)
        line = b"x_signature: " + signed(raw, b"k")[0][1][1]
        status = await scene.callback_lines(task_id, [line] if reaches_us else [], raw)
        assert status == (202 if reaches_us else 401)
    assert await scene.world.state(second) is State.RUNNING
    await scene.world.pass_time(seconds=60)
    await scene.world.look()
    for task_id in (first, second):
        await assert_paid_once(scene, task_id)


async def test_A13_a_packed_callback_is_never_unpacked_and_the_poll_carries(scene: Scene) -> None:
    """No provider packs its callbacks; what claims to be packed is taken as the bytes that came."""
    task_id, record = await scene.drawn()
    plain = json.dumps(record).encode()
    packed, bomb = gzip.compress(plain), gzip.compress(bytes(10_000_000))
    over_plain, over_packed = signed(plain)[0][1][1], signed(packed)[0][1][1]
    coding = b"Content-Encoding: gzip"
    before = await fingerprint(scene.world)
    for mac, body, expected in (
        (over_plain, packed, 401),
        (over_packed, packed, 400),
        (signed(bomb)[0][1][1], bomb, 400),
    ):
        assert await scene.callback_lines(task_id, [coding, b"X-Signature: " + mac], body) == expected
    assert await fingerprint(scene.world) == before
    await scene.world.pass_time(seconds=60)
    await scene.world.look()
    await assert_paid_once(scene, task_id)


async def test_A14_a_callback_up_to_the_cap_is_applied_and_above_it_the_poll_carries(
    scene: Scene, logs: list[Line]
) -> None:
    cap = scene.world.graph.settings.max_callback_bytes
    first, record = await scene.drawn()
    bare = json.dumps({**record, "padding": ""}).encode()
    filled = json.dumps({**record, "padding": "x" * (cap - len(bare))}).encode()
    assert len(filled) == cap
    assert await scene.called_back(first, signed(filled)) == 202
    await assert_paid_once(scene, first)

    second, _ = await scene.drawn()
    for size in (cap + 1, 1_048_577, 24_000_000):
        assert await scene.called_back(second, signed(b"x" * size)) == 413
    assert await scene.world.state(second) is State.RUNNING
    lines = said(logs, "callback_too_large")
    assert (lines[0]["provider"], lines[0]["limit"]) == (NAME, cap)
    await scene.world.pass_time(seconds=60)
    await scene.world.look()
    await assert_paid_once(scene, second)


async def test_A17_a_captured_callback_changes_nothing_however_it_is_played_again(
    scene: Scene, logs: list[Line]
) -> None:
    provider, task_id = await sealed_task(scene, at=NOW)
    headers, raw = notice(task_id)
    assert [await scene.called_back(task_id, (headers, raw)) for _ in range(2)] == [202, 202]
    await assert_paid_once(scene, task_id)
    await scene.world.pass_time(days=2)
    assert await scene.called_back(task_id, (headers, raw)) == 202, "the ended task is the last guard"
    renamed = [(b"webhook-id", b"msg_2"), *headers[1:]]
    assert await scene.called_back(task_id, (renamed, raw)) == 401, "the id is signed"
    provider.verifier = build(STANDARD, {"new": SECRET}, now=NOW + 86_400)
    assert await scene.called_back(task_id, (headers, raw)) == 401
    assert await verdicts(scene.world) == ["applied", "duplicate", "duplicate"]
    assert [line["verdict"] for line in said(logs, "news_without_effect")] == ["duplicate", "duplicate"]
    await assert_paid_once(scene, task_id)
