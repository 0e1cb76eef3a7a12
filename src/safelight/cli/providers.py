"""`safelight providers`: what upstreams there are, and how to add one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from safelight.cli.options import AsJson
from safelight.cli.output import clean, count_words, print_json, print_line, print_table
from safelight.cli.running import FAILED, USAGE, fail, plain_errors, run

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
    """List every provider that comes with safelight, with what it can do."""
    rows = [_summary(declaration) for declaration in _packaged()]
    if as_json:
        print_json(rows)
        return
    columns = ("provider", "written as", "answers", "callbacks", "after a lost answer", "does", "models")
    print_table(columns, ([row[column] for column in columns] for row in rows))


@commands.command("show", short_help="One provider: how to enable it, its models, its limits.")
def show(source: Source, as_json: AsJson = False) -> None:
    """Show one provider: the settings that enable it, what it can do, its models and their prices."""
    declaration = _declaration(source)
    shown = _shown(declaration)
    if as_json:
        print_json(shown)
        return
    print_line(f"{declaration.name}: {declaration.title or declaration.name}")
    for name, value in shown.items():
        if name not in ("name", "title", "models"):
            print_line(f"  {name}: {_words(value)}")
    print_line()
    columns = ("model", "does", "price", "pictures", "sizes", "retires")
    print_table(columns, ([row[column] for column in columns] for row in shown["models"]))


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

    with plain_errors():
        text = packaged_text(like).replace(f'name = "{like}"', f'name = "{name}"')
        text = text.replace(f'name = "{like}-', f'name = "{name}-')
        load_declaration(text)
    path = output or Path(f"{name}.toml")
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        fail(f"{path} cannot be written: {error.strerror}", code=USAGE)
    print_line(f"Written: {path}")
    print_line(f"Check it:   safelight providers check {path} --dialect {like}")
    print_line(f"Try it:     safelight providers try {path} --lab {like} -o picture.png")
    print_line(f'Enable it:  [providers.{name}] file = "{path}" in safelight.toml')


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
    if not as_json:
        print_line(f"{declaration.name}: the declaration is well formed")
    spoken = None if is_dry else _spoken(dialect or declaration.name, is_named=dialect is not None)
    if spoken is None:
        if not is_dry and not as_json:
            print_line("the lab does not play this upstream; the calls that would be made:")
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

    With the installation's credentials it is a real task that the provider charges for; with --lab it is not.
    """
    from safelight.cli.trying import Trial, make_picture

    declaration = _declaration(source)
    if lab is None and not is_agreed:
        typer.confirm(f"{declaration.name} may charge for this. Go on?", abort=True)
    run(make_picture(declaration, Trial(prompt=prompt, model=model, output=output, lab=lab)))


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
        is_file = source.endswith(".toml") or "/" in source
        return load_declaration(Path(source)) if is_file else packaged_declaration(source)


def _packaged() -> list[Declaration]:
    from safelight.providers import packaged_declaration, packaged_names

    return [packaged_declaration(name) for name in packaged_names()]


def _summary(declaration: Declaration) -> dict[str, Any]:
    from safelight.providers import capabilities_of

    able = capabilities_of(declaration)
    operations = Counter(operation for model in declaration.models for operation in model.operations)
    return {
        "provider": declaration.name,
        "written as": f"code: {declaration.code}" if declaration.code else "declaration",
        "answers": "at once" if able.is_synchronous else "by poll",
        "callbacks": f"{able.trust}" if able.calls_back else "none",
        "after a lost answer": {"same_key": "same key", "look_up": "look-up", "none": "callback or a person"}[
            able.after_uncertain
        ],
        "does": ", ".join(operations),
        "models": len(declaration.models),
    }


def _shown(declaration: Declaration) -> dict[str, Any]:
    from safelight.providers import capabilities_of
    from safelight.providers.checks import credential_names, needed_credentials

    able = capabilities_of(declaration)
    prefix = f"SAFELIGHT_PROVIDER_{declaration.name.replace('-', '_').upper()}"
    needed = needed_credentials(declaration)
    return {
        "name": declaration.name,
        "title": declaration.title,
        "enabled by": [f"{prefix}_{name.upper()}" for name in needed] or [f"{prefix}_BASE_URL"],
        "may also use": [
            f"{prefix}_{name.upper()}" for name in credential_names(declaration) if name not in needed
        ],
        "address": declaration.base_url or "set by you",
        "regions": sorted(declaration.hosts),
        "answers": "at once" if able.is_synchronous else "by poll",
        "callbacks": f"{able.trust}" if able.calls_back else "none",
        "after a lost answer": able.after_uncertain,
        "cancel": able.can_cancel,
        "list": able.can_list,
        "results live": f"{able.result_lifetime_s:.0f} s" if able.result_lifetime_s else "unknown: 30 min",
        "at most": _limits(declaration),
        "models": [_model_row(model) for model in declaration.models],
    }


def _limits(declaration: Declaration) -> list[str]:
    limits = declaration.limits
    named = (
        (limits.max_active, "pictures at once"),
        (limits.max_active_tasks, "tasks at once"),
        (limits.calls_per_s, "submits a second"),
        (limits.polls_per_s, "polls a second"),
    )
    return [f"{value:g} {words}" for value, words in named if value is not None]


def _model_row(model: Any) -> dict[str, Any]:
    return {
        "model": model.name,
        "does": ", ".join(model.operations) + (", mask" if model.takes_mask else ""),
        "price": model.price,
        "pictures": f"up to {model.max_n}",
        "sizes": ", ".join(word or "any" for word in (*model.sizes, *model.aspect_ratios)) or "its own",
        "retires": str(model.retires_on) if model.retires_on else "",
    }


def _words(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
