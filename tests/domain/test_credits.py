"""Quotes and settlements."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safelight.domain.credits import quote, settlement_of
from safelight.errors import LedgerError

PRICES = st.integers(0, 10**12)
COUNTS = st.integers(1, 1000)


@pytest.mark.parametrize(("price", "n", "held"), [(1, 1, 1), (7, 10, 70), (0, 4, 0), (123_456, 3, 370_368)])
def test_a_quote_is_the_worst_case(price: int, n: int, held: int) -> None:
    assert quote(price, n) == held


@pytest.mark.parametrize(("price", "n"), [(-1, 1), (1, 0), (1, -3)])
def test_a_senseless_quote_is_refused(price: int, n: int) -> None:
    with pytest.raises(LedgerError):
        quote(price, n)


@given(price=PRICES, n=COUNTS, data=st.data())
def test_a_settlement_captures_what_was_delivered_and_releases_the_rest(
    price: int, n: int, data: st.DataObject
) -> None:
    delivered = data.draw(st.integers(0, n))
    ending = settlement_of(quote(price, n), unit_price=price, delivered=delivered)
    assert ending.captured == price * delivered
    assert ending.captured + ending.released == price * n
    assert ending.released >= 0


@given(price=st.integers(1, 10**9), n=COUNTS, surplus=st.integers(1, 100))
def test_more_than_the_hold_is_never_captured(price: int, n: int, surplus: int) -> None:
    with pytest.raises(LedgerError):
        settlement_of(quote(price, n), unit_price=price, delivered=n + surplus)


def test_a_negative_delivery_is_refused() -> None:
    with pytest.raises(LedgerError):
        settlement_of(10, unit_price=1, delivered=-1)
