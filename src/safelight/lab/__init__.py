"""Simulated upstreams: a real HTTP server that accepts, draws, bills, calls back and misbehaves."""

from safelight.lab.knobs import Knobs
from safelight.lab.pictures import draw
from safelight.lab.server import running_lab, serve_lab

__all__ = ["Knobs", "draw", "running_lab", "serve_lab"]
