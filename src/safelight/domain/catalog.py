"""The catalog: which models customers may ask for, at what price, within which bounds, and where they are made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import date

from safelight.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a model can be made: a provider, its own name for the model, and its own bounds.

    `max_n` pictures per task; `sizes` are "WxH" words ("": any is taken, none at all: no size may be asked for);
    the P95 fields are seconds of upstream run time: the default until it is measured, its floor and its cap;
    `deadline_s` is how long after acceptance upstream a run may take before a person looks. From `retires_on`
    (a day in UTC) on nothing new is sent there. `options` are the names of those that it understands; None: any.
    """

    provider: str
    upstream_model: str
    operations: tuple[str, ...]
    max_n: int = 4
    sizes: tuple[str, ...] = ()
    aspect_ratios: tuple[str, ...] = ()
    max_prompt_chars: int = 4000
    max_images: int = 0
    takes_mask: bool = False
    options: tuple[str, ...] | None = None
    default_p95_s: float = 20.0
    p95_floor_s: float = 1.0
    p95_cap_s: float = 600.0
    deadline_s: float = 3600.0
    retires_on: date | None = None

    def is_alive(self, today: date) -> bool:
        """Whether new tasks and attempts may go there."""
        return self.retires_on is None or today < self.retires_on


@dataclass(frozen=True, slots=True, kw_only=True)
class Model(Route):
    """A model as customers name it: what its first route offers, at one `price` in credits per picture.

    `others` are further routes in their order; what they offer may be less, or more.
    """

    name: str
    price: int
    is_default: bool = False
    others: tuple[Route, ...] = ()

    @property
    def routes(self) -> tuple[Route, ...]:
        """Every route in order; the model itself is the first."""
        return (self, *self.others)

    def offered_on(self, today: date) -> Model | None:
        """The model as it is offered on a day: by its first route that is alive; None if there is none left."""
        alive = [route for route in self.routes if route.is_alive(today)]
        if not alive:
            return None
        return self if alive[0] is self else self._led_by(alive[0], tuple(alive[1:]))

    def _led_by(self, route: Route, others: tuple[Route, ...]) -> Model:
        return replace(
            self, **{field.name: getattr(route, field.name) for field in fields(Route)}, others=others
        )


class Catalog:
    """All models by name."""

    def __init__(self, models: Iterable[Model]) -> None:
        self._models: dict[str, Model] = {}
        for model in models:
            if model.name in self._models:
                raise ConfigurationError(f"two models are called {model.name!r}")
            self._models[model.name] = model

    @property
    def models(self) -> Mapping[str, Model]:
        return self._models

    @property
    def default(self) -> Model | None:
        """The model that is taken where a caller names none."""
        return next((model for model in self._models.values() if model.is_default), None)

    def find(self, name: str) -> Model | None:
        return self._models.get(name)
