"""A link opens what it was made for, until it ends, and nothing else."""

from __future__ import annotations

from urllib.parse import parse_qsl
from uuid import UUID, uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safelight.assets.signing import MAX_LIFE_S, SignedLink, UrlSigner
from safelight.errors import AssetError, ConfigurationError

NOW = 1_800_000_000
ASSET = UUID("0190c8a0-0000-7000-8000-000000000001")
ACCOUNT = UUID("0190c8a0-0000-7000-8000-000000000002")
SIGNER = UrlSigner(b"k" * 32, key_id="1")


def signed(signer: UrlSigner = SIGNER, *, expires_at: int = NOW + 900) -> dict[str, str]:
    return dict(parse_qsl(signer.sign(ASSET, account_id=ACCOUNT, variant="original", expires_at=expires_at)))


def refusal(query: dict[str, str], *, asset_id: UUID = ASSET, now: float = NOW) -> str:
    with pytest.raises(AssetError) as caught:
        SIGNER.verify(query, asset_id=asset_id, now=now)
    assert not caught.value.is_retryable
    return caught.value.reason


def test_a_genuine_link_says_what_it_opens() -> None:
    link = SIGNER.verify(signed(), asset_id=ASSET, now=NOW)
    assert link == SignedLink(ASSET, ACCOUNT, "original", NOW + 900)


def test_a_link_ends_at_its_second() -> None:
    assert SIGNER.verify(signed(), asset_id=ASSET, now=NOW + 899.9)
    assert refusal(signed(), now=NOW + 900) == "link_expired"


def test_a_link_for_longer_than_a_day_is_wrong() -> None:
    assert SIGNER.verify(signed(expires_at=NOW + MAX_LIFE_S), asset_id=ASSET, now=NOW)
    assert refusal(signed(expires_at=NOW + MAX_LIFE_S + 61)) == "link_wrong"


def test_another_asset_is_wrong() -> None:
    assert refusal(signed(), asset_id=uuid4()) == "link_wrong"


@pytest.mark.parametrize("field", ["account", "variant", "expires", "key", "signature"])
def test_a_field_that_is_missing_or_changed_in_any_character_is_wrong(field: str) -> None:
    whole = signed()
    assert refusal({name: value for name, value in whole.items() if name != field}) == "link_wrong"
    for position in range(len(whole[field])):
        for sign in ("0", "1", "a", "A", "é", "１", "", " ", "\0", "-", "%"):
            value = whole[field][:position] + sign + whole[field][position + 1 :]
            if value != whole[field]:
                assert refusal(whole | {field: value}) in {"link_wrong"}, value


@pytest.mark.parametrize(
    "change",
    [
        {"variant": "thumbnail"},
        {"account": str(uuid4())},
        {"account": str(ACCOUNT).upper()},
        {"account": f"{{{ACCOUNT}}}"},
        {"account": ACCOUNT.hex},
        {"expires": f"0{NOW + 900}"},
        {"expires": f"+{NOW + 900}"},
        {"expires": f"{NOW + 900} "},
        {"expires": f"{NOW + 900}\n"},
        {"expires": "1_800_000_900"},
        {"expires": "9" * 5_000},
        {"expires": "1" + "0" * 11},
        {"key": "2"},
        {"key": ""},
        {"signature": signed()["signature"].upper()},
        {"signature": signed()["signature"] + "\n"},
        {"signature": "\ud83d"},
    ],
)
def test_another_spelling_is_wrong(change: dict[str, str]) -> None:
    assert refusal(signed() | change) == "link_wrong"


@given(st.dictionaries(st.sampled_from(["account", "variant", "expires", "key", "signature"]), st.text()))
def test_noise_is_wrong_and_never_an_accident(query: dict[str, str]) -> None:
    assert refusal(query) == "link_wrong"
    assert refusal(signed() | query | {"signature": query.get("signature", "")}) == "link_wrong"


def test_two_keys_live_side_by_side_and_the_older_one_can_go() -> None:
    older = signed()
    both = UrlSigner(b"n" * 32, key_id="2", previous={"1": b"k" * 32})
    assert both.verify(older, asset_id=ASSET, now=NOW)
    newer = signed(both)
    assert newer["key"] == "2"
    assert both.verify(newer, asset_id=ASSET, now=NOW)
    assert refusal(newer) == "link_wrong"
    assert refusal(newer | {"key": "1"}) == "link_wrong"


def test_the_same_secret_under_another_id_signs_differently() -> None:
    assert signed(UrlSigner(b"k" * 32, key_id="2"))["signature"] != signed()["signature"]


@pytest.mark.parametrize(
    ("secret", "key_id"), [(b"", "1"), (b"k" * 31, "1"), (b"k" * 32, ""), (b"k" * 32, "a b")]
)
def test_a_weak_key_is_a_mistake_of_the_installation(secret: bytes, key_id: str) -> None:
    with pytest.raises(ConfigurationError):
        UrlSigner(secret, key_id=key_id)
