"""What the templates of each call may speak of."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd
from typing import Any
from zlib import crc32

from safelight.domain.provider import AttemptRef, Submission
from safelight.providers.declaration import Declaration, DeclaredModel, Submit
from safelight.providers.forms import ImageForms

Values = Mapping[str, Any]

ATTEMPT_VALUES = frozenset(
    {
        "reference",
        "provider_ref",
        "upstream_model",
        "model_root",
        "model",
        "operation",
        "region",
        "credentials",
    }
)
SUBMIT_VALUES = (ATTEMPT_VALUES - {"provider_ref"}) | {
    *("prompt", "n", "size", "size_star", "size_colon", "size_word", "width", "height"),
    *("aspect_ratio", "ratio", "ratio_x", "images", "image", "mask", "options", "seed", "callback_url"),
}
LOOK_UP_VALUES = ATTEMPT_VALUES - {"provider_ref"}
LIST_VALUES = frozenset({"since", "until", "cursor", "page", "offset", "limit", "region", "credentials"})
PATH_VALUES = frozenset({"reference", "provider_ref", "upstream_model", "model_root", "model", "operation"})
"""A secret in an address would end up in every log on its way."""
HEADER_VALUES = frozenset({"reference", "upstream_model", "model", "operation", "region", "credentials"})
"""Texts of customers never go into headers."""


def submission_values(declaration: Declaration, submission: Submission) -> dict[str, Any]:
    """What a submit's templates may speak of."""
    width, _, height = (submission.size or "").partition("x")
    sides = (int(width), int(height)) if width.isdecimal() and height.isdecimal() else None
    ratio = submission.aspect_ratio or (_ratio(*sides) if sides else None)
    images = [ImageForms(image) for image in submission.images]
    return {
        **_of_model(declaration, submission.upstream_model),
        "reference": submission.reference,
        "operation": submission.operation,
        "prompt": submission.prompt,
        "n": submission.n,
        "size": submission.size,
        "size_star": f"{width}*{height}" if sides else None,
        "size_colon": f"{width}:{height}" if sides else None,
        "size_word": _size_word(declaration.submit, submission),
        "width": sides[0] if sides else None,
        "height": sides[1] if sides else None,
        "aspect_ratio": submission.aspect_ratio,
        "ratio": ratio,
        "ratio_x": ratio.replace(":", "x") if ratio else None,
        "images": images,
        "image": images[0] if images else None,
        "mask": ImageForms(submission.mask) if submission.mask else None,
        "options": submission.options,
        "seed": _seed(submission),
        "callback_url": submission.callback_url,
    }


def attempt_values(declaration: Declaration, attempt: AttemptRef) -> dict[str, Any]:
    """What the templates of poll, result, look_up and cancel may speak of."""
    return {
        **_of_model(declaration, attempt.upstream_model),
        "reference": attempt.reference,
        "provider_ref": attempt.provider_ref,
        "operation": attempt.operation,
    }


def model_of(declaration: Declaration, upstream_model: str) -> DeclaredModel | None:
    """The declared model that goes by this name upstream."""
    return next(
        (model for model in declaration.models if upstream_model == (model.upstream_model or model.name)),
        None,
    )


def _of_model(declaration: Declaration, upstream_model: str) -> dict[str, Any]:
    model = model_of(declaration, upstream_model)
    return {
        "upstream_model": upstream_model,
        # "owner/name/version" is spoken of as "owner/name" in the addresses of its attempts (fal).
        "model_root": "/".join(upstream_model.split("/")[:2]),
        "model": model.values if model else {},
    }


def _seed(submission: Submission) -> Any:
    """The customer's seed, else one of our own for upstreams that must be told one."""
    return submission.options.get("seed", crc32(submission.reference.encode()))


def _size_word(submit: Submit, submission: Submission) -> str | int | None:
    for ours in (submission.size, submission.aspect_ratio):
        if ours is not None and ours in submit.sizes:
            return submit.sizes[ours]
    return None


def _ratio(width: int, height: int) -> str:
    divisor = gcd(width, height) or 1
    return f"{width // divisor}:{height // divisor}"
