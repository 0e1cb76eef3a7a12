"""Shapes of this door for the OpenAPI document; nothing is built from them at run time."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from safelight.api.shapes import Credits, Progress


class _Wishes(BaseModel):
    """What both bodies have."""

    model_config = ConfigDict(extra="forbid")

    prompt: str = Field(min_length=1)
    model: str | None = Field(None, description="A name from GET /v1/models; the default model if left out.")
    n: int | None = Field(None, ge=1, description="How many pictures; 1 if left out.")
    size: str | None = Field(None, description="Such as 1024x1024; `auto`: the model's own default.")
    response_format: Literal["b64_json", "url"] | None = None
    quality: str | None = Field(
        None, description="For models whose `options` name it, like all up to `user`."
    )
    background: str | None = None
    output_format: str | None = None
    output_compression: int | None = None
    input_fidelity: str | None = None
    moderation: Literal["auto", "low"] | None = None
    style: str | None = None
    complexity: str | None = None
    frame_count: int | None = None
    frame_duration_ms: int | None = None
    svg: dict[str, Any] | None = None
    safety_identifier: str | None = None
    user: str | None = None
    stream: Literal[False] | None = Field(None, description="Pictures are not streamed.")
    partial_images: Literal[0] | None = None
    aspect_ratio: str | None = Field(None, description="Such as 16:9; not together with size.")
    options: dict[str, Any] | None = Field(None, description="What only this model knows.")
    metadata: dict[str, Any] | None = Field(None, description="Yours, given back as it is.")
    priority: int | None = Field(None, ge=-10, le=10, description="Among your own tasks.")


class ImageGeneration(_Wishes):
    """What `POST /v1/images/generations` takes."""


class ImageInput(BaseModel):
    """A picture: one of the two."""

    model_config = ConfigDict(extra="forbid")

    image_url: str = Field("", description="An https or data URL.")
    file_id: str = Field("", description="The id of an upload.")


class ImageEdit(_Wishes):
    """What `POST /v1/images/edits` takes as JSON."""

    images: list[ImageInput]
    mask: ImageInput | None = Field(None, description="Transparent where the first image may change.")


class ImageEditForm(_Wishes):
    """The same as a form; objects are written as `metadata[key]`, or as a JSON text."""

    image: list[bytes] = Field(description="Files, as `image` or `image[]`.")
    mask: bytes | None = None


class ImageData(BaseModel):
    """One picture, in the form that was asked for."""

    b64_json: str | None = None
    url: str | None = Field(None, description="Signed; it expires.")


class ApiError(BaseModel):
    """An error as OpenAI's clients read it."""

    message: str
    type: str
    param: str | None
    code: str


class ApiErrorAnswer(BaseModel):
    """The answer that holds it."""

    error: ApiError


class ImageTask(BaseModel):
    """A task at this door; `completed` and `failed` are final."""

    id: str
    object: Literal["image.task"]
    status: Literal["queued", "processing", "completed", "failed"]
    model: str
    created: int = Field(description="Unix time.")
    completed_at: int | None
    progress: Progress
    credits: Credits
    metadata: dict[str, Any]
    error: ApiError | None = Field(None, description="Only of a failed task.")
    size: str | None = Field(None, description="Of the first picture.")
    output_format: Literal["png", "jpeg", "webp"] | None = None
    data: list[ImageData] | None = Field(None, description="Only of a completed task.")


IMAGE_SHAPES: tuple[type[BaseModel], ...] = (
    ImageGeneration, ImageEdit, ImageEditForm, ImageTask, ApiErrorAnswer,
)  # fmt: skip
