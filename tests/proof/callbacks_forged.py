"""Bad callbacks of every kind, made from genuine ones; each kind must change nothing at all."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from uuid import UUID

from tests.proof.callbacks_captured import Captured, Header

DAY_S = 86_400
WINDOW_S = 300
CAP_BYTES = 262_144

IssueToken = Callable[[UUID, int], str]


@dataclass(frozen=True, slots=True)
class Forged:
    """What arrives: where, with which headers, and what."""

    provider: str
    token: str | None
    headers: Sequence[Header]
    raw: bytes


@dataclass(frozen=True, slots=True)
class Workshop:
    """What a forger has at hand; each method is one kind, and None where it makes no sense for the callback."""

    random: Random
    captured: Sequence[Captured]
    issue: IssueToken
    now: float

    # ---- the body ----

    def body_bit(self, one: Captured) -> Forged | None:
        """One bit of the body is another one."""
        place = self.random.randrange(len(one.raw) * 8)
        bent = bytearray(one.raw)
        bent[place // 8] ^= 1 << place % 8
        return self._body(one, bytes(bent))

    def body_cut(self, one: Captured) -> Forged | None:
        """The end is missing."""
        return self._body(one, one.raw[: self.random.randrange(len(one.raw))])

    def body_grown(self, one: Captured) -> Forged | None:
        """Something is added that no reader of JSON minds."""
        more = self.random.choice((b" ", b"\n", b"\t \r\n", b"\xef\xbb\xbf"))
        return self._body(one, more + one.raw if more == b"\xef\xbb\xbf" else one.raw + more)

    def body_reserialised(self, one: Captured) -> Forged | None:
        """The same JSON in other bytes."""
        parsed = json.loads(one.raw)
        ways = (
            json.dumps(parsed),
            json.dumps(parsed, indent=self.random.randrange(1, 9)),
            json.dumps(parsed, sort_keys=True, separators=(",", ":")),
            json.dumps({"": self.random.random(), **parsed}, separators=(",", ":")),
        )
        other = [way.encode() for way in ways if way.encode() != one.raw]
        return self._body(one, self.random.choice(other))

    def body_of_another(self, one: Captured) -> Forged | None:
        """One callback's proof on another one's body."""
        return self._body(one, self._other(one).raw)

    def body_rewritten(self, one: Captured) -> Forged | None:
        """The success is turned into a failure, or another picture is put in."""
        words = ((b"http", b"hxxp"), (b'"', b"'"), (b"e", b"E"), (b"1", b"2"))
        old, new = self.random.choice([word for word in words if word[0] in one.raw])
        return self._body(one, one.raw.replace(old, new))

    def body_huge(self, one: Captured) -> Forged | None:
        """More bytes than a callback may have, properly signed."""
        raw = b"x" * (CAP_BYTES + self.random.choice((1, 4_096, 1_000_000, 10_000_000)))
        return Forged(one.provider, one.token, one.headers, raw)

    def body_no_json(self, one: Captured) -> Forged | None:
        """Properly signed, and nothing that can be read."""
        if not one.covers_body:
            return None
        raw = self.random.choice((b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 50_000, b'{"a": NaN}'))
        return Forged(one.provider, one.token, one.with_seal(one.sealed(int(self.now), raw)), raw)

    # ---- the proof ----

    def proof_changed(self, one: Captured) -> Forged | None:
        """One character of the signature is another one."""
        value = self._proof(one)
        if not value:
            return None
        # Not in the padding of base64, of which several spellings are the same bytes.
        place = self.random.randrange(len(value) - 3)
        letters = [letter for letter in b"abcdef0123456789" if chr(letter) != chr(value[place]).lower()]
        return self._proved(one, value[:place] + bytes([self.random.choice(letters)]) + value[place + 1 :])

    def proof_cut(self, one: Captured) -> Forged | None:
        """The end of the signature is missing."""
        value = self._proof(one)
        return self._proved(one, value[: self.random.randrange(len(value) - 3)]) if value else None

    def proof_missing(self, one: Captured) -> Forged | None:
        """No signature at all."""
        return self._without(one, one.signature) if one.signature else None

    def proof_twice(self, one: Captured) -> Forged | None:
        """Two headers of one name, of which one may be good."""
        if not one.signature:
            return None
        second = self.random.choice((self._proof(one), b"0" * 64, b""))
        pair = [(one.signature, self._proof(one)), (one.signature, second)]
        self.random.shuffle(pair)
        rest = [header for header in one.headers if header[0] != one.signature]
        return Forged(one.provider, one.token, [*rest, *pair], one.raw)

    def proof_folded(self, one: Captured) -> Forged | None:
        """The value is broken into two lines."""
        value = self._proof(one)
        if not value:
            return None
        place = self.random.randrange(1, len(value) - 3)
        fold = self.random.choice((b"\r\n ", b"\n\t", b" ", b"\x00"))
        return self._proved(one, value[:place] + fold + value[place:])

    def proof_not_ascii(self, one: Captured) -> Forged | None:
        """A byte that no signature has."""
        value = self._proof(one)
        odd = self.random.choice((b"\xe9", "ß".encode(), "４".encode(), b"\xff\xfe", b"\x80"))
        place = self.random.randrange(len(value) + 1)
        return self._proved(one, value[:place] + odd + value[place:]) if value else None

    def proof_of_another_scheme(self, one: Captured) -> Forged | None:
        """The right digest under another scheme's name."""
        value = self._proof(one)
        bare = value.rpartition(b"=")[2] if value.startswith(b"sha256=") else value.removeprefix(b"v1,")
        bare = bare.removeprefix(b"Bearer ")
        words = (b"v0,", b"v2,", b"v1a,", b"sha1=", b"sha512=", b"md5=", b"hmac ", b"Basic ", b"none,")
        return self._proved(one, self.random.choice(words) + bare) if value else None

    def proof_nonsense(self, one: Captured) -> Forged | None:
        """What somebody tries who knows nothing."""
        length = self.random.choice((0, 1, 20, 32, 64, 4_000))
        value = self.random.choice(
            (b"0" * length, self.random.randbytes(length), b"null", b"undefined", b" ")
        )
        return self._proved(one, value) if one.signature else None

    def proof_by_another_key(self, one: Captured) -> Forged | None:
        """Whole and well formed, by a key that is nobody's."""
        if not one.signature:
            return None
        seal = one.sealed(int(self.now), one.raw, is_forged=True)
        return Forged(one.provider, one.token, one.with_seal(seal), one.raw)

    def proof_of_another_provider(self, one: Captured) -> Forged | None:
        """Genuine headers, at another provider's door."""
        strangers = [two for two in self.captured if two.provider != one.provider]
        two = self.random.choice(strangers)
        return Forged(one.provider, one.token, two.headers, one.raw) if one.signature else None

    # ---- what else is signed ----

    def signed_header_changed(self, one: Captured) -> Forged | None:
        """The id or the time is another one."""
        if not one.signed_headers:
            return None
        name = self.random.choice(one.signed_headers)
        change = self.random.choice((b"", b"0", b"-1", b"nan", b"9" * 13, b"\xe9", b"msg_2", b"1e9"))
        return Forged(
            one.provider,
            one.token,
            [(key, change if key == name else value) for key, value in one.headers],
            one.raw,
        )

    def signed_header_missing(self, one: Captured) -> Forged | None:
        """The id or the time is not there."""
        return self._without(one, self.random.choice(one.signed_headers)) if one.signed_headers else None

    def signed_header_twice(self, one: Captured) -> Forged | None:
        """The id or the time stands there twice."""
        if not one.signed_headers:
            return None
        name = self.random.choice(one.signed_headers)
        twice = [header for header in one.headers if header[0] == name]
        return Forged(one.provider, one.token, [*one.headers, *twice], one.raw)

    def time_old(self, one: Captured) -> Forged | None:
        """Properly signed, and kept too long."""
        return self._at(one, self.now - WINDOW_S - self.random.choice((30, 3_600, DAY_S, 400 * DAY_S)))

    def time_future(self, one: Captured) -> Forged | None:
        """Properly signed for a time that has not come."""
        return self._at(one, self.now + WINDOW_S + self.random.choice((600, 3_600, DAY_S, 400 * DAY_S)))

    # ---- the address ----

    def token_changed(self, one: Captured) -> Forged | None:
        """One character of the token is another one."""
        if one.token is None:
            return None
        place = self.random.randrange(
            len(one.token) - 1
        )  # of the last one several spellings are the same bytes
        letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_é~"
        letter = self.random.choice([letter for letter in letters if letter != one.token[place]])
        return self._to(one, one.token[:place] + letter + one.token[place + 1 :])

    def token_cut(self, one: Captured) -> Forged | None:
        """The token is shorter, or longer than a token may be."""
        if one.token is None:
            return None
        length = self.random.randrange(1, len(one.token))
        return self._to(
            one, self.random.choice((one.token[:length], one.token + one.token[:length], "t" * 500))
        )

    def token_of_another_task(self, one: Captured) -> Forged | None:
        """A genuine callback at the address of another task, perhaps another account's."""
        others = [two for two in self.captured if two.task_id != one.task_id]
        return self._to(one, self.issue(self.random.choice(others).task_id, 1)) if one.token else None

    def token_of_no_task(self, one: Captured) -> Forged | None:
        """A token as we make them, of a task or an attempt that there never was."""
        if one.token is None:
            return None
        task_id = UUID(int=self.random.getrandbits(128))
        named = self.random.choice(((task_id, 1), (one.task_id, self.random.randrange(2, 256))))
        return self._to(one, self.issue(*named))

    def provider_unknown(self, one: Captured) -> Forged | None:
        """A door that is not there, or of a provider that never calls."""
        name = self.random.choice(
            ("nobody", "lab-poll", "lab-sync", "x" * 300, "..", "é", one.provider.upper())
        )
        return Forged(name, one.token or "t", one.headers, one.raw)

    # ---- how they are put together ----

    def _proof(self, one: Captured) -> bytes:
        return next((value for name, value in one.headers if name == one.signature), b"")

    def _other(self, one: Captured) -> Captured:
        return next(
            two for two in self.captured if two.provider == one.provider and two.task_id != one.task_id
        )

    def _body(self, one: Captured, raw: bytes) -> Forged | None:
        return (
            Forged(one.provider, one.token, one.headers, raw) if one.covers_body and raw != one.raw else None
        )

    def _proved(self, one: Captured, value: bytes) -> Forged:
        headers = [(name, value if name == one.signature else old) for name, old in one.headers]
        return Forged(one.provider, one.token, headers, one.raw)

    def _without(self, one: Captured, missing: bytes) -> Forged:
        headers = [header for header in one.headers if header[0] != missing]
        return Forged(one.provider, one.token, headers, one.raw)

    def _at(self, one: Captured, at: float) -> Forged | None:
        if not one.has_time:
            return None
        return Forged(one.provider, one.token, one.with_seal(one.sealed(int(at), one.raw)), one.raw)

    def _to(self, one: Captured, token: str) -> Forged:
        return Forged(one.provider, token, one.headers, one.raw)


KINDS = tuple(
    name
    for name in vars(Workshop)
    if name.split("_")[0] in ("body", "proof", "signed", "time", "token", "provider")
)


def forgeries(
    random: Random, captured: Sequence[Captured], issue: IssueToken
) -> Iterator[tuple[str, Forged]]:
    """Bad callbacks without end: every kind in turn, of every provider for which it makes sense."""
    while True:
        workshop = Workshop(random, captured, issue, time.time())
        for kind in KINDS:
            for one in captured:
                made: Forged | None = getattr(workshop, kind)(one)
                if made is not None:
                    yield kind, made
