"""`safelight webhooks`: where the account is told, how deliveries went, and sending them again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safelight.cli.options import AsJson, DataDir, Url
from safelight.cli.output import clean, print_json, print_line, print_table
from safelight.cli.remote import ask
from safelight.cli.running import USAGE, fail

if TYPE_CHECKING:
    from safelight.client import AsyncClient

commands = typer.Typer(
    no_args_is_help=True, help="Webhooks: be told when tasks end. See docs/webhooks.md for the receiver."
)

EndpointId = Annotated[str, typer.Argument(metavar="ID", help="The endpoint's id.")]
DeliveryId = Annotated[str, typer.Argument(metavar="DELIVERY", help="The delivery's id.")]
_WAIT_S = 20.0
"""Longer than a try may take."""
_LOOK_S = 0.3


@commands.command("list")
def list_endpoints(as_json: AsJson = False, url: Url = None, data_dir: DataDir = None) -> None:
    """List the account's endpoints."""
    found = ask(lambda client: client.webhooks.list(), data_dir=data_dir, url=url)
    if as_json:
        print_json(found)
        return
    rows = [
        (
            one["id"],
            one["disabled_reason"] or one["status"],
            one["pending"],
            one["last_success_at"] or "never",
            ", ".join(one["events"]) or "all",
            one["url"],
        )
        for one in found
    ]
    print_table(["id", "status", "pending", "last success", "events", "url"], rows)


@commands.command(
    epilog="""\
Examples:

\b
  safelight webhooks add https://shop.example/hooks/safelight
  safelight webhooks add https://shop.example/hooks --event task.ready --event task.failed
"""
)
def add(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="An https URL of yours.")],
    event: Annotated[
        list[str] | None, typer.Option(metavar="TYPE", help="Only this event; may be given again.")
    ] = None,
    description: Annotated[str, typer.Option(metavar="TEXT", help="A note of yours.")] = "",
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Register an endpoint, and print its secret: it is shown this once."""
    made = ask(
        lambda client: client.webhooks.add(address, description=description, events=event or ()),
        data_dir=data_dir,
        url=url,
    )
    _print_secret(made, as_json=as_json)


@commands.command()
def remove(endpoint_id: EndpointId, url: Url = None, data_dir: DataDir = None) -> None:
    """Delete an endpoint; nothing more is sent to it."""
    ask(lambda client: client.webhooks.remove(endpoint_id), data_dir=data_dir, url=url)
    print_line(f"{clean(endpoint_id)}  removed")


@commands.command()
def rotate(
    endpoint_id: EndpointId,
    overlap_hours: Annotated[
        int, typer.Option(min=0, max=168, metavar="N", help="How long the old secrets sign as well.")
    ] = 24,
    revoke_now: Annotated[
        bool, typer.Option("--revoke-now", help="After a leak: the old secrets end at once.")
    ] = False,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Make a new secret, in force at once, and print it."""
    overlap_s = 0 if revoke_now else overlap_hours * 3_600
    made = ask(
        lambda client: client.webhooks.rotate(endpoint_id, overlap_s=overlap_s), data_dir=data_dir, url=url
    )
    _print_secret(made, as_json=as_json)


@commands.command()
def enable(endpoint_id: EndpointId, url: Url = None, data_dir: DataDir = None) -> None:
    """Put a disabled endpoint back in use; `recover` sends what failed meanwhile."""
    ask(lambda client: client.webhooks.enable(endpoint_id), data_dir=data_dir, url=url)
    print_line(f"{clean(endpoint_id)}  enabled")


@commands.command("test")
def send_test(
    endpoint_id: EndpointId, as_json: AsJson = False, url: Url = None, data_dir: DataDir = None
) -> None:
    """Send a test event and say how it went."""

    async def send(client: AsyncClient) -> Mapping[str, Any]:
        delivery = await client.webhooks.test(endpoint_id)
        until = asyncio.get_running_loop().time() + _WAIT_S
        while delivery["status"] == "pending" and asyncio.get_running_loop().time() < until:
            await asyncio.sleep(_LOOK_S)
            delivery = await client.webhooks.delivery(endpoint_id, delivery["id"])
        return delivery

    delivery = ask(send, data_dir=data_dir, url=url)
    if as_json:
        print_json(delivery)
    else:
        print_line(f"{delivery['id']}  {delivery['status']}  {clean(_last_words(delivery))}")
    if delivery["status"] == "pending":
        fail("no worker has tried it yet: does `safelight worker` run?")
    if delivery["status"] != "delivered":
        raise typer.Exit(1)


@commands.command()
def deliveries(
    endpoint_id: EndpointId,
    status: Annotated[
        str | None, typer.Option(metavar="WORD", help="pending, delivered, failed or canceled.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=100, metavar="N", help="How many at most.")] = 20,
    cursor: Annotated[
        str | None, typer.Option(metavar="CURSOR", help="Go on where a list ended (next_cursor).")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """List deliveries, newest first, with how the last try went; with --json with every try."""
    page = ask(
        lambda client: client.webhooks.deliveries(endpoint_id, status=status, cursor=cursor, limit=limit),
        data_dir=data_dir,
        url=url,
    )
    if as_json:
        print_json({"data": list(page.data), "next_cursor": page.next_cursor})
        return
    rows = [
        (
            one["id"],
            one["status"],
            len(one["tries"]),
            one["next_try_at"] or "",
            one["type"],
            one["task_id"] or "",
            _last_words(one),
        )
        for one in page.data
    ]
    print_table(["id", "status", "tries", "next try", "event", "task", "last answer"], rows)


@commands.command()
def redeliver(
    endpoint_id: EndpointId, delivery_id: DeliveryId, url: Url = None, data_dir: DataDir = None
) -> None:
    """Send one delivery again, under its old id."""
    ask(lambda client: client.webhooks.redeliver(endpoint_id, delivery_id), data_dir=data_dir, url=url)
    print_line(f"{clean(delivery_id)}  is sent again")


@commands.command()
def recover(
    endpoint_id: EndpointId,
    since: Annotated[str, typer.Option(metavar="TIME", help="From when on, such as 2026-01-01T12:00:00Z.")],
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Send everything again that failed since a time, oldest first."""
    try:
        moment = datetime.fromisoformat(since)
    except ValueError:
        fail(f"{since!r} is no time, such as 2026-01-01T12:00:00Z", code=USAGE)
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    count = ask(lambda client: client.webhooks.recover(endpoint_id, moment), data_dir=data_dir, url=url)
    print_line(f"{count} {'delivery' if count == 1 else 'deliveries'} to be sent again")


def _print_secret(made: Mapping[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    print_line(f"endpoint  {made['id']}")
    print_line(f"url       {clean(made['url'])}")
    print_line(f"secret    {made['secret']}")
    print_line("Keep the secret now: it is not shown again.")


def _last_words(delivery: Mapping[str, Any]) -> str:
    """How the last try went, in few words."""
    if not delivery["tries"]:
        return str(delivery["reason"])
    last = delivery["tries"][-1]
    words = [str(last["status"] or ""), last["reason"], last["detail"]]
    return " ".join(word for word in words if word)
