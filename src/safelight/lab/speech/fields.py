"""Fields: reads a body field by field and refuses whatever its upstream would not take."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

Path = tuple[str | int, ...]
_REQUIRED: Any = object()


class Fault(Exception):
    """A mistake in what the caller sent; each dialect words it in its own error body.

    `kind` is `missing`, `unknown`, `type`, `value`, `picture`, `body` (not readable at all) or `header`.
    """

    def __init__(self, kind: str, path: Path, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.path = path
        self.message = message

    @property
    def name(self) -> str:
        """The field with dots, such as `input.image`."""
        return ".".join(str(step) for step in self.path)


class Fields:
    """Takes fields out of an object; `close` refuses those that nobody took.

    A field without a default is required. `null` counts as absent where there is a default. With `is_text`
    (forms) numbers and flags are read from their text.
    """

    def __init__(self, values: object, path: Path = (), *, is_text: bool = False) -> None:
        if not isinstance(values, Mapping):
            raise Fault("type", path, "must be an object")
        self._values: Mapping[str, Any] = values
        self._path = path
        self._is_text = is_text
        self._taken: dict[str, Any] = {}

    @property
    def path(self) -> Path:
        """Where the object stands in the body."""
        return self._path

    @property
    def values(self) -> Mapping[str, Any]:
        """All that was given."""
        return self._values

    @property
    def taken(self) -> dict[str, Any]:
        """What was given and read so far, for a job's details; long texts are left out."""
        return {name: value for name, value in self._taken.items() if len(repr(value)) <= 4000}

    def has(self, name: str) -> bool:
        """Whether it was given."""
        return self._values.get(name) is not None

    def raw(self, name: str, default: Any = _REQUIRED) -> Any:
        """The value, unchecked."""
        if self._values.get(name) is None:
            if default is _REQUIRED:
                raise self.fault("missing", name, "field required")
            if name in self._values:
                self._taken[name] = None
            return default
        self._taken[name] = self._values[name]
        return self._values[name]

    def text(self, name: str, default: Any = _REQUIRED, *, least: int = 0, most: int = 100_000) -> Any:
        """A text; a required one is not blank."""
        value = self.raw(name, default)
        if value is default and not self.has(name):
            return value
        if not isinstance(value, str):
            raise self.fault("type", name, "must be a string")
        least = least or int(default is _REQUIRED)
        if not least <= len(value.strip()) or len(value) > most:
            raise self.fault("value", name, f"must have from {least} to {most} characters")
        return value

    def choice(self, name: str, options: Collection[Any], default: Any = _REQUIRED) -> Any:
        """One of several values."""
        value = self.raw(name, default)
        is_listed = any(value == option and type(value) is type(option) for option in options)
        if self.has(name) and not is_listed:
            raise self.fault("value", name, f"must be one of {', '.join(map(str, options))}")
        return value

    def whole(
        self, name: str, default: Any = _REQUIRED, *, low: float = -(2**63), high: float = 2**63
    ) -> Any:
        """A whole number."""
        value = self._number(name, default, int)
        if self.has(name) and not low <= value <= high:
            raise self.fault("value", name, f"must be from {low} to {high}")
        return value

    def number(self, name: str, default: Any = _REQUIRED, *, low: float = -1e12, high: float = 1e12) -> Any:
        """A number, whole or not."""
        value = self._number(name, default, float)
        if self.has(name) and not low <= value <= high:
            raise self.fault("value", name, f"must be from {low} to {high}")
        return value

    def flag(self, name: str, default: Any = _REQUIRED) -> Any:
        """True or false."""
        value = self.raw(name, default)
        if self._is_text and value in {"true", "false"}:
            return value == "true"
        if self.has(name) and (self._is_text or not isinstance(value, bool)):
            raise self.fault("type", name, "must be a boolean")
        return value

    def many(self, name: str, default: Any = _REQUIRED, *, least: int = 0, most: int = 100) -> Any:
        """A list."""
        value = self.raw(name, default)
        if not self.has(name):
            return value
        if not isinstance(value, Sequence) or isinstance(value, str | bytes):
            raise self.fault("type", name, "must be a list")
        if not least <= len(value) <= most:
            raise self.fault("value", name, f"must have from {least} to {most} items")
        return value

    def inner(self, name: str, default: Any = _REQUIRED) -> Fields:
        """An object within; `default={}` makes it optional. It has to be closed like this one."""
        return Fields(self.raw(name, default), (*self._path, name))

    def url(
        self, name: str, default: Any = _REQUIRED, *, schemes: Collection[str] = ("http", "https")
    ) -> Any:
        """An address of one of the schemes."""
        value = self.text(name, default)
        if self.has(name) and not value.startswith(tuple(f"{scheme}://" for scheme in schemes)):
            raise self.fault("value", name, "must be a URL")
        return value

    def close(self) -> None:
        """Refuse what nobody took."""
        if rest := sorted(self._values.keys() - self._taken.keys()):
            raise self.fault("unknown", rest[0], "extra fields not permitted")

    def fault(self, kind: str, name: str, message: str) -> Fault:
        """A fault of one field, to be raised."""
        return Fault(kind, (*self._path, name), message)

    def _number(self, name: str, default: Any, kind: type[int] | type[float]) -> Any:
        value = self.raw(name, default)
        if not self.has(name):
            return value
        if self._is_text:
            try:
                return kind(value)
            except (TypeError, ValueError):
                raise self.fault("type", name, "must be a number") from None
        allowed = (int,) if kind is int else (int, float)
        if isinstance(value, bool) or not isinstance(value, allowed):
            raise self.fault("type", name, f"must be {'an integer' if kind is int else 'a number'}")
        return value
