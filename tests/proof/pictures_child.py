"""Checks hostile pictures in a process of its own with little memory, and prints what came of it as JSON."""

from __future__ import annotations

import json
import resource
import sys
from collections import Counter
from itertools import islice
from pathlib import Path

from safelight.assets.checking import check_picture, make_thumbnail
from safelight.assets.masks import make_mask
from safelight.domain.provider import MaskStyle
from safelight.errors import AssetError
from tests.proof.pictures_corpus import KINDS, Sample, samples

MEMORY_BYTES = 1 << 30
"""Address space beyond what the process has when it begins: the limit of a whole decode."""
MOST_FAILURES = 20


def main(count: int, seed: int) -> None:
    """Judge `count` samples of a seed."""
    source = samples(seed)
    for sample in islice(source, len(KINDS)):
        judged(sample)  # what is read and built once does not count
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MEMORY_BYTES,) * 2)
    before = _peak_kb()
    verdicts: Counter[str] = Counter()
    failures: list[str] = []
    worst = ("", 0)
    for number, sample in enumerate(islice(source, count)):
        peak = _peak_kb()
        verdict = judged(sample)
        verdicts[verdict] += 1
        worst = max(worst, (sample.kind, _peak_kb() - peak), key=lambda one: one[1])
        if verdict not in sample.must:
            failures.append(f"{sample.kind} number {number} is {verdict}, seed {seed}")
    document = {
        "verdicts": dict(verdicts),
        "failures": failures[:MOST_FAILURES],
        "peak_kb": _peak_kb() - before,
        "worst": list(worst),
    }
    print(json.dumps(document))  # noqa: T201 - for the layer, which reads it


def judged(sample: Sample) -> str:
    """What we say of it. A picture that is fine must be fit for everything else that is done with pictures."""
    try:
        check_picture(sample.data)
    except AssetError as error:
        _refuse_elsewhere(sample.data)
        return error.reason
    except Exception as error:  # noqa: BLE001 - that is what is looked for
        return f"a {type(error).__name__}"
    make_thumbnail(sample.data)
    make_mask(sample.data, MaskStyle.CLEAR)
    return "fine"


def _refuse_elsewhere(data: bytes) -> None:
    """What was refused may be read in part elsewhere, but raises nothing of its own."""
    for read in (make_thumbnail, lambda data: make_mask(data, MaskStyle.WHITE)):
        try:
            read(data)
        except AssetError:
            continue


def _peak_kb() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _address_space() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return pages * resource.getpagesize()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
