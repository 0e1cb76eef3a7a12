"""Which way a task goes: a table over how the keys stand, what the routes allow, and what was tried before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from safelight.domain.catalog import Model, Route
from safelight.domain.routes import (
    Demand,
    KeyState,
    Place,
    Tries,
    Ways,
    choose_first,
    choose_next,
    fits,
    id_of,
)

TODAY = date(2026, 12, 1)
FIRST = Route(provider="fal", upstream_model="flux", operations=("generate", "edit"), max_n=4, sizes=("",))
SECOND = Route(provider="replicate", upstream_model="bfl/flux", operations=("generate",), sizes=("512x512",))
KEYS = {"fal": ("fal", "fal-2"), "replicate": ("replicate",)}
DEMAND = Demand("generate", size="512x512")

IDLE = KeyState()
BUSY = KeyState(load=9, is_unattended=False)
PAUSED = KeyState(closed_for_s=20.0, reason="rate_limited")
LONG = KeyState(closed_for_s=300.0, reason="rate_limited")
POOR = KeyState(closed_for_s=30.0, failures=1, reason="funds", load=3, is_unattended=False)
PROBED = KeyState(failures=4, reason="funds", load=1, is_unattended=False)
DUE = KeyState(failures=4, reason="credentials", is_unattended=True)
SHAKY = KeyState(closed_for_s=1.0, failures=1, reason="not_sent")
LOST = KeyState(closed_for_s=8.0, failures=3, reason="not_sent")


def ways(one: KeyState, two: KeyState, other: KeyState, *routes: Route) -> Ways:
    states = {"fal": one, "fal-2": two, "replicate": other}
    return Ways(routes or (FIRST, SECOND), KEYS, states, TODAY)


def name_of(place: Place | None) -> str | None:
    return place.provider if place else None


@pytest.mark.parametrize(
    ("one", "two", "other", "chosen"),
    [
        (IDLE, IDLE, IDLE, "fal"),
        (BUSY, IDLE, IDLE, "fal-2"),
        (PAUSED, BUSY, IDLE, "fal-2"),
        (PAUSED, PAUSED, IDLE, "fal"),
        (LONG, PAUSED, IDLE, "fal-2"),
        (LONG, LONG, IDLE, "replicate"),
        (POOR, BUSY, IDLE, "fal-2"),
        (POOR, POOR, IDLE, "replicate"),
        (POOR, POOR, POOR, "fal"),
        (POOR, LONG, POOR, "fal-2"),
        (PROBED, POOR, IDLE, "replicate"),
        (DUE, BUSY, IDLE, "fal"),
        (SHAKY, SHAKY, IDLE, "fal"),
        (LOST, LOST, IDLE, "replicate"),
    ],
)
def test_a_new_task_goes_to_the_first_route_that_takes_it_soon_and_its_least_loaded_key(
    one: KeyState, two: KeyState, other: KeyState, chosen: str
) -> None:
    assert name_of(choose_first(ways(one, two, other), DEMAND)) == chosen


@pytest.mark.parametrize(
    ("current", "tries", "one", "two", "other", "chosen"),
    [
        ("fal", (1, 0), IDLE, IDLE, IDLE, "fal"),
        ("fal-2", (1, 0), IDLE, IDLE, IDLE, "fal-2"),
        ("fal", (2, 0), BUSY, IDLE, IDLE, "fal-2"),
        ("fal", (3, 0), IDLE, IDLE, IDLE, "replicate"),
        ("fal", (3, 0), IDLE, IDLE, POOR, None),
        ("fal", (3, 0), IDLE, IDLE, PAUSED, "replicate"),
        ("fal", (3, 0), IDLE, IDLE, LONG, None),
        ("fal", (3, 3), IDLE, IDLE, IDLE, None),
        ("fal", (3, 2), IDLE, IDLE, IDLE, "replicate"),
        ("replicate", (3, 3), IDLE, IDLE, IDLE, None),
        ("replicate", (0, 1), IDLE, IDLE, IDLE, "replicate"),
        ("replicate", (0, 1), IDLE, IDLE, POOR, "fal"),
        ("replicate", (3, 1), IDLE, IDLE, POOR, "replicate"),
        ("fal", (1, 0), POOR, IDLE, IDLE, "fal-2"),
        ("fal", (1, 0), POOR, POOR, IDLE, "replicate"),
        ("fal", (1, 0), POOR, POOR, POOR, "fal"),
        ("fal", (0, 0), PAUSED, PAUSED, IDLE, "fal"),
        ("fal", (0, 0), LONG, LONG, IDLE, "replicate"),
        ("fal", (0, 0), PROBED, POOR, POOR, "fal"),
    ],
)
def test_the_next_attempt_stays_while_its_route_has_tries_left_and_can_take_it_soon(
    current: str,
    tries: tuple[int, int],
    one: KeyState,
    two: KeyState,
    other: KeyState,
    chosen: str | None,
) -> None:
    route = SECOND if current == "replicate" else FIRST
    made = Tries({id_of(FIRST): tries[0], id_of(SECOND): tries[1]})
    assert name_of(choose_next(ways(one, two, other), DEMAND, Place(route, current), made)) == chosen


def test_a_route_that_does_not_fit_the_task_is_no_way_out() -> None:
    large = replace(DEMAND, size="2048x2048")
    assert name_of(choose_first(ways(POOR, POOR, IDLE), large)) == "fal"
    made = Tries({id_of(FIRST): 3})
    assert choose_next(ways(IDLE, IDLE, IDLE), large, Place(FIRST, "fal"), made) is None


@pytest.mark.parametrize(
    ("asked", "has_room"),
    [
        ({}, True),
        ({"operation": "edit"}, False),
        ({"n": 5}, False),
        ({"size": "1024x1024"}, False),
        ({"aspect_ratio": "16:9"}, False),
        ({"images": 1}, False),
        ({"has_mask": True}, False),
        ({"prompt_chars": 4_001}, False),
        ({"options": ("seed",)}, True),
        ({"options": ("seed", "style")}, False),
        ({"size": None}, True),
    ],
)
def test_a_task_fits_a_route_within_every_bound_of_it(asked: dict[str, Any], has_room: bool) -> None:
    route = replace(SECOND, options=("seed",))
    assert fits(route, replace(DEMAND, **asked)) is has_room


def test_a_retired_route_is_not_chosen_from_its_day_on() -> None:
    ending = replace(FIRST, retires_on=TODAY)
    later = replace(FIRST, retires_on=date(2026, 12, 2))
    assert name_of(choose_first(ways(IDLE, IDLE, IDLE, later, SECOND), DEMAND)) == "fal"
    assert name_of(choose_first(ways(IDLE, IDLE, IDLE, ending, SECOND), DEMAND)) == "replicate"
    assert choose_first(ways(IDLE, IDLE, IDLE, ending), DEMAND) is None
    moved = choose_next(ways(IDLE, IDLE, IDLE, ending, SECOND), DEMAND, Place(ending, "fal"), Tries())
    assert name_of(moved) == "replicate"


def test_a_model_offers_what_its_first_living_route_can_do() -> None:
    model = Model(
        name="flux", price=3, provider="fal", upstream_model="flux", operations=("generate",), max_n=4,
        retires_on=TODAY, others=(replace(SECOND, max_n=1, retires_on=date(2027, 1, 1)),),
    )  # fmt: skip
    before = model.offered_on(date(2026, 11, 30))
    assert before is model
    after = model.offered_on(TODAY)
    assert after is not None
    assert (after.name, after.price, after.provider, after.max_n) == ("flux", 3, "replicate", 1)
    assert [id_of(route) for route in after.routes] == [id_of(SECOND)]
    assert model.offered_on(date(2027, 1, 1)) is None


def test_a_task_whose_route_has_left_the_catalog_may_still_be_tried_there() -> None:
    lost = Place(Route(provider="old", upstream_model="gone", operations=("generate",)), "old")
    empty = Ways((), {}, {}, TODAY)
    assert choose_next(empty, DEMAND, lost, Tries({("old", "gone"): 2})) == lost
    assert choose_next(empty, DEMAND, lost, Tries({("old", "gone"): 3})) is None


STATES = st.sampled_from([IDLE, BUSY, PAUSED, LONG, POOR, PROBED, DUE, SHAKY, LOST])


@given(
    states=st.tuples(STATES, STATES, STATES),
    counts=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    current=st.sampled_from(["fal", "fal-2", "replicate"]),
    size=st.sampled_from(["512x512", "2048x2048"]),
)
def test_whatever_happens_no_route_gets_a_fourth_try_and_no_task_a_seventh(
    states: tuple[KeyState, KeyState, KeyState], counts: tuple[int, int], current: str, size: str
) -> None:
    tries: Mapping[tuple[str, str], int] = dict(zip(map(id_of, (FIRST, SECOND)), counts, strict=True))
    route = SECOND if current == "replicate" else FIRST
    place = choose_next(ways(*states), replace(DEMAND, size=size), Place(route, current), Tries(tries))
    if place is None:
        return
    assert tries[id_of(place.route)] < 3
    assert sum(tries.values()) < 6
    assert place.provider in KEYS[place.route.provider]
    if place.route is not route:
        assert fits(place.route, replace(DEMAND, size=size))
        assert not ways(*states).wait_s(place) > 60.0
