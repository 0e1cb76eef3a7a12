"""The table of what templates may speak of, made from `safelight.providers.values`."""

from __future__ import annotations

from safelight.providers import values

PLACES = (
    ("submit", values.SUBMIT_VALUES),
    ("poll, result, cancel", values.ATTEMPT_VALUES),
    ("look_up", values.LOOK_UP_VALUES),
    ("list", values.LIST_VALUES),
    ("paths", values.PATH_VALUES),
    ("headers", values.HEADER_VALUES),
)
MEANINGS = {
    "prompt": "What to draw.",
    "n": "How many pictures.",
    "size": 'As it was asked for: "1024x768".',
    "size_star": 'The same as "1024*768".',
    "size_colon": 'The same as "1024:768".',
    "size_word": "The upstream's word for size or aspect ratio, from `[submit.sizes]`.",
    "width": "The size's first number.",
    "height": "The size's second number.",
    "aspect_ratio": 'Only if it was asked for: "16:9".',
    "ratio": "The aspect ratio, or that of the size.",
    "ratio_x": 'The same as "16x9".',
    "images": "The pictures of an edit, each in its forms.",
    "image": "The first of them.",
    "mask": "Where the first may change, in `submit.mask_style`.",
    "options": "What the customer gave beside: `{options.quality}`. All of them: `{options}`.",
    "seed": "The option `seed`, else a number of ours.",
    "callback_url": "Our address for this attempt; absent where no one can reach us.",
    "reference": "Our name for the attempt.",
    "provider_ref": "The upstream's id.",
    "operation": "`generate` or `edit`.",
    "upstream_model": "The upstream's name of the model.",
    "model_root": "Its first two parts, of owner/name/version.",
    "model": "Its `values`: `{model.word}`.",
    "region": "The region that is set, or the usual one.",
    "credentials": "`{credentials.api_key}`. In a body it may be absent, in a header it is needed.",
    "since": "The beginning of the window.",
    "until": "Its end.",
    "cursor": "What the last page named; absent for the first.",
    "page": "The page's number.",
    "offset": "How many records came before.",
    "limit": "How many records a page has.",
}
"""A value without a meaning here, or a meaning without a value, fails the test of the pages."""


def placeholder_table() -> str:
    """Every value with its meaning and the places that may speak of it."""
    known = {name for _, allowed in PLACES for name in allowed}
    if known != MEANINGS.keys():
        raise ValueError(
            f"tell the meaning of {sorted(known ^ MEANINGS.keys())} in docs/pages/placeholders.py"
        )
    rows = "".join(
        f"| `{{{name}}}` | {meaning} | {', '.join(place for place, allowed in PLACES if name in allowed)} |\n"
        for name, meaning in MEANINGS.items()
    )
    return (
        f"| value | what it is | where |\n|---|---|---|\n{rows}\n"
        "Paths and headers may speak only of those that name them, whatever the call; a query never of credentials.\n"
    )
