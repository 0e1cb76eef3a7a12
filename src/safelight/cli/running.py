"""Run what a command wants, and turn its errors into one line and an exit code."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import typer

from safelight.errors import ConfigurationError, RequestError, SafelightError

if TYPE_CHECKING:
    from safelight.settings import Settings

T = TypeVar("T")

FAILED = 1
USAGE = 2
INTERRUPTED = 130
TERMINATED = 143


def fail(message: str, *, code: int = FAILED) -> NoReturn:
    """Say what is wrong on standard error and end."""
    typer.echo(f"safelight: {message}", err=True)
    raise typer.Exit(code)


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Errors that were raised on purpose become one line; any other is a bug and keeps its traceback."""
    try:
        yield
    except ConfigurationError as error:
        fail(str(error), code=USAGE)
    except RequestError as error:
        fail(error.detail)
    except SafelightError as error:
        fail(str(error))
    except asyncio.CancelledError:
        fail("ended by a signal", code=TERMINATED)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end; an interrupt cancels the work first and then comes out."""
    with plain_errors():
        return asyncio.run(work)


def run_server(work: Coroutine[Any, Any, T]) -> T:
    """As `run`, on the faster event loop."""
    import uvloop

    with plain_errors(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(work)


def settings_of(data_dir: Path | None, **flags: Any) -> Settings:
    """The installation's settings; wrong ones end the command with exit code 2."""
    from safelight.settings import load_settings

    with plain_errors():
        return load_settings({"data_dir": data_dir, **flags})
