"""The catalog: which models customers may ask for, at what price, within which bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from safelight.errors import ConfigurationError


@dataclass(frozen=True, slots=True)
class Model:
    """A model as customers name it.

    `price` is credits per picture; `max_n` pictures per task; `sizes` are "WxH" words (none: any is taken);
    the P95 fields are seconds of upstream run time: the default until it is measured, its floor and its cap;
    `deadline_s` is how long after acceptance upstream a run may take before a person looks.
    """

    name: str
    provider: str
    upstream_model: str
    operations: tuple[str, ...]
    price: int
    max_n: int = 4
    sizes: tuple[str, ...] = ()
    aspect_ratios: tuple[str, ...] = ()
    max_prompt_chars: int = 4000
    max_images: int = 0
    default_p95_s: float = 20.0
    p95_floor_s: float = 1.0
    p95_cap_s: float = 600.0
    deadline_s: float = 3600.0
    is_default: bool = False


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
