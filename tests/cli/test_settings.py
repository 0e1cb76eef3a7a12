"""Settings: what does not fit is refused in one line that names it."""

from __future__ import annotations

from pathlib import Path

import pytest

from safelight.errors import ConfigurationError
from safelight.settings import load_settings


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("SAFELIGHT_LOG_LEVEL", "loud"),
        ("SAFELIGHT_LOG_FORMAT", "xml"),
        ("SAFELIGHT_MAX_BODY_BYTES", "-1"),
        ("SAFELIGHT_MAX_ASSET_BYTES", "0"),
        ("SAFELIGHT_PUBLIC_URL", "nonsense"),
        ("SAFELIGHT_PUBLIC_URL", "ftp://x"),
        ("SAFELIGHT_LAB_URL", "nonsense"),
        ("SAFELIGHT_PORT", "70000"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_by_name(variable: str, value: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=variable.removeprefix("SAFELIGHT_").lower()):
        load_settings({"data_dir": tmp_path}, {variable: value})


def test_an_unknown_name_is_refused_wherever_it_stands(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="unknown setting SAFELIGHT_NOPE"):
        load_settings({"data_dir": tmp_path}, {"SAFELIGHT_NOPE": "1"})
    (tmp_path / "safelight.toml").write_text("nope = 1\n")
    with pytest.raises(ConfigurationError, match="unknown setting 'nope'"):
        load_settings({"data_dir": tmp_path}, {})


def test_a_flag_wins_over_the_environment_and_that_over_the_file(tmp_path: Path) -> None:
    (tmp_path / "safelight.toml").write_text("port = 1001\nlab_port = 1002\nstart_by_s = 60\n")
    settings = load_settings(
        {"data_dir": tmp_path, "port": 3001}, {"SAFELIGHT_PORT": "2001", "SAFELIGHT_LAB_PORT": "2002"}
    )
    assert (settings.port, settings.lab_port, settings.start_by_s) == (3001, 2002, 60.0)
