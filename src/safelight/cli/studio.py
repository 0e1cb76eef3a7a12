"""`safelight studio`: a way into the web page without typing a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from safelight.cli.operator import operating
from safelight.cli.options import DataDir
from safelight.cli.output import print_line
from safelight.cli.running import fail, run, settings_of

if TYPE_CHECKING:
    from safelight.settings import Settings

commands = typer.Typer()


@commands.command(
    short_help="Print a link that signs a browser in to the Studio.",
    epilog="Example:\n\n\b\n  safelight studio",
)
def studio(
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Address of the service, as the browser reaches it.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Print a link that signs one browser in to the Studio, once, within half an hour.

    The session stands on the key in the data directory, and ends after twelve hours or when that key is revoked.
    """
    settings = settings_of(data_dir)
    print_line(run(_link(settings, url)))


async def _link(settings: Settings, url: str | None) -> str:
    from safelight.db.sessions import Holder
    from safelight.domain.keys import parse_key
    from safelight.lifecycle.sessions import Sessions, studio_link

    key_file = settings.data_dir / "key"
    key = parse_key(key_file.read_text(encoding="utf-8").strip()) if key_file.exists() else None
    if key is None:
        fail(f"no API key: {key_file} does not hold one; `safelight serve` makes it")
    url_file = settings.data_dir / "url"
    base = url or settings.public_url or (url_file.read_text(encoding="utf-8") if url_file.exists() else "")
    if not base:
        fail("no address: start `safelight serve`, or name it with --url")
    async with operating(settings, makes_keys=True) as at:
        sessions = Sessions(at.database, at.administration.pepper)
        ticket = await sessions.issue(Holder(key.id, is_operator=False))
    return studio_link(base, ticket.token)
