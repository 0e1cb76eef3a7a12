"""Usage: help that reads well, wrong words, exit codes, and a quick start."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from safelight import __version__
from safelight.cli import remote
from safelight.cli.running import run
from tests.cli.command import Command
from tests.client.fake_api import FakeApi

GROUPS = [
    "serve",
    "api",
    "worker",
    "migrate",
    "lab",
    "submit",
    "tasks",
    "batch",
    "webhooks",
    "credits",
    "keys",
    "reconcile",
    "notices",
    "review",
    "audit",
    "admin-keys",
    "doctor",
    "bench",
]
HEAVY = "fastapi alembic sqlalchemy pgqueuer asyncpg aiohttp pydantic rich.progress PIL"


@pytest.fixture
def command(data_dir: Path) -> Command:
    """The command with an empty data directory."""
    return Command(data_dir)


def test_help_names_every_command_and_shows_two_that_work(command: Command) -> None:
    said = command("--help")
    assert said.code == 0
    assert [name for name in GROUPS if f"\n  {name} " not in said.out] == []
    assert 'safelight submit "a red shoe on white" --wait -o shoe.png' in said.out
    assert "..." not in said.out.partition("Commands:")[2]


@pytest.mark.parametrize("name", GROUPS)
def test_every_command_explains_itself_and_its_options(command: Command, name: str) -> None:
    said = command(name, "--help")
    assert said.code == 0
    assert said.out.startswith("Usage: ")
    assert "--die-with-stdin" not in said.out


@pytest.mark.parametrize(
    "words",
    [
        "tasks list",
        "tasks show",
        "tasks cancel",
        "batch list",
        "batch show",
        "keys list",
        "credits entries",
        "credits balance",
        "review list",
        "audit list",
        "admin-keys list",
    ],
)
def test_listing_commands_print_json_on_request(command: Command, words: str) -> None:
    assert "--json" in command(*words.split(), "--help").out


def test_the_version_is_the_package_s(command: Command) -> None:
    assert command("--version").out == f"safelight {__version__}\n"


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["paint"], "No such command 'paint'"),
        (["submit"], "Missing argument"),
        (["submit", "x", "--colour", "red"], "No such option"),
        (["submit", "x", "-n", "many"], "Invalid value for '-n'"),
        (["submit", "x", "--options", "{"], "--options is not JSON"),
        (["submit", "x", "--options", "[1]"], "--options must be a JSON object"),
        (["submit", "x", "--option", "lab"], "is not of the form KEY=JSON"),
        (["submit", "x", "--option", "style=watercolour"], "--option style is not JSON"),
        (["submit", "x", "--option", "strength=NaN"], "NaN is not JSON"),
        (["submit", "bad \udcff bytes"], "not valid UTF-8"),
        (["submit", "x", "-o", "/nowhere/at/all/shoe.png"], "there is no folder /nowhere/at/all"),
        (["submit", "x", "-o", "/"], "is a folder"),
        (["tasks", "list", "--limit", "0"], "Invalid value for '--limit'"),
        (["tasks", "list"], "no API key"),
        (["lab", "--knobs", '{"colour": 1}'], "--knobs: knob colour: there is no such knob"),
        (["serve", "--lab-knobs", "{"], "--lab-knobs: knobs are not JSON"),
        (["serve", "--port", "70000"], "Invalid value for '--port'"),
        (["credits", "grant", "many"], "Invalid value for 'AMOUNT'"),
    ],
)
def test_wrong_usage_is_explained_on_standard_error(
    command: Command, words: list[str], complaint: str
) -> None:
    said = command(*words)
    assert said.code == 2
    assert complaint in said.err
    assert said.out == ""
    assert "Traceback" not in said.err


@pytest.mark.parametrize(
    "words",
    [
        "submit x",
        "tasks list",
        "batch list",
        "webhooks list",
        "credits balance",
        "keys list",
        "review list",
        "doctor",
        "reconcile reports",
        "reconcile --provider lab-poll --day 2026-01-01",
        "notices report --provider lab-poll",
    ],
)
def test_a_folder_where_no_service_ran_is_named_with_what_to_do_and_left_as_it_is(
    command: Command, words: str
) -> None:
    folder = command.data_dir / "empty"
    run = command.apart if words.startswith("reconcile --provider") else command
    said = run(*words.split(), "--data-dir", str(folder))
    assert (said.code, said.out) == (2, "")
    assert len(said.err.splitlines()) == 1
    for word in (str(folder), "--data-dir", "`safelight serve`"):
        assert word in said.err
    assert not folder.exists()


def test_a_key_that_nobody_knows_where_no_service_runs_is_said_to_be_asked_at_the_usual_address(
    customer: Command, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "USUAL_URL", api.url)
    (customer.data_dir / "url").unlink()
    (customer.data_dir / "key").write_text("another")
    said = customer("credits", "balance")
    assert (said.code, said.out) == (1, "")
    assert f"no `safelight serve` runs on {customer.data_dir}; asked was {api.url}" in said.err


def test_an_unknown_setting_is_one_line(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAFELIGHT_COLOUR", "red")
    said = command("doctor")
    assert (said.code, said.err) == (2, "safelight: unknown setting SAFELIGHT_COLOUR in the environment\n")


def test_a_key_that_cannot_be_read_is_one_line(command: Command) -> None:
    (command.data_dir / "key").mkdir()
    said = command("credits", "balance")
    assert said.code == 2
    assert said.err.startswith(f"safelight: {command.data_dir / 'key'} cannot be read")


def test_help_loads_nothing_heavy() -> None:
    assert loaded_after(["--help"]) == "[]"


def test_a_submit_loads_neither_the_service_nor_the_database(customer: Command) -> None:
    words = ["submit", "a red shoe", "--data-dir", str(customer.data_dir)]
    assert loaded_after(words) in ("['aiohttp']", "['aiohttp', 'pydantic']")


def loaded_after(words: list[str]) -> str:
    """Which heavy modules a fresh process has loaded when the command is done."""
    code = (
        "import sys\nfrom safelight.cli.app import app\n"
        f"app({words!r}, standalone_mode=False)\n"
        f"print([name for name in {HEAVY!r}.split() if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.splitlines()[-1]


def test_a_restored_database_is_not_looked_for_where_none_is(command: Command, tmp_path: Path) -> None:
    """A wrong folder would say that all is well, and the restored tasks would be made again."""
    said = command.apart("migrate", "--after-restore", "--data-dir", str(tmp_path / "typo"))
    assert (said.code, said.out) == (2, "")
    assert f"there is no safelight in {tmp_path / 'typo'}" in said.err
    assert not (tmp_path / "typo" / "postgres").exists()


def test_what_a_signal_ended_has_its_own_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    async def ended() -> None:
        raise asyncio.CancelledError

    with pytest.raises(typer.Exit) as caught:
        run(ended())
    assert caught.value.exit_code == 143
    assert capsys.readouterr().err == "safelight: ended by a signal\n"
