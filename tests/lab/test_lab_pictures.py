"""Pictures are valid, always the same, and differ from each other."""

import io
import time

import pytest
from PIL import Image

from safelight.lab import draw

PROMPTS = [
    "a red sneaker", "night over the sea", "snowy mountains", "dark forest", "Tokyo street", "desert dunes",
    "flowers in a garden", "a sleeping cat", "blue lake", "green hills", "nothing that anyone knows",
    "猫と月 🐈‍⬛ عربى", "\ud800 \x00 \n\t broken", "x" * 5000, "🙂", "é" * 30,
]  # fmt: skip


@pytest.mark.parametrize("prompt", PROMPTS)
def test_any_prompt_becomes_a_picture_of_the_size_asked_for(prompt: str) -> None:
    for size in ((160, 96), (64, 200), (65, 65)):
        picture = Image.open(io.BytesIO(draw(prompt, index=0, width=size[0], height=size[1])))
        picture.load()
        assert (picture.format, picture.mode, picture.size) == ("PNG", "RGB", size)


def test_the_same_arguments_draw_the_same_bytes() -> None:
    for prompt in PROMPTS:
        assert draw(prompt, index=3, width=128, height=96) == draw(prompt, index=3, width=128, height=96)


def test_other_prompts_and_indexes_draw_other_pictures() -> None:
    pictures = {draw(prompt, index=index, width=128, height=128) for prompt in PROMPTS for index in range(10)}
    assert len(pictures) == len(PROMPTS) * 10


def test_the_smallest_pictures_come_from_sixteen_ready_ones() -> None:
    pictures = {draw(f"prompt {number}", index=0, width=64, height=64) for number in range(300)}
    assert len(pictures) == 16
    began_s = time.process_time()
    for number in range(1000):
        draw(f"prompt {number}", index=0, width=64, height=64)
    assert time.process_time() - began_s < 1, "of work; a thousand of them drawn anew take many times as long"
