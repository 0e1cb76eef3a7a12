"""`safelight submit`: one task, from the prompt to the file."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from safelight.cli.options import AsJson, DataDir, Output, Url
from safelight.cli.output import count_words, print_json, print_line
from safelight.cli.remote import ask
from safelight.cli.running import INTERRUPTED, USAGE, fail
from safelight.cli.waiting import check_output, report, save_pictures, wait_for

if TYPE_CHECKING:
    from safelight.client import AsyncClient, ClientError, Receipt, Task, TaskFields

commands = typer.Typer()


@dataclass(slots=True)
class Errand:
    """A submit under way: what is known of it, in case it is broken off."""

    prompt: str
    fields: TaskFields
    key: str
    output: Path | None
    is_waited_for: bool
    receipt: Receipt | None = None

    async def run(self, client: AsyncClient) -> tuple[Task | None, list[Path]]:
        """Submit; then, if that is wanted, wait and save."""
        self.receipt = await client.create(self.prompt, idempotency_key=self.key, **self.fields)
        if not self.is_waited_for:
            return None, []
        task = await wait_for(client, self.receipt.id)
        saved = await save_pictures(client, task, self.output) if self.output else []
        return task, saved

    def advise(self, error: ClientError | None = None) -> str:
        """How to go on after an interruption, a lost connection or an error of the service."""
        end = f" -o {self.output}" if self.output else ""
        if self.receipt is not None:
            return f"the task goes on. To wait for it again: safelight tasks wait {self.receipt.id}{end}"
        from safelight.client import FileUnreadable

        if isinstance(error, FileUnreadable) or getattr(error, "status", 500) < 500:
            return ""  # never sent, or refused for good: nothing was stored
        return f"perhaps it was accepted: the same command with --idempotency-key {self.key} finds it again"


@commands.command(
    epilog="""\
Examples:

\b
  safelight submit "a red shoe on white"
  safelight submit "a red shoe on white" --wait -o shoe.png
  safelight submit "a red shoe" -n 3 --model lab-poll -o shoe.png
  safelight submit "a red shoe" --idempotency-key order-1001
  safelight submit "make it blue" --image shoe.png --mask sole.png -o blue.png
  safelight submit "a red shoe" --option 'lab={"fail": 1}' --wait
"""
)
def submit(
    prompt: Annotated[str, typer.Argument(metavar="PROMPT", help="What to draw.")],
    wait: Annotated[bool, typer.Option("--wait", "-w", help="Wait until it is ready or has failed.")] = False,
    output: Output = None,
    n: Annotated[int, typer.Option("-n", metavar="N", help="How many pictures.")] = 1,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Which model; else the default one.")
    ] = None,
    size: Annotated[str | None, typer.Option(metavar="WxH", help="Such as 1024x1024.")] = None,
    aspect_ratio: Annotated[str | None, typer.Option(metavar="W:H", help="Such as 16:9.")] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE|URL|ID", help="A picture to edit; can be given several times."),
    ] = None,
    mask: Annotated[
        str | None,
        typer.Option(metavar="FILE|URL|ID", help="White or transparent where the first one may change."),
    ] = None,
    idempotency_key: Annotated[
        str | None,
        typer.Option(metavar="KEY", help="A key of yours: the same key never makes a second task."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=JSON", help="What only this model knows; can be given several times."),
    ] = None,
    options: Annotated[str | None, typer.Option(metavar="JSON", help="All of that as one object.")] = None,
    as_json: AsJson = False,
    url: Url = None,
    data_dir: DataDir = None,
) -> None:
    """Submit a task, and with --wait bring its pictures back.

    Without --wait it prints the id and ends: the task is safe from then on.
    """
    from safelight.client.checks import new_key

    if not _is_unicode(prompt):
        fail("the prompt is not valid UTF-8", code=USAGE)
    check_output(output)
    fields: TaskFields = {"model": model, "n": n, "size": size, "aspect_ratio": aspect_ratio}
    if image:
        fields["images"] = image
    if mask is not None:
        fields["mask"] = mask
    if chosen := read_options(option or [], options):
        fields["options"] = chosen
    key = new_key() if idempotency_key is None else idempotency_key
    errand = Errand(prompt, fields, key, output, wait or output is not None)
    try:
        task, saved = ask(errand.run, data_dir=data_dir, url=url, advise=errand.advise)
    except KeyboardInterrupt:
        fail(f"interrupted; {errand.advise()}", code=INTERRUPTED)
    if task is not None:
        report(task, saved, as_json=as_json)
    elif errand.receipt is not None:
        _print_receipt(errand.receipt, as_json=as_json)


def read_options(pairs: list[str], text: str | None) -> dict[str, Any]:
    """The `options` object of a task; single ones win. Anything that is no JSON ends with exit code 2."""
    whole = _read_json("--options", text) if text is not None else {}
    if not isinstance(whole, dict):
        fail("--options must be a JSON object", code=USAGE)
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            fail(f"--option {pair!r} is not of the form KEY=JSON", code=USAGE)
        whole[name] = _read_json(f"--option {name}", value)
    return whole


def _is_unicode(text: str) -> bool:
    """Whether the shell gave us characters: other bytes arrive as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _read_json(place: str, text: str) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except ValueError as error:
        fail(f"{place} is not JSON: {error} (a text needs quotes: '\"text\"')", code=USAGE)


def _print_receipt(receipt: Receipt, *, as_json: bool) -> None:
    if as_json:
        print_json(receipt.raw)
        return
    again = ", accepted before" if receipt.is_replayed else ""
    print_line(f"{receipt.id}  {receipt.status}  {count_words(receipt.credits.held, 'credit')} held{again}")
