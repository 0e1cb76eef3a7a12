"""Models that end: told beforehand, not listed afterwards, and refused by name."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from safelight.api.catalog import model_json, offer_of, utc_today
from safelight.domain.catalog import Model, Route
from safelight.errors import RequestError

LATER = date(2999, 1, 1)
NEXT = Route(provider="beta", upstream_model="b", operations=("generate",), max_n=1, retires_on=LATER)


def model(retires_on: date | None, *others: Route) -> Model:
    return Model(
        name="sketch", price=2, provider="alpha", upstream_model="a", operations=("generate",),
        retires_on=retires_on, others=others,
    )  # fmt: skip


def test_a_model_with_no_living_route_is_refused_by_name() -> None:
    yesterday = utc_today() - timedelta(days=1)
    with pytest.raises(RequestError) as refused:
        offer_of(model(yesterday))
    assert (refused.value.status, refused.value.problem_code) == (404, "model-retired")
    assert offer_of(model(LATER)).provider == "alpha"


def test_when_the_first_route_has_retired_the_next_one_s_offer_holds() -> None:
    offered = offer_of(model(date(2000, 1, 1), NEXT))
    assert (offered.name, offered.price, offered.provider, offered.max_n) == ("sketch", 2, "beta", 1)


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (model(None, NEXT), None),
        (model(LATER), "2999-01-01"),
        (model(date(2998, 1, 1), NEXT), "2999-01-01"),
    ],
)
def test_a_model_ends_with_its_last_route(found: Model, told: str | None) -> None:
    assert model_json(found)["retires_on"] == told
