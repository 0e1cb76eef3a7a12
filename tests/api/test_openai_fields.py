"""What OpenAI's fields come to: as JSON, in forms, for models that know them and for those that do not."""

from __future__ import annotations

from typing import Any

import pytest

from safelight.api.multipart import Part
from safelight.api.openai.fields import translate
from safelight.api.openai.forms import read_json, read_parts
from safelight.api.problems import FieldsRefused
from safelight.domain.catalog import Catalog, Model
from safelight.errors import RequestError


def model(name: str, **given: Any) -> Model:
    return Model(
        name=name, provider="studio", upstream_model=name, operations=("generate", "edit"), price=1, **given
    )


CATALOG = Catalog(
    [
        model("knowing", options=("quality", "style", "user"), sizes=("64x64",), is_default=True),
        model("plain", options=(), aspect_ratios=("1:1", "16:9")),
        model("open", options=None, sizes=("",)),
    ]
)


def body_of(**given: Any) -> dict[str, Any]:
    return translate(given, CATALOG, operation="generate").body


def faults_of(**given: Any) -> list[str]:
    with pytest.raises(FieldsRefused) as refused:
        translate(given, CATALOG, operation="generate")
    return [fault["field"] for fault in refused.value.errors]


def part(name: str, data: bytes | str, file_name: str | None = None) -> Part:
    return Part(name, file_name, "", data.encode() if isinstance(data, str) else data)


def test_what_both_sides_know_is_passed_on_and_null_is_left_out() -> None:
    given = {"prompt": "x", "n": 2, "metadata": {"a": 1}, "priority": 3, "model": "plain"}
    translated = translate({**given, "size": None, "stream": None}, CATALOG, operation="edit")
    assert translated.body == {**given, "operation": "edit"}
    assert translated.response_format == "b64_json"


@pytest.mark.parametrize(
    ("given", "options"),
    [
        ({"quality": "high", "style": "natural"}, {"quality": "high", "style": "natural"}),
        ({"quality": "high", "options": {"style": "vivid"}}, {"quality": "high", "style": "vivid"}),
        ({"quality": "auto", "background": "auto", "moderation": "auto"}, None),
        ({"moderation": "low", "output_format": "png", "output_compression": 100}, None),
        ({"user": "u-1", "safety_identifier": "s-1"}, {"user": "u-1"}),
        ({"model": "open", "frame_count": 4, "output_format": "png"}, {"frame_count": 4, "output_format": "png"}),
        ({"model": "plain", "style": "vivid", "quality": "standard", "user": "u-1"}, None),
    ],
)  # fmt: skip
def test_wishes_become_options_of_a_model_that_knows_them(
    given: dict[str, Any], options: dict[str, Any] | None
) -> None:
    assert body_of(prompt="x", **given).get("options") == options


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        ({"model": "plain", "quality": "high"}, ["quality"]),
        ({"background": "transparent", "output_format": "webp"}, ["background", "output_format"]),
        ({"output_compression": 80}, ["output_compression"]),
        ({"output_compression": True}, ["output_compression"]),
        ({"input_fidelity": "high"}, ["input_fidelity"]),
        ({"svg": {"model": "x"}, "frame_count": 4}, ["frame_count", "svg"]),
        ({"stream": True}, ["stream"]),
        ({"stream": "yes"}, ["stream"]),
        ({"partial_images": 2}, ["partial_images"]),
        ({"response_format": "file"}, ["response_format"]),
        ({"response_format": ["url"]}, ["response_format"]),
        ({"colour": "red", "Prompt": "x"}, ["Prompt", "colour"]),
    ],
)
def test_what_a_model_cannot_do_is_refused_by_name(given: dict[str, Any], fields: list[str]) -> None:
    assert faults_of(prompt="x", **given) == fields


@pytest.mark.parametrize(
    ("given", "shape"),
    [
        ({"size": "auto"}, {}),
        ({"size": "64x64"}, {"size": "64x64"}),
        ({"model": "plain", "size": "1024x1024"}, {"aspect_ratio": "1:1"}),
        ({"model": "plain", "size": "1792x1008"}, {"aspect_ratio": "16:9"}),
        ({"model": "plain", "size": "1024x1536"}, {"size": "1024x1536"}),
        ({"model": "open", "size": "1024x1536"}, {"size": "1024x1536"}),
        (
            {"model": "plain", "size": "8x8", "aspect_ratio": "16:9"},
            {"size": "8x8", "aspect_ratio": "16:9"},
        ),
        ({"size": ["64x64"]}, {"size": ["64x64"]}),
    ],
)
def test_a_size_is_a_ratio_where_a_model_goes_by_ratios_alone(
    given: dict[str, Any], shape: dict[str, Any]
) -> None:
    body = body_of(prompt="x", **given)
    assert {name: body[name] for name in ("size", "aspect_ratio") if name in body} == shape


def test_a_form_is_read_as_the_json_that_it_stands_for() -> None:
    form = read_parts(
        [
            part("image[]", b"\x89one", "a.png"),
            part("image[]", b"\x89two", "b.png"),
            part("mask", b"\x89mask", "m.png"),
            part("prompt", "é"),
            part("n", "2"),
            part("stream", "false"),
            part("size", ""),
            part("metadata[order][id]", "7"),
            part("metadata[who]", "me"),
            part("options[seed]", "5"),
            part("options[tiled]", "true"),
            part("svg", '{"model": "x"}'),
        ]
    )
    assert (form.images, form.mask) == ([b"\x89one", b"\x89two"], b"\x89mask")
    assert form.fields == {
        "prompt": "é",
        "n": 2,
        "stream": False,
        "metadata": {"order": {"id": "7"}, "who": "me"},
        "options": {"seed": 5, "tiled": True},
        "svg": {"model": "x"},
    }


def test_the_same_form_has_the_same_fingerprint_whatever_its_files_are_called() -> None:
    def sent(name: str, data: bytes, prompt: str = "x") -> bytes:
        return read_parts([part("image", data, name), part("prompt", prompt)]).fingerprint

    assert sent("a.png", b"one") == sent("b.png", b"one")
    assert len({sent("a", b"one"), sent("a", b"two"), sent("a", b"one", "y")}) == 3


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ([part("n", "1"), part("n", "2")], "n"),
        ([part("metadata", "[1]")], "metadata"),
        ([part("metadata", "{}"), part("metadata[a]", "1"), part("metadata[a][b]", "1")], "metadata"),
        ([part("options[a][b][c][d][e][f][g][h]", "1")], "options"),
        ([part("mask", "1", "m"), part("mask", "2", "m")], "mask"),
        ([part("markup", b"\x89", "markup.png")], "markup"),
        ([part("a b", "1")], "a b"),
    ],
)
def test_a_form_that_cannot_be_read_is_refused_by_name(parts: list[Part], field: str) -> None:
    with pytest.raises(FieldsRefused) as refused:
        read_parts(parts)
    assert refused.value.errors[0]["field"] == field


def test_a_form_whose_text_is_not_utf_8_is_refused() -> None:
    with pytest.raises(RequestError) as refused:
        read_parts([part("prompt", b"\xff")])
    assert (refused.value.status, refused.value.problem_code) == (400, "invalid-form")


@pytest.mark.parametrize(
    ("images", "field"),
    [("null", "images"), ('["https://x.example/a.png"]', "images[0]"), ('[{"url": "x"}]', "images[0]")],
)
def test_pictures_in_json_are_objects(images: str, field: str) -> None:
    with pytest.raises(FieldsRefused) as refused:
        read_json(f'{{"prompt": "x", "images": {images}}}'.encode())
    assert refused.value.errors[0]["field"] == field
