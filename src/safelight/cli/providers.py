"""`safelight providers`: what upstreams there are, and how to add one."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from safelight.cli.describing import COLUMNS, MODEL_COLUMNS, portrait, summary, words
from safelight.cli.options import DATA_DIR_VARIABLE, AsJson
from safelight.cli.output import clean, count_words, print_json, print_line, print_table
from safelight.cli.running import FAILED, USAGE, fail, plain_errors, run, settings_of
from safelight.cli.waiting import check_output

if TYPE_CHECKING:
    from safelight.cli.conformance.run import Verdict
    from safelight.providers.declaration import Declaration

commands = typer.Typer(
    no_args_is_help=True,
    help="List, show, write, check and try providers.",
    rich_markup_mode=None,
)

TEMPLATE = "relay"
Source = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A provider, or a declaration of yours.")]


@commands.command("list", short_help="Every provider with what it can do.")
def list_providers(as_json: AsJson = False) -> None:
    """List every provider with what it can do, and how many keys of it are set here; `safelight.toml` may add more."""
    from safelight.upstreams import read_keys

    settings = settings_of(None)
    with plain_errors():
        keys = read_keys(settings)
    counts = Counter(key.declaration.name for key in keys)
    declarations = {key.declaration.name: key.declaration for key in keys}
    declarations |= {
        declaration.name: declaration for declaration in _packaged() if declaration.name not in counts
    }
    rows = [
        {**summary(declaration), "keys": counts[name]} for name, declaration in sorted(declarations.items())
    ]
    if as_json:
        print_json(rows)
        return
    print_table(COLUMNS, ([row[column] for column in COLUMNS] for row in rows))


@commands.command("show", short_help="One provider: how to enable it, its models, its limits.")
def show(source: Source, as_json: AsJson = False) -> None:
    """Show one provider: the settings that enable it, what it can do, its models and their prices."""
    declaration = _declaration(source)
    shown = portrait(declaration, is_packaged=not _is_file(source))
    if as_json:
        print_json(shown)
        return
    print_line(f"{declaration.name}: {declaration.title or declaration.name}")
    for name, value in shown.items():
        if name not in ("name", "title", "models"):
            print_line(f"  {name}: {words(value)}")
    print_line()
    print_table(MODEL_COLUMNS, ([row[column] for column in MODEL_COLUMNS] for row in shown["models"]))


@commands.command("new", short_help="Write a declaration to begin with.")
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and dashes.")],
    like: Annotated[str, typer.Option("--like", metavar="PROVIDER", help="What to begin with.")] = TEMPLATE,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="By default NAME.toml.")
    ] = None,
) -> None:
    """Write a declaration that works at once, as a copy of the commented template or of another provider."""
    from safelight.providers import load_declaration, packaged_text

    path = output or Path(f"{name}.toml")
    check_output(path)
    _check_name(name)
    with plain_errors():
        text = _renamed(packaged_text(like), like, name)
        declaration = load_declaration(text)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        fail(f"{path} exists already; -o names another file", code=USAGE)
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}", code=USAGE)
    print_line(f"Written: {path}")
    print_line(f"Check it:   safelight providers check {path} --dialect {like}")
    print_line(f"Try it:     safelight providers try {path} --lab {like} -o picture.png")
    print_line(f"Enable it:  in {_settings_file()}")
    for line in (f"[providers.{name}]", f'file = "{path.resolve()}"', *_places(declaration)):
        print_line(f"    {line}")


@commands.command("check", short_help="Check a declaration, and run the conformance suite on it.")
def check(
    source: Source,
    dialect: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The lab's upstream to run against; by default that of its name."),
    ] = None,
    is_dry: Annotated[bool, typer.Option("--dry-run", help="Only show what would be sent.")] = False,
    as_json: AsJson = False,
) -> None:
    """Check a declaration: first what it says, then what it does against the lab's dialect of its upstream.

    Without a dialect of its name, or with --dry-run, the calls that it would make are shown instead.
    """
    from safelight.cli.dryrun import dry_run

    declaration = _declaration(source)
    spoken = None if is_dry else _spoken(dialect or declaration.name, is_named=dialect is not None)
    if not as_json:
        print_line(f"{declaration.name}: the declaration is well formed")
    if spoken is None:
        if not is_dry and not as_json:
            print_line(
                f"the lab does not play an upstream called {declaration.name}; --dialect names another"
            )
            print_line("the calls that would be made:")
        calls = dry_run(declaration)
        if as_json:
            print_json(calls)
        else:
            print_line("\n".join(line for call in calls for line in call["lines"]))
        return
    verdicts = run(_conformance(declaration, spoken, as_json=as_json))
    faults = [verdict for verdict in verdicts if not verdict.is_good]
    if as_json:
        print_json([{"case": verdict.case, "fault": verdict.fault} for verdict in verdicts])
    else:
        print_line(f"{count_words(len(verdicts), 'case')}, {count_words(len(faults), 'fault')}")
    if faults:
        raise typer.Exit(FAILED)


@commands.command("try", short_help="Make one picture with a provider, past the service.")
def try_provider(
    source: Source,
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="What to draw.")] = "a red shoe on white",
    model: Annotated[str | None, typer.Option(metavar="MODEL", help="By default its first.")] = None,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Where to save it.")] = Path(
        "picture.png"
    ),
    lab: Annotated[
        str | None, typer.Option("--lab", metavar="DIALECT", help="Ask the lab's upstream of this name.")
    ] = None,
    is_agreed: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before money is spent.")] = False,
) -> None:
    """Make one task with a provider directly: submit, poll, fetch, save. Nothing is stored or charged here.

    With the installation's settings it is a real task that the provider charges for; with --lab it is not.
    """
    from safelight.cli.trying import Trial, check_enabled, make_picture

    declaration = _declaration(source)
    check_output(output)
    file = Path(source).resolve() if _is_file(source) else None
    if lab is not None:
        _spoken(lab, is_named=True)
    elif not is_agreed:
        with plain_errors():
            check_enabled(declaration, file)
        typer.confirm(f"{declaration.name} may charge for this. Go on?", abort=True)
    run(make_picture(declaration, Trial(prompt=prompt, model=model, output=output, lab=lab, file=file)))


def _spoken(name: str, *, is_named: bool) -> str | None:
    """The dialect's name if the lab speaks it; None if it does not and nobody has asked for it by name."""
    from safelight.lab.dialects import dialect_names

    known = sorted(dialect_names())
    if name in known:
        return name
    if is_named:
        fail(f"the lab has no dialect {name!r}; there are {', '.join(known)}", code=USAGE)
    return None


async def _conformance(declaration: Declaration, dialect: str, *, as_json: bool) -> list[Verdict]:
    from safelight.cli.conformance.run import open_workbench, run_cases, running_lab_child

    def tell(verdict: Verdict) -> None:
        if not as_json:
            print_line(clean(f"  ok    {verdict.case}" if verdict.is_good else _fault_line(verdict)))

    async with running_lab_child() as lab_url, open_workbench(declaration, dialect, lab_url) as bench:
        return await run_cases(bench, tell=tell)


def _fault_line(verdict: Verdict) -> str:
    return f"  FAULT {verdict.case}: {verdict.fault}"


def _declaration(source: str) -> Declaration:
    from safelight.providers import load_declaration, packaged_declaration

    with plain_errors():
        return load_declaration(Path(source)) if _is_file(source) else packaged_declaration(source)


def _renamed(text: str, old: str, new: str) -> str:
    """The declaration under another name, and with it those models whose name upstream is another anyway."""
    text = text.replace(f'name = "{old}"', f'name = "{new}"', 1)
    return re.sub(
        rf'^name = "{re.escape(old)}-(?=.*\nupstream_model)', f'name = "{new}-', text, flags=re.MULTILINE
    )


def _check_name(name: str) -> None:
    from pydantic import TypeAdapter, ValidationError

    from safelight.providers.declaration import ProviderName

    try:
        TypeAdapter(ProviderName).validate_python(name)
    except ValidationError:
        fail(
            f"{name!r} is no name for a provider: small letters, digits and dashes, such as my-relay",
            code=USAGE,
        )


def _is_file(source: str) -> bool:
    return source.endswith(".toml") or "/" in source


def _places(declaration: Declaration) -> Iterator[str]:
    """The lines of a table that enables it, with what only its owner knows left open."""
    from safelight.providers.checks import needed_credentials

    if not declaration.base_url and not declaration.hosts:
        yield 'base_url = "https://…"'
    for credential in needed_credentials(declaration):
        yield f'{credential} = "…"'


def _settings_file() -> Path:
    from safelight.settings import CONFIG_VARIABLE, FILE_NAME, default_data_dir

    named, folder = os.environ.get(CONFIG_VARIABLE), os.environ.get(DATA_DIR_VARIABLE)
    return Path(named) if named else (Path(folder) if folder else default_data_dir()) / FILE_NAME


def _packaged() -> list[Declaration]:
    from safelight.providers import packaged_declaration, packaged_names

    return [packaged_declaration(name) for name in packaged_names()]
